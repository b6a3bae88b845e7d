package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/node/backup"
	"runner.example/state/store"
)

// backupStall is how long the server waits for a client that does not read.
const backupStall = time.Minute

func (l *Local) backup(ctx context.Context, request admin.BackupRequest, w io.Writer) error {
	app := ""
	if s := l.Schema(); s != nil {
		app = s.App
	}
	if err := l.Releases.Fetch(ctx); err != nil {
		return err
	}
	var ofReleases func(store.Digest) bool
	if !request.WithoutFiles {
		if err := l.Store.FetchReferencedBlobs(ctx); err != nil {
			return fmt.Errorf("fetch the files of rows that this node lacks (--without-files leaves them out): %w", err)
		}
	} else {
		named, err := l.Releases.ReferencedBlobs(ctx)
		if err != nil {
			return err
		}
		ofReleases = func(d store.Digest) bool { return named[d] }
	}
	_, err := backup.Write(ctx, l.Store, l.Keys, app, w, ofReleases)
	return err
}

// backupRequest reads the arguments of a backup; without any it has all.
func backupRequest(args []byte) (request admin.BackupRequest, err error) {
	if len(args) > 0 {
		err = readJSON(args, &request)
	}
	return request, err
}

// recordBackup notes a backup that has arrived, unless a newer one is noted.
func (l *Local) recordBackup(_ context.Context, _ keystore.Authority, now backup.Last) (backup.Last, error) {
	if applied := uint64(l.Store.Health().Applied); now.Created.IsZero() || now.Bytes <= 0 || now.Sequence > applied {
		return now, fault.New(fault.Invalid,
			"this is not a backup of this node: created, bytes and sequence are those that `runner backup --check` prints, and its newest commit is %d", applied)
	}
	l.backups.Lock()
	defer l.backups.Unlock()
	last, err := backup.ReadLast(l.Data)
	if err == nil && last != nil && last.Created.After(now.Created) {
		return *last, nil
	}
	return now, backup.WriteLast(l.Data, now) // it also replaces a damaged file
}

// LastBackup returns the last good backup of this node; nil: there was none, or it is not known.
func (l *Local) LastBackup() *backup.Last {
	if l.Data == "" {
		return nil // a store in memory
	}
	last, _ := backup.ReadLast(l.Data)
	return last
}

// sendBackup streams a backup. When the client closes the connection or reads nothing for
// backupStall, the backup ends. An error is logged, and sent as a trailer.
func (s *responder) sendBackup(w http.ResponseWriter, r *http.Request, request admin.BackupRequest) error {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Trailer", admin.BackupError)
	out := &deadlineWriter{w: w, control: http.NewResponseController(w)}
	began := clock.Mark()
	err := s.local.backup(r.Context(), request, out)
	s.local.Metrics.Backup(err)
	if err != nil {
		s.logger.WarnContext(r.Context(), "backup failed", "cause", err)
		f := fault.Of(explained(err))
		text, _ := json.Marshal(admin.RefusalOf(f))
		w.Header().Set(admin.BackupError, string(text))
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
