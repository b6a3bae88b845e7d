package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"runner.example/internal/fault"
)

const (
	// maxMessage is the limit of a request and of an answer, in bytes.
	maxMessage = 64 << 20
	// idle is how long an idle connection is kept.
	idle = time.Minute
)

// responder has what both servers need to answer.
type responder struct {
	local  *Local
	logger *slog.Logger
}

func newResponder(local *Local, logger *slog.Logger) responder {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return responder{local, logger}
}

// Server answers operators over the socket.
type Server struct {
	responder
	http *http.Server
}

// NewServer returns a server that runs operations on local. It logs operations that failed;
// logger may be nil.
func NewServer(local *Local, logger *slog.Logger) *Server {
	s := &Server{responder: newResponder(local, logger)}
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: idle, IdleTimeout: idle,
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, operatorKey{}, conn.(*operatorConn).uid)
		},
	}
	return s
}

// operatorKey is the key of the peer's uid in the context of a connection.
type operatorKey struct{}

// Serve answers on ln, which Listen returned, until Shutdown; then it returns nil.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve operators on the socket: %w", err)
	}
	return nil
}

// Shutdown stops listening, removes the socket and waits, no longer than ctx,
// for operations in flight.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

// ServeHTTP runs the operation that the path names: POST /<operation> with the arguments as
// JSON. The answer is the result, or a refusal with its code. A backup is a stream. PUT
// /blobs/<sha256> takes a file of a release.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/"+backupOperation && r.Method == http.MethodPost {
		_ = s.sendBackup(w, r) // it has answered
		return
	}
	result, err := s.answer(r)
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		result, _ = json.Marshal(s.refusal(r.Context(), err))
	}
	_, _ = w.Write(result) // the client may have closed the connection
}

func (s *Server) answer(r *http.Request) ([]byte, error) {
	if digest, ok := strings.CutPrefix(r.URL.Path, blobPath); ok && r.Method == http.MethodPut {
		f, err := uploadOf(r, digest)
		if err == nil {
			err = s.local.put(r.Context(), f, r.Body)
		}
		if err != nil {
			return nil, explained(err)
		}
		return []byte("{}\n"), nil
	}
	if r.Method != http.MethodPost {
		return nil, fault.New(fault.Invalid, "the method must be POST, not %s", r.Method)
	}
	args, err := readArguments(r, maxMessage)
	if err != nil {
		return nil, err
	}
	return s.local.do(r.Context(), userOperator(r.Context().Value(operatorKey{}).(uint32)), strings.TrimPrefix(r.URL.Path, "/"), args)
}

// readArguments reads the arguments of an operation, at most limit bytes.
func readArguments(r *http.Request, limit int64) ([]byte, error) {
	args, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, limit))
	if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fault.New(fault.TooLarge, "the arguments have more than %d bytes", tooLong.Limit)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "read the arguments")
	}
	return args, nil
}

// refusal is an error as it is sent to an operator.
type refusal struct {
	Code   fault.Code `json:"code"`
	Detail string     `json:"detail"`
	// Hint is the next command to type; empty: there is none.
	Hint string `json:"hint,omitempty"`
}

func refusalOf(f *fault.Fault) refusal { return refusal{f.Code, f.Detail, f.Hint} }

// refusal returns the error that an operator sees, and logs it if it is the server's fault.
func (s *responder) refusal(ctx context.Context, err error) refusal {
	f := fault.Of(err)
	if f.Code == fault.Internal || f.Code == fault.Unavailable {
		s.logger.ErrorContext(ctx, "operation failed", "code", f.Code, "error", err)
	}
	return refusalOf(f)
}
