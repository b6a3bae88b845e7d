package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/ristretto/v2/z"
	"golang.org/x/sys/unix"

	"runner.example/store/files"
)

// space refuses commits that do not fit on the disk, before Badger sees them.
//
// Badger appends each commit to its log, a mapping of a sparse file
// (<n>.mem), beside a table in memory of the same content. When either is full
// it makes the file <n+1>.mem and goes on there, and writes the table to a file
// (<m>.sst) in the background, after which <n>.mem is deleted:
//
//	00007.mem  header | commits … |<- reserved ->| hole …
//	00008.mem  reserved and empty, made when Badger may need it next
//
// A write to a page that does not fit on the file system would end the process,
// so space reserves what a commit takes before it is handed to Badger, and the
// file that comes next: Badger could not go on without it. Tables reserve their
// own room and wait for it (see third_party/ristretto), so commits are refused
// as well when less is free than the tables of what was committed will take.
//
// How far Badger has come is not known but bounded: what a commit adds at most
// is counted.
type space struct {
	dir   string // of Badger's files; "" in memory
	log   *slog.Logger
	need  atomic.Int64            // what has to be free
	short atomic.Pointer[refusal] // the newest refusal; nil after a commit

	// What follows is for the goroutine that applies.
	file     *os.File // Badger's log
	id       int      // its number
	reserved int64    // bytes of file
	used     diskUse  // at most, of file and of the table in memory
	last     diskUse  // of the newest commit
	next     *os.File // nil unless it is made
	flushing []flushed
	ahead    diskUse // what Badger may not have been given yet of what is counted
}

// diskUse is how much space a commit takes at most.
type diskUse struct {
	log   int64 // bytes of Badger's log
	table int64 // bytes of its table in memory
}

func (r *diskUse) add(o diskUse) { r.log += o.log; r.table += o.table }

// flushed is a log whose table is being written.
type flushed struct {
	path  string
	bytes int64
}

type refusal struct {
	cause error
	at    time.Time
}

const (
	// What Badger's log adds to a key and a value: a header of at most 22
	// bytes, the version and a checksum.
	logEntryBytes = 22 + 8 + 4
	// What the table in memory adds: a node of at most 96 bytes, the version
	// and what goes before a value.
	tableEntryBytes = 96 + 8 + 16

	// logSlack is reserved after what is counted: Badger clears the header
	// that comes next, and reads some way past the end at the next start.
	logSlack     = 64 << 10
	logStep      = 8 << 20
	logFileBytes = 2 * files.MemTableBytes
	// nextBytes is reserved of the file that comes next: the largest commit.
	nextBytes = 16 << 20
	// manifestBytes is reserved after the end of the list of tables. A record
	// that is cut short there would spoil it.
	manifestBytes = 64 << 10

	// openBytes is what Badger takes to open: the heads of three files.
	openBytes = 1 << 20
	// maxUnflushed is with how many logs Badger opens while their tables wait.
	maxUnflushed = 3

	// floorBytes is left to the operating system and to other files.
	floorBytes = 8 << 20
	// shortWait is for how long a refusal counts that the file system's free
	// bytes do not explain, a quota's say, if nothing is committed meanwhile.
	shortWait = 5 * time.Second
)

// prepare makes the files that an earlier process has left such that Badger can
// open them.
func (s *space) prepare() error {
	s.close()
	logs, err := s.logs()
	if err != nil {
		return err
	}
	need := int64(openBytes)
	if err := s.checkFreeBytes(need); err != nil {
		return err
	}
	for _, l := range logs {
		size, err := prepareLog(l.path)
		if err != nil {
			return fmt.Errorf("prepare %s: %w", l.path, err)
		}
		if len(logs) > maxUnflushed {
			need += size
		}
	}
	if err := s.reserveManifest(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.checkFreeBytes(need)
}

// prepareLog reserves what Badger reads past the end of a log's content: a tmpfs
// without room cannot give even zeros. It returns how much the log holds at most.
func prepareLog(path string) (int64, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	hole, err := f.Seek(0, unix.SEEK_HOLE)
	if err != nil || hole >= size {
		return size, nil // no hole, or a file system that has none
	}
	return hole, reserve(f, hole, min(logSlack, size-hole))
}

// reserve reserves n bytes of f, where the file system can.
func reserve(f *os.File, off, n int64) error {
	err := z.Reserve(f, off, n)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

type logFile struct {
	path string
	id   int
}

// logs returns Badger's logs, in their order.
func (s *space) logs() ([]logFile, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var logs []logFile
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), files.LogExt)
		if id, err := strconv.Atoi(name); ok && err == nil {
			logs = append(logs, logFile{filepath.Join(s.dir, e.Name()), id})
		}
	}
	slices.SortFunc(logs, func(a, b logFile) int { return a.id - b.id })
	return logs, nil
}

// attach looks for the log that Badger has just begun. Room is reserved when
// the first commit comes, so that a store whose disk is full can be read.
func (s *space) attach() error {
	if s.dir == "" {
		return nil
	}
	s.close()
	logs, err := s.logs()
	if err != nil {
		return err
	}
	if len(logs) == 0 {
		return errors.New("no log of Badger found")
	}
	current := logs[len(logs)-1]
	if s.file, err = os.OpenFile(current.path, os.O_RDWR, 0); err != nil {
		return err
	}
	s.id, s.reserved, s.used, s.last = current.id, 0, diskUse{log: files.LogHead}, diskUse{}
	s.flushing = nil
	for _, l := range logs[:len(logs)-1] {
		if info, err := os.Stat(l.path); err == nil { // else it was flushed just now
			s.flushing = append(s.flushing, flushed{l.path, info.Size()})
		}
	}
	s.need.Store(s.needed(diskUse{}))
	return nil
}

// close closes the files, and removes what was made for Badger to go on with if
// it has not.
func (s *space) close() {
	if s.file != nil {
		s.file.Close()
	}
	if s.next != nil {
		if info, err := s.next.Stat(); err == nil && info.Size() == 0 {
			os.Remove(s.next.Name())
		}
		s.next.Close()
	}
	s.file, s.next = nil, nil
}

// admit reserves disk space for a commit that takes r. After an error nothing has
// changed.
func (s *space) admit(r diskUse) error {
	if s.dir == "" {
		return nil
	}
	err := s.reserveFor(r)
	was := s.short.Load()
	if err != nil {
		s.short.Store(&refusal{err, time.Now()})
		if was == nil {
			s.log.Error("disk full, writes refused", "cause", err)
		}
		return err
	}
	if was != nil {
		s.short.Store(nil)
		s.log.Info("disk has space, writes accepted")
	}
	s.last = r
	s.used.add(r)
	return nil
}

func (s *space) reserveFor(r diskUse) error {
	if err := s.look(); err != nil {
		return err
	}
	s.need.Store(s.needed(r))
	if err := s.checkFree(); err != nil {
		return err
	}
	if end := s.used.log + r.log + logSlack; end > s.reserved && s.reserved < logFileBytes {
		end = min(end+logStep, logFileBytes)
		if err := reserve(s.file, s.reserved, end-s.reserved); err != nil {
			return fmt.Errorf("reserve space in %s: %w", s.file.Name(), err)
		}
		s.reserved = end
		if err := s.reserveManifest(); err != nil {
			return err
		}
	}
	if s.next == nil && max(s.used.log, s.used.table) >= files.MemTableBytes {
		return s.makeNext()
	}
	return nil
}

// look finds out how far Badger has come.
func (s *space) look() error {
	s.flushing = slices.DeleteFunc(s.flushing, func(f flushed) bool {
		_, err := os.Stat(f.path)
		return errors.Is(err, fs.ErrNotExist)
	})
	if s.next == nil {
		return nil
	}
	info, err := s.next.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	s.flushing = append(s.flushing, flushed{s.file.Name(), s.used.log})
	s.file.Close()
	s.file, s.next = s.next, nil
	s.id++
	s.reserved = s.nextBytes()
	s.used = s.last // all that the new log may hold
	s.used.add(s.ahead)
	s.used.log += files.LogHead
	return nil
}

// needed returns how many bytes have to be free for the tables of what was
// committed, and of r.
func (s *space) needed(r diskUse) int64 {
	n := floorBytes + s.used.log + r.log
	for _, f := range s.flushing {
		n += f.bytes
	}
	return n
}

// checkFree returns why there is not enough room for tables, nil if there is.
func (s *space) checkFree() error {
	switch err := z.Waiting(s.dir); {
	case isDiskFull(err):
		return fmt.Errorf("the disk is full: a table waits to be written: %w", err)
	case err != nil:
		return fmt.Errorf("a table waits to be written: %w", err)
	}
	return s.checkFreeBytes(s.need.Load())
}

func (s *space) checkFreeBytes(need int64) error {
	free, err := freeBytes(filepath.Dir(s.dir)) // the folder itself may have to be made
	if err != nil {
		return err
	}
	if free < need {
		return fmt.Errorf("the disk is full: %s are free in %s and %s are needed", mib(free), s.dir, mib(need))
	}
	return nil
}

// makeNext makes the log that Badger goes on with.
func (s *space) makeNext() error {
	path := filepath.Join(s.dir, fmt.Sprintf("%05d%s", s.id+1, files.LogExt))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := reserve(f, 0, s.nextBytes()); err != nil {
		return errors.Join(fmt.Errorf("reserve space in %s: %w", path, err), f.Close(), os.Remove(path))
	}
	s.next = f
	return nil
}

// nextBytes is how much of a new log may be written before it is seen.
func (s *space) nextBytes() int64 { return nextBytes + s.ahead.log }

// reserveManifest reserves room after Badger's list of tables.
func (s *space) reserveManifest() error {
	f, err := os.OpenFile(filepath.Join(s.dir, badger.ManifestFilename), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if err := reserve(f, end, manifestBytes); err != nil {
		return fmt.Errorf("reserve space in %s: %w", f.Name(), err)
	}
	return nil
}

// reason returns why there is not enough disk space for a commit, nil if there is. Any
// goroutine may call it.
func (s *space) reason() error {
	if s.dir == "" {
		return nil
	}
	if err := s.checkFree(); err != nil {
		return err
	}
	if r := s.short.Load(); r != nil && time.Since(r.at) < shortWait {
		return r.cause
	}
	return nil
}

// isDiskFull reports whether err says that the disk or a quota is full.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// freeBytes returns how much may be written in dir; a file system that does not
// tell has room.
func freeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	for {
		switch err := unix.Statfs(dir, &s); err {
		case nil:
			if s.Blocks == 0 {
				return math.MaxInt64, nil
			}
			return int64(s.Bavail) * int64(s.Bsize), nil
		case syscall.EINTR:
		default:
			return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
		}
	}
}

func mib(n int64) string { return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MiB" }

// diskUse returns how much of Badger's files e takes; cut is as for stage.
func (e *entry) diskUse(cut map[string]int) diskUse {
	keys, bytes := 3, 512 // the record of the log and the mark of the end
	for _, p := range e.proposals {
		if p.verdict.outcome != committed {
			continue
		}
		for i := range p.writes {
			w := &p.writes[i]
			k := stagedKeys(w, cut)
			keys += k
			bytes += len(w.value) + k*(len(w.key)+8)
		}
	}
	return diskUseOf(keys, int64(bytes))
}

// diskUseOf returns what so many keys take, whose keys and values are of so many
// bytes.
func diskUseOf(keys int, bytes int64) diskUse {
	return diskUse{bytes + int64(keys)*logEntryBytes, bytes + int64(keys)*tableEntryBytes}
}
