package space

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dgraph-io/badger/v4"

	"runner.example/internal/clock"
	"runner.example/internal/system/disk"
)

// Reserver refuses commits that do not fit on the disk, before Badger sees them.
//
// Badger appends each commit to its log, a mapping of a sparse file
// (<n>.mem), and adds it to a table in memory of the same content. When either is full
// it creates the file <n+1>.mem and continues there, and writes the table to a file
// (<m>.sst) in the background, after which <n>.mem is deleted:
//
//	00007.mem  header | commits … |<- reserved ->| hole …
//	00008.mem  reserved and empty, created when Badger may need it next
//
// A write to a page that does not fit on the file system would end the process. So the
// Reserver reserves the space of a commit before Badger gets it, and the next file, without
// which Badger could not continue. Tables reserve their space when they are written, and
// wait for it (see third_party/ristretto). So commits are also refused if less space is
// free than the tables of the committed data will take.
//
// The position of Badger in its log is not known. The Reserver counts the most that each
// commit can add.
//
// The fields are set before Prepare. Prepare is called before Badger opens the files, and
// Attach after that; both again after Badger was closed. All methods except Reason, AdmitFile,
// AdmitUpload and Waiting are for the goroutine that commits.
type Reserver struct {
	Dir string // of Badger's files; "" in memory, where everything fits
	Log *slog.Logger
	// MemTableBytes is the size of Badger's tables in memory.
	MemTableBytes int64
	// Ahead is how much of what is counted Badger may not have got yet. It is for the
	// goroutine that calls Admit.
	Ahead Use

	need  atomic.Int64            // bytes that must be free
	short atomic.Pointer[refusal] // the newest refusal; nil after a commit

	// The fields below are for the goroutine that applies.
	file     *os.File // Badger's log
	id       int      // its number
	reserved int64    // bytes of file
	used     Use      // at most, of file and of the table in memory
	last     Use      // of the newest commit
	next     *os.File // nil until it is created
	flushing []flushed
}

// Use is how much space a commit takes at most.
type Use struct {
	Log   int64 // bytes of Badger's log
	Table int64 // bytes of its table in memory
}

// Add adds o to r.
func (r *Use) Add(o Use) { r.Log += o.Log; r.Table += o.Table }

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
	// The format of Badger's logs, as in package files.
	logExt  = ".mem"
	logHead = 20 // bytes before the first entry of a log

	// The bytes that Badger's log adds to a key and a value: a header of at most 22
	// bytes, the version and a checksum.
	logEntryBytes = 22 + 8 + 4
	// The bytes that the table in memory adds: a node of at most 96 bytes, the version
	// and the head of a value.
	tableEntryBytes = 96 + 8 + 16

	// logSlack is reserved after what is counted: Badger clears the next header, and reads
	// some bytes past the end at the next start.
	logSlack = 64 << 10
	logStep  = 8 << 20
	// nextBytes is reserved of the next file: the largest commit.
	nextBytes = 16 << 20
	// manifestBytes is reserved after the end of the list of tables. A partly written
	// record there would damage it.
	manifestBytes = 64 << 10

	// openBytes is what Badger needs to open: the heads of three files.
	openBytes = 1 << 20
	// maxUnflushed is the number of logs with which Badger opens before it writes tables.
	maxUnflushed = 3

	// floorBytes is left to the operating system and to other files.
	floorBytes = 8 << 20
	// shortWait is how long Reason reports a refusal that the free bytes of the file system
	// do not explain, such as one by a quota, if nothing is committed meanwhile.
	shortWait = 5 * time.Second
)

// Prepare reserves what Badger needs to open the files of an earlier process.
func (s *Reserver) Prepare() error {
	s.Close()
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

// prepareLog reserves what Badger reads past the end of a log's content: on a full tmpfs not
// even zeros can be read. It returns the most that the log can have.
func prepareLog(path string) (int64, error) {
	f, err := disk.Open(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	hole, size, err := disk.Hole(f)
	if err != nil || hole == size {
		return size, err
	}
	return hole, disk.Reserve(f, hole, min(logSlack, size-hole))
}

type logFile struct {
	path string
	id   int
}

// logs returns Badger's logs, in their order.
func (s *Reserver) logs() ([]logFile, error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var logs []logFile
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), logExt)
		if id, err := strconv.Atoi(name); ok && err == nil {
			logs = append(logs, logFile{filepath.Join(s.Dir, e.Name()), id})
		}
	}
	slices.SortFunc(logs, func(a, b logFile) int { return a.id - b.id })
	return logs, nil
}

// Attach finds the log that Badger has just created. Space is reserved at the first commit,
// so that a store on a full disk can be read.
func (s *Reserver) Attach() error {
	if s.Dir == "" {
		return nil
	}
	s.Close()
	logs, err := s.logs()
	if err != nil {
		return err
	}
	if len(logs) == 0 {
		return errors.New("no log of Badger found")
	}
	current := logs[len(logs)-1]
	if s.file, err = disk.Open(current.path, os.O_RDWR, 0); err != nil {
		return err
	}
	s.id, s.reserved, s.used, s.last = current.id, 0, Use{Log: logHead}, Use{}
	s.flushing = nil
	for _, l := range logs[:len(logs)-1] {
		if info, err := os.Stat(l.path); err == nil { // otherwise it was just flushed
			s.flushing = append(s.flushing, flushed{l.path, info.Size()})
		}
	}
	s.need.Store(s.needed(Use{}))
	return nil
}

// Close closes the files, and removes the next log if Badger has not used it.
func (s *Reserver) Close() {
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

// Admit reserves disk space for a commit that takes r. After an error the commit must not be
// made, and nothing has changed.
func (s *Reserver) Admit(r Use) error {
	if s.Dir == "" {
		return nil
	}
	err := s.reserveFor(r)
	was := s.short.Load()
	if err != nil {
		s.short.Store(&refusal{err, clock.Mark()})
		if was == nil {
			s.Log.Error("disk full, writes refused", "cause", err)
		}
		return err
	}
	if was != nil {
		s.short.Store(nil)
		s.Log.Info("disk has space, writes accepted")
	}
	s.last = r
	s.used.Add(r)
	return nil
}

func (s *Reserver) reserveFor(r Use) error {
	if err := s.follow(); err != nil {
		return err
	}
	s.need.Store(s.needed(r))
	if err := s.checkFree(); err != nil {
		return err
	}
	if end := s.used.Log + r.Log + logSlack; end > s.reserved && s.reserved < s.logFileBytes() {
		end = min(end+logStep, s.logFileBytes())
		if err := disk.Reserve(s.file, s.reserved, end-s.reserved); err != nil {
			return fmt.Errorf("reserve space in %s: %w", s.file.Name(), err)
		}
		s.reserved = end
		if err := s.reserveManifest(); err != nil {
			return err
		}
	}
	if s.next == nil && max(s.used.Log, s.used.Table) >= s.MemTableBytes {
		return s.makeNext()
	}
	return nil
}

// follow finds out which log Badger writes to, and which tables it has written.
func (s *Reserver) follow() error {
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
	s.flushing = append(s.flushing, flushed{s.file.Name(), s.used.Log})
	s.file.Close()
	s.file, s.next = s.next, nil
	s.id++
	s.reserved = s.nextBytes()
	s.used = s.last // the most that the new log can have
	s.used.Add(s.Ahead)
	s.used.Log += logHead
	return nil
}

// needed returns how many bytes must be free for the tables of what was committed, and of r.
func (s *Reserver) needed(r Use) int64 {
	n := floorBytes + s.used.Log + r.Log
	for _, f := range s.flushing {
		n += f.bytes
	}
	return n
}

// checkFree returns an error if there is not enough space for tables.
func (s *Reserver) checkFree() error {
	switch err := s.Waiting(); {
	case IsFull(err):
		return fmt.Errorf("the disk is full, a table cannot be written: %w", err)
	case err != nil:
		return fmt.Errorf("a table cannot be written: %w", err)
	}
	return s.checkFreeBytes(s.need.Load())
}

func (s *Reserver) checkFreeBytes(need int64) error {
	free, _, err := disk.Space(filepath.Dir(s.Dir)) // the directory itself may not exist yet
	if err != nil {
		return err
	}
	if free < need {
		return shortage(fmt.Sprintf("the disk is full: %s are free in %s and %s are needed", mib(free), s.Dir, mib(need)))
	}
	return nil
}

// shortage is the error that less is free than needed. IsFull is true of it.
type shortage string

func (e shortage) Error() string        { return string(e) }
func (e shortage) Is(target error) bool { return target == syscall.ENOSPC }

// AdmitFile returns an error if a file of that many bytes, which Badger does not write, leaves
// too little space for Badger. It reserves nothing. It is safe for concurrent use.
func (s *Reserver) AdmitFile(bytes int64) error {
	return s.checkFreeBytes(bytes + openBytes + floorBytes)
}

// AdmitUpload returns an error if uploads that have written none of so many bytes leave too little space for the tables of
// what was committed, and for the next commits: those of about half a table in memory. It reserves nothing. It is safe for
// concurrent use.
func (s *Reserver) AdmitUpload(bytes int64) error {
	return s.checkFreeBytes(bytes + s.need.Load() + s.MemTableBytes + nextBytes)
}

// makeNext creates the log that Badger continues with.
func (s *Reserver) makeNext() error {
	path := filepath.Join(s.Dir, fmt.Sprintf("%05d%s", s.id+1, logExt))
	f, err := disk.Open(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := disk.Reserve(f, 0, s.nextBytes()); err != nil {
		return errors.Join(fmt.Errorf("reserve space in %s: %w", path, err), f.Close(), os.Remove(path))
	}
	s.next = f
	return nil
}

// logFileBytes returns the size of the sparse file of a log.
func (s *Reserver) logFileBytes() int64 { return 2 * s.MemTableBytes }

// nextBytes returns how much of a new log may be written before follow detects it.
func (s *Reserver) nextBytes() int64 { return nextBytes + s.Ahead.Log }

// reserveManifest reserves space after Badger's list of tables.
func (s *Reserver) reserveManifest() error {
	if !disk.CanReserve {
		return nil // Windows does not let Badger replace the list while it is open here
	}
	f, err := disk.Open(filepath.Join(s.Dir, badger.ManifestFilename), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if err := disk.Reserve(f, end, manifestBytes); err != nil {
		return fmt.Errorf("reserve space in %s: %w", f.Name(), err)
	}
	return nil
}

// Reason returns why there is not enough disk space for a commit, nil if there is. It is
// safe for concurrent use.
func (s *Reserver) Reason() error {
	if s.Dir == "" {
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

// IsFull reports whether err says that the disk or a quota is full.
func IsFull(err error) bool { return disk.IsFull(err) }

func mib(n int64) string { return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MiB" }

// UseOf returns what that many keys take, with that many bytes of keys and values.
func UseOf(keys int, bytes int64) Use {
	return Use{bytes + int64(keys)*logEntryBytes, bytes + int64(keys)*tableEntryBytes}
}
