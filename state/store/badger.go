package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"reflect"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"runner.example/state/store/files"
)

// The first byte of a key in Badger is its space, so that a user's key is never equal to one
// of the store or of Badger (which uses "!badger!").
const (
	spaceData   = 'd' // d<key>: a user's value, or how many pieces it is in
	spacePieces = 'p' // p<length of key, 2 bytes><key><number, 2 bytes>
	spaceMeta   = 'm' // mlog: see logRecord
)

// Limits. A transaction at its limit must fit into one Badger transaction, which takes 15 %
// of the memtable with which Badger opens: 10,066,329 bytes and 104,857 keys.
const (
	maxTxBytes  = 8 << 20 // of keys and values
	maxTxKeys   = 50_000
	maxKeyBytes = 64_000 // Badger takes 65,000

	// The limits of an entry, in proposal.cost and in keys.
	maxEntryBytes = 9 << 20
	maxEntryKeys  = 60_000
	// The limits of a Badger transaction, less the log's record.
	maxCommitBytes = 10_000_000
	maxCommitKeys  = 100_000
)

// memTableBytes is the size at which Badger begins a new memtable, see setMemTableBytes.
const memTableBytes = 32 << 20

// badgerName is the directory of the database in the data directory.
const badgerName = "badger"

// openBadger opens the database in dir.
//
// A compaction calls reading each time that it has read the content of a table. It calls
// compacted when it has read all its tables, before it replaces them.
func openBadger(dir string, log *slog.Logger, reading, compacted func()) (*badger.DB, error) {
	o := badgerOptions(dir)
	o.Logger = badgerLog{log, reading, compacted}
	db, err := badger.OpenManaged(o)
	if err != nil {
		return nil, err // with its error, Badger returns a half-built database
	}
	setMemTableBytes(db, memTableBytes)
	return db, nil
}

// badgerOptions returns the options of the database in dir. Memory and files are kept small:
// the defaults reserve 2 GB and reach 0.7 GB of memory.
func badgerOptions(dir string) badger.Options {
	o := badger.DefaultOptions(dir)
	o.BypassLockGuard = true // the data directory is locked
	o.SyncWrites = true
	o.DetectConflicts = false // machine.decide does it, with the window
	o.MetricsEnabled = false
	o.MemTableSize = files.MemTableBytes
	// NumMemtables are those that wait, beside one that is written to and one that becomes a table; with 0 Badger
	// can wait forever.
	o.NumMemtables = 1
	o.NumCompactors = 2
	o.NumGoroutines = 2
	o.Compression = options.None // so blocks are read where they are mapped and no cache is needed
	o.BlockCacheSize = 0
	o.IndexCacheSize = 32 << 20
	o.ChecksumVerificationMode = options.OnBlockRead
	o.ValueLogFileSize = 16 << 20 // stays empty, see pieces.go
	return o
}

// setMemTableBytes sets the size at which Badger begins a new memtable. Badger derives the
// limits of a transaction from the size with which it opens, and gives each memtable memory for
// its size and such a transaction. So it opens with files.MemTableBytes, which the limits and
// the logs of earlier versions need, and continues with smaller ones, which take less memory.
//
// It is called before the first write. Compactions may read the size meanwhile, to compare it
// with the sizes of tables, and both values are right; that is why the race detector skips it.
//
//go:norace
func setMemTableBytes(db *badger.DB, n int64) {
	d := reflect.ValueOf(db).Elem()
	for _, options := range []reflect.Value{d.FieldByName("opt"), d.FieldByName("mt").Elem().FieldByName("opt")} {
		*(*int64)(options.FieldByName("MemTableSize").Addr().UnsafePointer()) = n
	}
}

// dataKey appends the Badger key of a user's key to b.
func dataKey[T string | []byte](b []byte, key T) []byte {
	return append(append(b, spaceData), key...)
}

// pieceKey appends the Badger key of piece n of the value of key to b.
func pieceKey[T string | []byte](b []byte, key T, n int) []byte {
	b = append(b, spacePieces)
	b = binary.BigEndian.AppendUint16(b, uint16(len(key)))
	b = append(b, key...)
	return binary.BigEndian.AppendUint16(b, uint16(n))
}

// badgerLog passes Badger's log lines on. Those that Badger calls information are about its
// internals and become debug lines.
type badgerLog struct {
	log                *slog.Logger
	reading, compacted func()
}

func (l badgerLog) Errorf(f string, v ...any)   { l.line(slog.LevelError, f, v) }
func (l badgerLog) Warningf(f string, v ...any) { l.line(slog.LevelWarn, f, v) }
func (l badgerLog) Infof(f string, v ...any)    { l.line(slog.LevelDebug, f, v) }

// Debugf drops the line. Two lines report how far a compaction has read its tables.
func (l badgerLog) Debugf(f string, _ ...any) {
	switch f {
	case "[%d] LOG Compact. Added %d keys. Skipped %d keys. Iteration took: %v":
		l.reading()
	case "Discard stats: %v":
		l.compacted()
	}
}

func (l badgerLog) line(level slog.Level, format string, v []any) {
	if !l.log.Enabled(context.Background(), level) {
		return
	}
	l.log.Log(context.Background(), level, "badger: "+strings.TrimSpace(fmt.Sprintf(format, v...)))
}
