package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"runner.example/node/backup"
)

// BackupRequest says what a backup has.
type BackupRequest struct {
	// WithoutFiles leaves out the contents of the files of rows. The rows describe them.
	WithoutFiles bool `json:"withoutFiles,omitempty"`
}

// Backup writes a backup of the node to w; package backup describes it. The backup ends if w
// returns an error or ctx ends. The caller must check what w received, because the connection
// may break.
func (c *Client) Backup(ctx context.Context, request BackupRequest, w io.Writer) error {
	return c.transport.Backup(ctx, request, w)
}

// RecordBackup tells the node that a backup has arrived complete at its destination, and returns the last good one:
// the node that sends a backup cannot know that.
func (c *Client) RecordBackup(ctx context.Context, info backup.Info) (backup.Last, error) {
	return ask(ctx, c, OpRecordBackup, backup.Last{Created: info.Created, Bytes: info.Bytes, Sequence: info.Sequence})
}

// Backup copies the backup that a server sends.
func (p *peer) Backup(ctx context.Context, request BackupRequest, w io.Writer) error {
	args, err := json.Marshal(request)
	if err != nil {
		return err
	}
	answer, err := p.receive(ctx, OpBackup.Name, args, w)
	if err != nil {
		return err
	}
	if text := answer.Trailer.Get(BackupError); text != "" {
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
