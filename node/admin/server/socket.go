package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	"runner.example/internal/fault"
	"runner.example/internal/system/adminsocket"
	"runner.example/node/admin"
)

// SocketServer answers operators over the socket.
type SocketServer struct {
	responder
	http *http.Server
}

// NewSocketServer returns a server that runs operations on local. It logs operations that failed;
// logger may be nil.
func NewSocketServer(local *Local, logger *slog.Logger) *SocketServer {
	s := &SocketServer{responder: newResponder(local, logger)}
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: idle, IdleTimeout: idle,
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, operatorKey{}, conn.(*adminsocket.Conn).User)
		},
	}
	return s
}

// operatorKey is the key of the peer's user in the context of a connection.
type operatorKey struct{}

// Serve answers on ln, which Listen returned, until Shutdown; then it returns nil.
func (s *SocketServer) Serve(ln net.Listener) error {
	if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve operators on the socket: %w", err)
	}
	return nil
}

// Shutdown stops listening, removes the socket and waits, no longer than ctx,
// for operations in flight.
func (s *SocketServer) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

// ServeHTTP runs the operation that the path names: POST /<operation> with the arguments as
// JSON. The answer is the result, or a refusal with its code. A backup and the contents of a file are
// streams. PUT /blobs/<sha256> takes a file of a release, PUT /files/<sha256> one of a row.
func (s *SocketServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/"+admin.OpBackup.Name && r.Method == http.MethodPost {
		args, err := readArguments(r, admin.MaxMessage)
		var request admin.BackupRequest
		if err == nil {
			request, err = backupRequest(args)
		}
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		_ = s.sendBackup(w, r, request) // it has answered
		return
	}
	if r.URL.Path == "/"+admin.OpReadFile.Name && r.Method == http.MethodPost {
		args, err := readArguments(r, admin.MaxMessage)
		if err == nil {
			err = s.sendFile(w, r, args)
		}
		if _, sent := errors.AsType[*sentError](err); err != nil && !sent {
			s.refuse(w, r, err)
		}
		return
	}
	result, err := s.answer(w, r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(result) // the client may have closed the connection
}

func (s *SocketServer) answer(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.URL.Path == "/"+admin.BatchPath && r.Method == http.MethodPut {
		blobs, err := readBatch(r)
		if err == nil {
			err = s.local.Store.PutBlobs(r.Context(), blobs)
		}
		if err != nil {
			return nil, err
		}
		return []byte("{}\n"), nil
	}
	if digest, ok := strings.CutPrefix(r.URL.Path, "/"+admin.BlobPath); ok && r.Method == http.MethodPut {
		f, err := uploadOf(r, digest)
		if err == nil {
			err = s.local.put(r.Context(), f, r.Body)
		}
		if err != nil {
			return nil, err
		}
		return []byte("{}\n"), nil
	}
	if digest, ok := strings.CutPrefix(r.URL.Path, "/"+admin.FilePath); ok && r.Method == http.MethodPut {
		if err := s.receiveFile(w, r, digest); err != nil {
			return nil, err
		}
		return []byte("{}\n"), nil
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, fault.New(fault.MethodNotAllowed, "the method must be POST, not %s", r.Method)
	}
	args, err := readArguments(r, admin.MaxMessage)
	if err != nil {
		return nil, err
	}
	return s.local.do(r.Context(), newOperator(r.Context().Value(operatorKey{}).(string)), strings.TrimPrefix(r.URL.Path, "/"), args)
}

// Listen opens the socket of the data directory dir for the server that has its store open. If
// elsewhere is not empty, the socket has that path, and dir gets a link to it. A socket that another
// server has left there is replaced. Connections of users other than the process's own and root are
// closed before they are accepted. Closing the listener removes the socket and the link.
func Listen(dir, elsewhere string) (net.Listener, error) {
	if elsewhere == "" {
		return listen(dir, admin.SocketName, fmt.Sprintf("%s of data directory %q", admin.SocketName, dir))
	}
	ln, err := listen(filepath.Dir(elsewhere), filepath.Base(elsewhere), fmt.Sprintf("%q, which [admin] socket names", elsewhere))
	if err != nil {
		return nil, err
	}
	link := filepath.Join(dir, admin.SocketName)
	if err := ln.LinkFrom(link, elsewhere); err != nil {
		return nil, errors.Join(fmt.Errorf("link %q to the socket %q: %w", link, elsewhere, err), ln.Close())
	}
	return ln, nil
}

// listen opens the socket with that name in a directory. what names it in an error.
func listen(dir, name, what string) (*adminsocket.Listener, error) {
	ln, err := adminsocket.Listen(dir, name)
	if err != nil {
		return nil, fmt.Errorf("listen on the socket %s: %w", what, err)
	}
	return ln, nil
}
