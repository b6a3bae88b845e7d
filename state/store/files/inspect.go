package files

import (
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

// directory is a directory of Badger's files that is being inspected.
type directory struct {
	dir string
	// newest is the newest commit in the files that has all earlier ones.
	newest uint64
	// suspect is the file that most likely had the missing commits; ends says how it ends.
	suspect, ends string
}

// verifyAtOpen is how many bytes of tables Open reads in full, the newest first: so few
// that a large store opens as fast as a small one. WaitChecked waits for the others.
const verifyAtOpen = 16 << 20

// Inspect reads the files in dir and checks that they are whole and that the log in them
// reaches at least entry least. It changes nothing. The error matches ErrDamaged and names
// the damaged file, or says why a file cannot be read.
func Inspect(dir string, least uint64) error {
	f := &directory{dir: dir}
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
		return f.missing(fmt.Errorf("commit %d is the last that can be read, and commit %d was acknowledged",
			f.newest, least))
	}
	return nil
}

// missing reports missing commits as damage of the file that most likely had them.
func (f *directory) missing(err error) error {
	if f.suspect == "" {
		return Damaged(f.dir, "%w: a file was removed, or the files are from different times", err)
	}
	return Damaged(f.suspect, "%s: %w", f.ends, err)
}

// manifest returns the tables of the store; nil if there are no files.
func (f *directory) manifest(least uint64) (map[uint64]badger.TableManifest, error) {
	path := filepath.Join(f.dir, badger.ManifestFilename)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		left, err := f.list(TableExt, LogExt)
		if err != nil || len(left) == 0 && least == 0 {
			return nil, err
		}
		return nil, Damaged(path, "it is missing: it lists the tables of the store")
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	m, end, err := badger.ReplayManifestFile(file, 0, badger.Options{})
	if err != nil {
		return nil, InFile(path, err)
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
func (f *directory) list(exts ...string) ([]string, error) {
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

// tables checks the index of each table, and the newest tables in full.
func (f *directory) tables(all map[uint64]badger.TableManifest) error {
	ids := make([]uint64, 0, len(all))
	for id := range all {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	left := int64(verifyAtOpen)
	for _, id := range ids {
		seq, n, err := CheckTable(TablePath(f.dir, id), left)
		if err != nil {
			return err
		}
		f.newest, left = max(f.newest, seq), left-n
	}
	return nil
}

// CheckTable checks a table: in full if its blocks have at most limit bytes, otherwise only
// its index. It returns the newest commit in it and the size of its blocks. Damage matches
// ErrDamaged; so does a missing table.
func CheckTable(path string, limit int64) (newest uint64, size int64, err error) {
	t, err := OpenTable(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, Damaged(path, "it is missing, but the manifest names it")
	}
	if err != nil {
		return 0, 0, err
	}
	defer t.Close()
	if t.BlockBytes <= limit {
		err = t.check()
	}
	return t.Index.MaxVersion(), t.BlockBytes, err
}

// logs checks that the logs of the memtables continue the tables and each other: Badger
// removes a log when the manifest names its table.
func (f *directory) logs() error {
	paths, err := f.list(LogExt)
	if err != nil {
		return err
	}
	slices.SortFunc(paths, func(a, b string) int { return int(fileNumber(a)) - int(fileNumber(b)) })
	for _, path := range paths {
		w, err := readWAL(path)
		if err != nil {
			return InFile(path, err)
		}
		if w.beyond > max(f.newest, w.last)+1 {
			return Damaged(path, "%s", w.endsAt())
		}
		if w.last <= f.newest && !w.torn {
			continue // its table exists
		}
		if w.first > f.newest+1 && !w.loose {
			return f.missing(fmt.Errorf("commits %d to %d are missing", f.newest+1, w.first-1))
		}
		f.newest = max(f.newest, w.last)
		if f.suspect == "" || w.torn {
			f.suspect, f.ends = path, w.endsAt()
		}
	}
	return nil
}

// RemoveEmptyLogs removes the empty logs in dir that a process leaves if it ends while Badger
// creates or removes a log. Badger does not open a store with one.
func RemoveEmptyLogs(dir string) error {
	paths, err := (&directory{dir: dir}).list(LogExt, valueLogExt)
	for _, path := range paths {
		info, e := os.Stat(path)
		if e == nil && info.Size() == 0 {
			e = os.Remove(path)
		}
		err = errors.Join(err, e)
	}
	return err
}

// fileNumber returns the number that is the name of one of Badger's files.
func fileNumber(path string) uint64 {
	name := filepath.Base(path)
	n, _ := strconv.ParseUint(strings.TrimSuffix(name, filepath.Ext(name)), 10, 32) // Badger refuses other names
	return n
}

// unused checks the files of Badger features that the store does not use: encryption keys and
// the value log.
func (f *directory) unused() error {
	registry := filepath.Join(f.dir, badger.KeyRegistryFileName)
	b, err := os.ReadFile(registry)
	const vector, text = 16, "Hello Badger"
	if err == nil && (len(b) != vector+len(text) || string(b[vector:]) != text) {
		err = Damaged(registry, "it must hold %d random bytes and %q", vector, text)
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
		return nil // RemoveEmptyLogs removes it
	} else if err != nil {
		return InFile(path, err)
	}
	if binary.BigEndian.Uint64(keyID[:]) != 0 {
		return Damaged(path, "its header names an encryption key, but stores are not encrypted")
	}
	return nil
}
