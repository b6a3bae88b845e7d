package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/node/backup"
)

const (
	// backupOperation is the only operation whose answer is a stream.
	backupOperation = "backup"
	// backupError is the trailer that contains the error that ended a stream.
	backupError = "Backup-Error"
	// backupStall is how long the server waits for a client that does not read.
	backupStall = time.Minute
)

// Backup writes a backup of the node to w; package backup describes it. The backup ends if w
// returns an error or ctx ends. The caller must check what w received, because the connection
// may break.
func (c *Client) Backup(ctx context.Context, w io.Writer) error { return c.backup(ctx, w) }

func (l *Local) backup(ctx context.Context, w io.Writer) error {
	app := ""
	if s := l.Schema(); s != nil {
		app = s.App
	}
	if err := l.Releases.Fetch(ctx); err != nil {
		return err
	}
	_, err := backup.Write(ctx, l.Store, l.Keys, app, w)
	return err
}

// sendBackup streams a backup. When the client closes the connection or reads nothing for
// backupStall, the backup ends. An error is logged, and sent as a trailer.
func (s *responder) sendBackup(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Trailer", backupError)
	out := &deadlineWriter{w: w, control: http.NewResponseController(w)}
	began := clock.Mark()
	err := s.local.backup(r.Context(), out)
	s.local.Metrics.Backup(err)
	if err != nil {
		s.logger.WarnContext(r.Context(), "backup failed", "cause", err)
		f := fault.Of(explained(err))
		text, _ := json.Marshal(refusalOf(f))
		w.Header().Set(backupError, string(text))
		return err
	}
	s.logger.InfoContext(r.Context(), "backup written", "bytes", out.n, "took", time.Since(began))
	return nil
}

// deadlineWriter sets a deadline before each write.
type deadlineWriter struct {
	w       io.Writer
	control *http.ResponseController
	n       int64
}

func (s *deadlineWriter) Write(b []byte) (int, error) {
	if err := s.control.SetWriteDeadline(clock.In(backupStall)); err != nil {
		return 0, err
	}
	n, err := s.w.Write(b)
	s.n += int64(n)
	return n, err
}

// receive copies the backup that a server sends.
func (p *peer) receive(ctx context.Context, w io.Writer) error {
	answer, err := p.send(ctx, backupOperation, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(answer.Body, maxMessage))
		return refused(answer, body)
	}
	out := &errorRecorder{Writer: w}
	_, err = io.Copy(out, answer.Body)
	switch {
	case out.err != nil:
		return out.err
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fault.Wrap(err, fault.Unavailable, "the server closed the connection during the backup")
	}
	if text := answer.Trailer.Get(backupError); text != "" {
		return refused(answer, []byte(text))
	}
	return nil
}

// errorRecorder keeps the error of a writer.
type errorRecorder struct {
	io.Writer
	err error
}

func (e *errorRecorder) Write(b []byte) (int, error) {
	n, err := e.Writer.Write(b)
	e.err = errors.Join(e.err, err)
	return n, err
}
