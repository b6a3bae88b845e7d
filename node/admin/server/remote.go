package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/hostabi/abi"
	"runner.example/internal/clock"
	"runner.example/internal/connlimit"
	"runner.example/internal/fault"
	"runner.example/internal/settings"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/node/release"
	"runner.example/runtime/auth"
)

// The limits of a RemoteServer.
const (
	maxRemoteConns = 256
	// headerBytes and headerTime limit the head of a request, requestTime a request without a
	// valid key, and argumentTime the arguments of an operation.
	headerBytes  = 16 << 10
	headerTime   = 10 * time.Second
	requestTime  = 30 * time.Second
	argumentTime = time.Minute
	uploadTime   = 10 * time.Minute
	// maxPlainArguments limits the arguments of operations that need no admin, in bytes: the
	// largest are a manifest.
	maxPlainArguments = 1 << 20
	// answerTimeout limits the sending of an answer that is not a stream.
	answerTimeout = time.Minute
	// At most this many operations of keys with one role, and uploads, run at once. Others wait for
	// slotWait.
	maxOperations = 16
	maxUploads    = 4
	slotWait      = 10 * time.Second
)

// RemoteOptions configure a RemoteServer. It uses Options.UploadPerHour, and Options.Certificate, which
// is required; the others are for its owner, who listens.
type RemoteOptions struct {
	Options
	// Auth checks the platform keys. It is required.
	Auth *auth.Authenticator
	// Logger gets operations that failed; nil: nothing is logged.
	Logger *slog.Logger
}

// RemoteServer answers operators over the network: HTTP/1.1 over TLS 1.3, with platform keys. Its
// methods may be called by any goroutine.
type RemoteServer struct {
	responder
	auth        *auth.Authenticator
	certificate atomic.Pointer[tls.Certificate]
	http        *http.Server
	operations  map[keystore.Role]slots // read only
	uploads     slots
	quota       quota
}

// NewRemoteServer returns a server that runs operations on local.
func NewRemoteServer(local *Local, opt RemoteOptions) *RemoteServer {
	settings.FillZero(&opt)
	s := &RemoteServer{
		responder: newResponder(local, opt.Logger), auth: opt.Auth,
		operations: map[keystore.Role]slots{}, uploads: make(slots, maxUploads),
	}
	for _, role := range keystore.Roles() { // so a key cannot keep those with another role waiting
		s.operations[role] = make(slots, maxOperations)
	}
	s.quota.size = opt.UploadPerHour
	s.certificate.Store(opt.Certificate)
	s.http = &http.Server{
		Handler: s, MaxHeaderBytes: headerBytes,
		ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, IdleTimeout: idle,
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug), // anyone can cause it
	}
	return s
}

// Serve answers on ln, and closes it, until Shutdown; then it returns nil.
func (s *RemoteServer) Serve(ln net.Listener) error {
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate.Load(), nil },
	}
	limited := connlimit.Listen(ln, maxRemoteConns, "admin", s.logger)
	err := s.http.Serve(tls.NewListener(limited, config))
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve operators on the network: %w", err)
	}
	return nil
}

// Shutdown stops listening, and waits, no longer than ctx, for operations in flight. After that
// their connections are closed.
func (s *RemoteServer) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close()
	}
	return err
}

// SetCertificate changes the certificate of connections that begin from now on.
func (s *RemoteServer) SetCertificate(c *tls.Certificate) { s.certificate.Store(c) }

// Fingerprint returns the fingerprint of the certificate.
func (s *RemoteServer) Fingerprint() string {
	return admin.Fingerprint(s.certificate.Load().Certificate[0])
}

// ServeHTTP checks the platform key and its role, and runs the operation that the path names:
// POST /v1/<operation> as on the socket, or PUT /v1/blobs/<sha256> and /v1/files/<sha256>.
func (s *RemoteServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.logPanic(r.Context())
	w.Header().Set("Cache-Control", "no-store")
	who := newOperator("")
	who.address = addressOf(r.RemoteAddr).String()
	key, err := s.authenticate(r, who.requestID)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	who.id = key.ID
	control := http.NewResponseController(w)
	name, ok := strings.CutPrefix(r.URL.Path, admin.RemotePath)
	digest, upload := strings.CutPrefix(name, admin.BlobPath)
	fileDigest, ofRow := strings.CutPrefix(name, admin.FilePath)
	switch {
	case !ok:
		err = fault.New(fault.NotFound, "paths begin with %s", admin.RemotePath)
	case name == admin.BatchPath:
		name = admin.OpUploadBatch.Name
		err = s.uploadBatch(w, r, control, key.Role)
	case upload:
		name = admin.OpUpload.Name
		err = s.upload(w, r, control, key.Role, digest)
	case ofRow:
		name = admin.OpPutFile.Name
		err = s.uploadFile(w, r, control, key.Role, fileDigest)
	default:
		err = s.operate(w, r, control, key.Role, name, who)
	}
	if _, sent := errors.AsType[*sentError](err); err != nil && !sent {
		s.refuse(w, r, err)
	}
	s.log(r.Context(), who, name, err)
}

// sentError is an error that the answer contains already.
type sentError struct{ error }

func (e *sentError) Unwrap() error { return e.error }

// log logs an operation that needs more than the role read: dashboards run the others all the time.
func (s *RemoteServer) log(ctx context.Context, who operator, name string, err error) {
	needed, known := roleOf(name)
	if !known || needed == keystore.RoleRead {
		return
	}
	result := "ok"
	if err != nil {
		result = string(fault.Of(err).Code)
	}
	s.logger.InfoContext(ctx, "remote operation", "operation", name, "result", result, "keyId", who.id, "address", who.address, "requestId", who.requestID)
}

// logPanic logs a panic, and closes the connection. net/http would log it too, but among what
// anyone can cause.
func (s *RemoteServer) logPanic(ctx context.Context) {
	if cause := recover(); cause != nil {
		s.logger.ErrorContext(ctx, "operation panicked", "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
		panic(http.ErrAbortHandler)
	}
}

// authenticate returns the platform key of the request.
func (s *RemoteServer) authenticate(r *http.Request, requestID string) (keystore.PlatformIdentity, error) {
	lines := r.Header["Authorization"]
	return s.auth.CheckPlatformKey(auth.Presented{
		Authorization: []byte(r.Header.Get("Authorization")), AuthorizationLines: len(lines),
		Address: addressOf(r.RemoteAddr), Request: &abi.Request{ID: requestID},
	}, clock.Mark())
}

// addressOf returns the address of a client's end of a connection, host:port.
func addressOf(remote string) netip.Addr {
	address, err := netip.ParseAddrPort(remote)
	if err != nil {
		panic("BUG: the address of a TCP connection: " + err.Error())
	}
	return address.Addr().Unmap()
}

// operate runs an operation, and sends its answer.
func (s *RemoteServer) operate(w http.ResponseWriter, r *http.Request, control *http.ResponseController, have keystore.Role, name string, who operator) error {
	needed, known := roleOf(name)
	switch {
	case !known || isUpload(name):
		return unknownOperation(name)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return fault.New(fault.MethodNotAllowed, "the method must be POST, not %s", r.Method)
	}
	if err := allow(have, needed); err != nil {
		return err
	}
	done, err := s.operations[have].take(r.Context())
	if err != nil {
		return err
	}
	defer done()
	_ = control.SetReadDeadline(clock.In(argumentTime)) // fails only if the connection is closed
	limit := int64(admin.MaxMessage)
	if needed != keystore.RoleAdmin {
		limit = maxPlainArguments
	}
	args, err := readArguments(r, limit)
	if err != nil {
		return err
	}
	_ = control.SetReadDeadline(time.Time{}) // an operation takes as long as it takes
	if name == admin.OpBackup.Name {
		request, err := backupRequest(args)
		if err != nil {
			return err
		}
		if err := s.sendBackup(w, r, request); err != nil {
			return &sentError{err}
		}
		return nil
	}
	if name == admin.OpReadFile.Name {
		return s.sendFile(w, r, args)
	}
	result, err := s.local.do(r.Context(), who, name, args)
	if err == nil {
		send200(w, control, result)
	}
	return err
}

// upload stores a file of a release.
func (s *RemoteServer) upload(w http.ResponseWriter, r *http.Request, control *http.ResponseController, have keystore.Role, digest string) error {
	if r.Method != http.MethodPut {
		w.Header().Set("Allow", http.MethodPut)
		return fault.New(fault.MethodNotAllowed, "the method must be PUT, not %s", r.Method)
	}
	if err := allow(have, admin.OpUpload.Role); err != nil {
		return err
	}
	f, err := uploadOf(r, digest)
	if err != nil {
		return err
	}
	if f.Size > release.MaxFileBytes { // before it counts
		return tooLarge(f.Size)
	}
	done, err := s.uploads.take(r.Context())
	if err != nil {
		return err
	}
	defer done()
	if err := s.quota.take(f.Size, clock.Mark()); err != nil {
		return err
	}
	_ = control.SetReadDeadline(clock.In(uploadTime)) // fails only if the connection is closed
	body := &readRecorder{Reader: r.Body}
	if err := s.local.put(r.Context(), f, body); err != nil {
		s.quota.giveBack(f.Size)
		if body.err != nil {
			err = fault.Wrap(body.err, fault.Invalid, "the upload broke off before its end")
		}
		return err
	}
	send200(w, control, []byte("{}\n"))
	return nil
}

// uploadBatch stores many small contents. Each counts as a few kilobytes at least: so many files are limited too.
func (s *RemoteServer) uploadBatch(w http.ResponseWriter, r *http.Request, control *http.ResponseController, have keystore.Role) error {
	if r.Method != http.MethodPut {
		w.Header().Set("Allow", http.MethodPut)
		return fault.New(fault.MethodNotAllowed, "the method must be PUT, not %s", r.Method)
	}
	if err := allow(have, admin.OpUploadBatch.Role); err != nil {
		return err
	}
	done, err := s.uploads.take(r.Context())
	if err != nil {
		return err
	}
	defer done()
	size := max(0, r.ContentLength)
	if err := s.quota.take(size, clock.Mark()); err != nil {
		return err
	}
	_ = control.SetReadDeadline(clock.In(uploadTime)) // fails only if the connection is closed
	blobs, err := readBatch(r)
	if err == nil {
		err = s.quota.take(costOf(blobs), clock.Mark())
	}
	if err != nil {
		s.quota.giveBack(size)
		return err
	}
	if err := s.local.Store.PutBlobs(r.Context(), blobs); err != nil {
		return err // some may be stored, so all count
	}
	send200(w, control, []byte("{}\n"))
	return nil
}

// uploadFile stores the contents of a file of a row.
func (s *RemoteServer) uploadFile(w http.ResponseWriter, r *http.Request, control *http.ResponseController, have keystore.Role, digest string) error {
	if r.Method != http.MethodPut {
		w.Header().Set("Allow", http.MethodPut)
		return fault.New(fault.MethodNotAllowed, "the method must be PUT, not %s", r.Method)
	}
	if err := allow(have, admin.OpPutFile.Role); err != nil {
		return err
	}
	done, err := s.operations[have].take(r.Context())
	if err != nil {
		return err
	}
	defer done()
	if err := s.receiveFile(w, r, digest); err != nil {
		return err
	}
	send200(w, control, []byte("{}\n"))
	return nil
}

// readRecorder keeps the error of a reader.
type readRecorder struct {
	io.Reader
	err error
}

func (e *readRecorder) Read(b []byte) (int, error) {
	n, err := e.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		e.err = err
	}
	return n, err
}

// allow refuses a role that is weaker than the one needed.
func allow(have, needed keystore.Role) error {
	if have.Allows(needed) {
		return nil
	}
	return fault.New(fault.InsufficientRole, "this operation needs a platform key with the role %s, and this one has %s", needed, have)
}

func send200(w http.ResponseWriter, control *http.ResponseController, result []byte) {
	_ = control.SetWriteDeadline(clock.In(answerTimeout))
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(result) // the client may have closed the connection
}

// slots limit what runs at once.
type slots chan struct{}

// take waits for a slot, at most slotWait.
func (s slots) take(ctx context.Context) (release func(), err error) {
	timer := time.NewTimer(slotWait)
	defer timer.Stop()
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, fault.Wrap(context.Cause(ctx), fault.Deadline, "the client closed the connection")
	case <-timer.C:
		return nil, &auth.Refusal{
			Fault:      fault.New(fault.Overloaded, "%d operations of this kind are running: try again after the time in Retry-After", cap(s)),
			RetryAfter: int(slotWait / time.Second),
		}
	}
}

// quota limits the bytes of uploads: size at once, and as many again in each hour.
type quota struct {
	size int64

	mu   sync.Mutex
	used int64
	at   time.Time // when used was right
}

// take counts n bytes, or refuses them.
func (q *quota) take(n int64, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	perSecond := float64(q.size) / time.Hour.Seconds()
	q.used -= min(q.used, int64(perSecond*now.Sub(q.at).Seconds()))
	q.at = now
	if over := q.used + n - q.size; over > 0 && q.used > 0 {
		return &auth.Refusal{
			Fault:      fault.New(fault.RateLimited, "uploads have reached the limit of %d bytes in an hour ([admin] upload_per_hour): try again after the time in Retry-After", q.size),
			RetryAfter: 1 + int(float64(over)/perSecond),
		}
	}
	q.used += n
	return nil
}

// giveBack undoes take for bytes that were not stored.
func (q *quota) giveBack(n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used = max(0, q.used-n)
}
