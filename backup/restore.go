package backup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"runner.example/internal/atomicio"
	"runner.example/keystore"
	"runner.example/store"
)

// RestoreOptions say where Restore puts what.
type RestoreOptions struct {
	// Dir is the data directory to make. It must not exist, or be empty.
	Dir string
	// Pepper is the path of the pepper of the backed-up store.
	Pepper string
	// KeepPepper: the server reads the pepper at that path. Otherwise it is copied into the
	// data directory.
	KeepPepper bool
}

// ErrNotEmpty matches the error of a Restore into a directory that has files.
var ErrNotEmpty = errors.New("the data directory is not empty")

// Restore makes a data directory from a backup. It appears complete or not at all. The error
// matches ErrInvalid if the backup is not intact, and ErrNotEmpty.
func Restore(ctx context.Context, r io.Reader, opt RestoreOptions) (info Info, err error) {
	if err := checkEmpty(opt.Dir); err != nil {
		return Info{}, err
	}
	dir, err := filepath.Abs(opt.Dir)
	if err != nil {
		return Info{}, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return Info{}, err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-restoring-")
	if err != nil {
		return Info{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }() // nothing is there after the rename
	if info, err = restoreInto(ctx, r, work, opt.Pepper); err != nil {
		return Info{}, err
	}
	if !opt.KeepPepper {
		text, err := os.ReadFile(opt.Pepper)
		if err != nil {
			return Info{}, err
		}
		if err := atomicio.WriteFile(keystore.Options{Dir: work}.PepperPath(), text); err != nil {
			return Info{}, err
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Info{}, fmt.Errorf("%w: %w", ErrNotEmpty, err)
	}
	if err := os.Rename(work, dir); err != nil {
		return Info{}, err
	}
	return info, atomicio.SyncDir(filepath.Dir(dir))
}

func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%w: %s", ErrNotEmpty, dir)
	}
	return nil
}

func restoreInto(ctx context.Context, r io.Reader, dir, pepper string) (info Info, err error) {
	st, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		return Info{}, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	counted := newCounter(r)
	err = st.Restore(ctx, counted, func(line []byte) error {
		if info.Head, err = parseHead(line); err != nil {
			return err
		}
		check, err := hex.DecodeString(info.PepperCheck)
		if err != nil {
			return ErrInvalid
		}
		return keystore.CheckPepper(pepper, check)
	})
	if err != nil {
		return Info{}, invalid(err)
	}
	info.Bytes, info.SHA256 = counted.n, hex.EncodeToString(counted.sum.Sum(nil))
	return info, nil
}
