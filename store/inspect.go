package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"
)

// files is what lies in Badger's folder, read without Badger: it removes what its
// manifest does not name, cuts its logs off at the first byte that is not whole,
// and ends the process at some damage.
type files struct {
	dir string
	// newest is the newest commit that the files hold, with all before it.
	newest Seq
	// suspect is the file that most likely held what is missing, and how it ends.
	suspect, ends string
}

// verifyAtOpen is how many bytes of tables Open reads in whole, the newest first: few
// enough that a large store opens as fast as a small one. WaitChecked waits for the others.
const verifyAtOpen = 16 << 20

// inspect reads the files in dir and checks that they are whole and that the log
// in them reaches at least to entry least. It changes nothing.
func inspect(dir string, least Seq) error {
	f := &files{dir: dir}
	tables, err := f.manifest(least)
	if err != nil || tables == nil {
		return err
	}
	if err := f.tables(tables); err != nil {
		return err
	}
	if err := f.logs(); err != nil {
		return err
	}
	if err := f.unused(); err != nil {
		return err
	}
	if f.newest < least {
		return f.short(fmt.Errorf("commit %d is the last that can be read, and commit %d was acknowledged", f.newest, least))
	}
	return nil
}

// short tells that commits are missing, of the file that most likely held them.
func (f *files) short(err error) error {
	if f.suspect == "" {
		return damagedFile(f.dir, "%w: a file was removed, or the files are of different times", err)
	}
	return damagedFile(f.suspect, "%s: %w", f.ends, err)
}

// manifest returns the tables that make up the store; nil if there are no files.
func (f *files) manifest(least Seq) (map[uint64]badger.TableManifest, error) {
	path := filepath.Join(f.dir, badger.ManifestFilename)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		left, err := f.list(tableExt, walExt)
		if err != nil || len(left) == 0 && least == 0 {
			return nil, err
		}
		return nil, damagedFile(path, "it is missing: it lists the tables of the store")
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	m, end, err := badger.ReplayManifestFile(file, 0, badger.Options{})
	if err != nil {
		return nil, inFile(path, err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != end {
		f.suspect, f.ends = path, fmt.Sprintf("its last change, at byte %d, is incomplete", end)
	}
	return m.Tables, nil
}

// list returns the paths of the files with one of the extensions, in order.
func (f *files) list(exts ...string) ([]string, error) {
	entries, err := os.ReadDir(f.dir) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var paths []string
	for _, e := range entries {
		if slices.Contains(exts, filepath.Ext(e.Name())) {
			paths = append(paths, filepath.Join(f.dir, e.Name()))
		}
	}
	return paths, err
}

// tables checks the index of each table, and the newest tables in whole.
func (f *files) tables(all map[uint64]badger.TableManifest) error {
	ids := make([]uint64, 0, len(all))
	for id := range all {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	left := int64(verifyAtOpen)
	for _, id := range ids {
		seq, n, err := checkTable(filepath.Join(f.dir, fmt.Sprintf("%06d%s", id, tableExt)), left)
		if err != nil {
			return err
		}
		f.newest, left = max(f.newest, seq), left-n
	}
	return nil
}

// checkTable checks a table, in whole if that takes no more than most bytes. It
// returns the newest commit in it and how many bytes it is long.
func checkTable(path string, most int64) (newest Seq, size int64, err error) {
	t, err := openTable(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, damagedFile(path, "it is missing, but the manifest names it")
	}
	if err != nil {
		return 0, 0, err
	}
	defer t.close()
	if t.blocks <= most {
		err = t.check()
	}
	return Seq(t.index.MaxVersion()), t.blocks, err
}

// logs checks that the logs of the memtables follow from the tables and from each
// other: a log is removed when its table is named by the manifest.
func (f *files) logs() error {
	paths, err := f.list(walExt)
	if err != nil {
		return err
	}
	slices.SortFunc(paths, func(a, b string) int { return int(fileNumber(a)) - int(fileNumber(b)) })
	for _, path := range paths {
		w, err := readWAL(path)
		if err != nil {
			return inFile(path, err)
		}
		if w.beyond > max(f.newest, w.last)+1 {
			return damagedFile(path, "%s", w.endsAt())
		}
		if w.last <= f.newest && !w.torn {
			continue // its table is there
		}
		if w.first > f.newest+1 && !w.loose {
			return f.short(fmt.Errorf("commits %d to %d are missing", f.newest+1, w.first-1))
		}
		f.newest = max(f.newest, w.last)
		if f.suspect == "" || w.torn {
			f.suspect, f.ends = path, w.endsAt()
		}
	}
	return nil
}

// removeEmptyLogs removes the logs without a byte that a process leaves when it ends
// while Badger makes or removes a log. Badger does not open a store with one.
func removeEmptyLogs(dir string) error {
	paths, err := (&files{dir: dir}).list(walExt, valueLogExt)
	for _, path := range paths {
		info, e := os.Stat(path)
		if e == nil && info.Size() == 0 {
			e = os.Remove(path)
		}
		err = errors.Join(err, e)
	}
	return err
}

// WaitChecked waits until all tables have been read once since Open, or until ctx ends,
// and returns the damage found so far. Before that, reads detect a block whose content
// has changed, but not one whose checksum length has: they may miss its keys.
func (s *Store) WaitChecked(ctx context.Context) error {
	if s.scrubber != nil {
		select {
		case <-s.scrubber.settled:
		case <-s.scrubber.done:
		case <-ctx.Done():
		}
	}
	if cause := s.damage.Load(); cause != nil {
		return *cause
	}
	return nil
}

// Verify reads all tables and blobs of the store and checks them. The error matches
// ErrDamaged and names the first file that is not as the store wrote it, or
// ErrUnavailable. Open has checked the other files.
func (s *Store) Verify(ctx context.Context) error {
	return s.View(ctx, func(tx *Tx) error {
		if _, err := tx.Snapshot(); err != nil { // which keeps the store open
			return err
		}
		if s.scrubber != nil {
			for _, id := range s.scrubber.ids() {
				if ctx.Err() != nil {
					return unavailable(context.Cause(ctx))
				}
				if _, err := s.scrubber.check(id); err != nil {
					return err
				}
			}
		}
		digests, err := s.blobs.list()
		if err != nil {
			return err
		}
		for _, d := range digests {
			r, err := s.blobs.get(ctx, d)
			if errors.Is(err, ErrUnavailable) {
				return err
			} else if err != nil {
				return inFile(filepath.Join(s.blobs.dir, d.String()), err)
			}
			if err := r.Close(); err != nil {
				return err
			}
		}
		return nil
	})
}

// fileNumber returns the number that is the name of one of Badger's files.
func fileNumber(path string) uint64 {
	name := filepath.Base(path)
	n, _ := strconv.ParseUint(strings.TrimSuffix(name, filepath.Ext(name)), 10, 32) // else Badger refuses it
	return n
}

// unused checks the files of Badger's features that the store does not use: encryption
// keys and the value log.
func (f *files) unused() error {
	registry := filepath.Join(f.dir, badger.KeyRegistryFileName)
	b, err := os.ReadFile(registry)
	const vector, text = 16, "Hello Badger"
	if err == nil && (len(b) != vector+len(text) || string(b[vector:]) != text) {
		err = damagedFile(registry, "it must hold %d random bytes and %q", vector, text)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	paths, err := f.list(valueLogExt)
	for _, path := range paths {
		err = errors.Join(err, checkValueLog(path))
	}
	return err
}

const valueLogExt = ".vlog"

func checkValueLog(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var keyID [8]byte
	if n, err := file.ReadAt(keyID[:], 0); n == 0 && errors.Is(err, io.EOF) {
		return nil // removeEmptyLogs removes it
	} else if err != nil {
		return inFile(path, err)
	}
	if binary.BigEndian.Uint64(keyID[:]) != 0 {
		return damagedFile(path, "its header names an encryption key, but stores are not encrypted")
	}
	return nil
}
