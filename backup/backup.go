package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"runner.example/audit"
	"runner.example/internal/version"
	"runner.example/keystore"
	"runner.example/store"
	"runner.example/store/frame"
)

// Head describes a backup.
type Head struct {
	// Version is the version of the runner that wrote the backup.
	Version string `json:"version"`
	// App is the declared name of the app, or empty.
	App     string    `json:"app"`
	Created time.Time `json:"created"`
	// Sequence is the number of the newest commit in the backup.
	Sequence uint64 `json:"sequence"`
	// AuditHead is the head of the audit chain at that commit.
	AuditHead string `json:"auditHead"`
	// PepperCheck is the check value of the pepper, in hexadecimal digits.
	PepperCheck string `json:"pepperCheck"`
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
// of the app.
func Write(ctx context.Context, st *store.Store, keys *keystore.Keystore, app string, w io.Writer) (store.Seq, error) {
	return st.Backup(ctx, w, func(tx *store.Tx) ([]byte, error) {
		seq, err := tx.Snapshot()
		if err != nil {
			return nil, err
		}
		head, err := audit.HeadAt(tx)
		if err != nil {
			return nil, err
		}
		v := version.Read()
		return json.Marshal(Head{
			Version: v.Version + " (commit " + v.Commit + ")", App: app, Created: time.Now().UTC().Truncate(time.Second),
			Sequence: uint64(seq), AuditHead: head.String(), PepperCheck: hex.EncodeToString(keys.PepperCheck()),
		})
	})
}

// Check reads a whole backup. The error matches ErrInvalid if a byte has changed or is missing.
func Check(ctx context.Context, r io.Reader) (Info, error) {
	counted := newCounter(r)
	line, err := store.CheckBackup(ctx, counted)
	if err != nil {
		return Info{}, invalid(err)
	}
	head, err := parseHead(line)
	if err != nil {
		return Info{}, err
	}
	return Info{Head: head, Bytes: counted.n, SHA256: hex.EncodeToString(counted.sum.Sum(nil))}, nil
}

// counter counts and hashes what is read.
type counter struct {
	io.Reader
	n   int64
	sum hash.Hash
}

func newCounter(r io.Reader) *counter {
	sum := sha256.New()
	return &counter{Reader: io.TeeReader(r, sum), sum: sum}
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	return n, err
}

func parseHead(line []byte) (head Head, err error) {
	if err := json.Unmarshal(line, &head); err != nil {
		return head, invalid(frame.ErrDamaged)
	}
	return head, nil
}

// invalid makes errors about the content of a backup match ErrInvalid.
func invalid(err error) error {
	if errors.Is(err, frame.ErrDamaged) || errors.Is(err, frame.ErrNotBackup) {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return err
}
