package backup

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/level"
	"runner.example/internal/version"
	"runner.example/keystore"
	"runner.example/state/audit"
	"runner.example/state/store"
	"runner.example/state/store/frame"
)

// Head describes a backup.
type Head struct {
	// Version is the version of the runner that wrote the backup.
	Version string `json:"version"`
	// App is the declared name of the app, or empty.
	App string `json:"app"`
	// Created is when the backup was begun, in whole seconds.
	Created time.Time `json:"created"`
	// Sequence is the number of the newest commit in the backup.
	Sequence uint64 `json:"sequence"`
	// AuditHead is the head of the audit chain at that commit.
	AuditHead string `json:"auditHead"`
	// PepperCheck is the check value of the pepper, in hexadecimal digits.
	PepperCheck string `json:"pepperCheck"`
	// Level is that of the data; see package level.
	Level int `json:"level"`
	// WithoutFiles: the contents of the files of rows are not in the backup.
	WithoutFiles bool `json:"withoutFiles,omitempty"`
}

// Info describes a whole backup.
type Info struct {
	Head
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// ErrInvalid matches the error of a backup that is damaged, incomplete, or not a backup.
var ErrInvalid = errors.New("invalid backup")

// Write writes a backup of st to w, and returns the number of its commit. Other commits
// continue. When ctx ends, the backup ends with the error of ctx. app is the declared name
// of the app. With ofReleases the backup has no contents of files of rows: only those that ofReleases accepts.
func Write(ctx context.Context, st *store.Store, keys *keystore.Keystore, app string, w io.Writer,
	ofReleases func(store.Digest) bool) (store.Seq, error) {
	return st.Backup(ctx, w, func(tx *store.Tx) ([]byte, error) {
		seq, err := tx.Snapshot()
		if err != nil {
			return nil, err
		}
		head, err := audit.HeadAt(tx)
		if err != nil {
			return nil, err
		}
		l, err := tx.Level()
		if err != nil {
			return nil, err
		}
		v := version.Read()
		return json.Marshal(Head{
			Version: v.Version + " (commit " + v.Commit + ")", App: app, Created: clock.System().UTC().Truncate(time.Second),
			Sequence: uint64(seq), AuditHead: head.String(), PepperCheck: hex.EncodeToString(keys.PepperCheck()), Level: l,
			WithoutFiles: ofReleases != nil,
		})
	}, ofReleases)
}

// Check reads a whole backup. The error matches ErrInvalid if a byte has changed or is missing.
func Check(ctx context.Context, r io.Reader) (Info, error) {
	in, head, err := readHead(ctx, r)
	if err != nil {
		return Info{}, err
	}
	if err := store.CheckBackup(in); err != nil {
		return Info{}, invalid(err)
	}
	return describe(head, in), nil
}

// readHead reads the head of a backup.
func readHead(ctx context.Context, r io.Reader) (in *frame.Reader, head Head, err error) {
	in, line, err := frame.NewReader(ctx, r)
	if err != nil {
		return nil, head, invalid(err)
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, head, invalid(frame.ErrDamaged)
	}
	head.Level = max(head.Level, level.First) // backups of releases without levels
	return in, head, nil
}

// describe returns what is known of a backup that was read to its end.
func describe(head Head, in *frame.Reader) Info {
	n, sum := in.Total()
	return Info{Head: head, Bytes: n, SHA256: hex.EncodeToString(sum[:])}
}

// invalid makes errors about the content of a backup match ErrInvalid.
func invalid(err error) error {
	if errors.Is(err, frame.ErrDamaged) || errors.Is(err, frame.ErrNotBackup) {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return err
}
