package files

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"google.golang.org/protobuf/proto"

	"runner.example/internal/system/disk"
)

// TableWriter writes the tables of a database that has no data and is not open. Badger
// itself writes each key to its log, to its memtable and then to tables of several levels.
//
// The tables are on the lowest level, and the manifest names them when all are on disk.
// Until Finish has returned nil, Discard leaves the database as it was. It is for one
// goroutine.
type TableWriter struct {
	opt   badger.Options
	admit func(bytes int64) error

	builder *table.Builder
	entries int64 // bytes of keys and values in builder
	order   Order
	key     []byte // scratch for a key with its version
	tables  uint64
	content []byte     // of the table that is being written
	writing chan error // its result; nil if none is being written
}

const (
	// writeTableBytes is the size of a table. One is built while the one before is written.
	writeTableBytes = 8 << 20
	// maxTableBytes bounds the entries of a table: Badger does not split the versions of one
	// key, and its offsets have 32 bits.
	maxTableBytes = 1 << 30
)

// NewTableWriter returns a writer for the database that is opened with opt. It calls admit
// with the size of each table before it writes it, on another goroutine. An error of admit
// is the error of a later call.
func NewTableWriter(opt badger.Options, admit func(bytes int64) error) *TableWriter {
	return &TableWriter{opt: opt, admit: admit}
}

// Add adds a version, of whose bytes it keeps none. If it does not come in the order of a
// table, the error matches ErrOrder.
func (w *TableWriter) Add(v *Version) error {
	same, err := w.order.Next(v)
	if err != nil {
		return err
	}
	if w.builder != nil && !same && w.builder.ReachedCapacity() {
		if err := w.writeTable(); err != nil {
			return err
		}
	}
	if w.builder == nil {
		w.builder, w.entries = table.NewTableBuilder(w.tableOptions()), 0
	}
	w.key = binary.BigEndian.AppendUint64(append(w.key[:0], v.Key...), math.MaxUint64-v.Seq)
	if w.entries += int64(len(w.key) + len(v.Value)); w.entries > maxTableBytes {
		return fmt.Errorf("the versions of one key take more than %d bytes", maxTableBytes)
	}
	w.builder.Add(w.key, y.ValueStruct{Meta: v.meta(), UserMeta: v.UserMeta, Value: v.Value}, 0)
	return nil
}

// tableOptions returns the options with which Badger makes a table.
func (w *TableWriter) tableOptions() table.Options {
	return table.Options{
		TableSize:          writeTableBytes,
		BlockSize:          w.opt.BlockSize,
		BloomFalsePositive: w.opt.BloomFalsePositive,
		Compression:        w.opt.Compression,
	}
}

// writeTable begins to write the table that is built, when the one before is on disk.
func (w *TableWriter) writeTable() error {
	if err := w.wait(); err != nil {
		return err
	}
	built := w.builder.Done()
	w.content = slices.Grow(w.content[:0], built.Size)[:built.Size]
	built.Copy(w.content)
	w.closeBuilder()
	w.tables++
	done, path := make(chan error, 1), TablePath(w.opt.Dir, w.tables)
	go func() { done <- w.write(path) }()
	w.writing = done
	return nil
}

// wait returns when no table is being written.
func (w *TableWriter) wait() error {
	if w.writing == nil {
		return nil
	}
	err := <-w.writing
	w.writing = nil
	return err
}

func (w *TableWriter) closeBuilder() {
	if w.builder != nil {
		w.builder.Close()
		w.builder = nil
	}
}

func (w *TableWriter) write(path string) error {
	if err := w.admit(int64(len(w.content))); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(w.content)
	return errors.Join(cmp.Or(err, f.Sync()), f.Close())
}

// Finish writes the rest, and then the names of the tables.
func (w *TableWriter) Finish() error {
	if w.builder != nil {
		if err := w.writeTable(); err != nil {
			return err
		}
	}
	if err := w.wait(); err != nil || w.tables == 0 {
		return err
	}
	if err := disk.SyncDir(w.opt.Dir); err != nil {
		return err
	}
	return w.nameTables()
}

// nameTables appends a change to the manifest:
//
//	length, 4 | CRC-32C, 4 | change set in the encoding of protobuf
func (w *TableWriter) nameTables() (err error) {
	var set pb.ManifestChangeSet
	for id := range w.tables {
		set.Changes = append(set.Changes, &pb.ManifestChange{
			Id: id + 1, Op: pb.ManifestChange_CREATE, Level: uint32(w.opt.MaxLevels - 1), Compression: uint32(w.opt.Compression),
		})
	}
	change, err := proto.Marshal(&set)
	if err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(change)))
	head = binary.BigEndian.AppendUint32(head, crc32.Checksum(change, castagnoli))
	f, err := os.OpenFile(filepath.Join(w.opt.Dir, badger.ManifestFilename), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Join([][]byte{head, change}, nil))
	if err = cmp.Or(err, f.Sync()); err != nil {
		return errors.Join(err, f.Truncate(end), f.Sync())
	}
	return nil
}

// Discard removes the tables, before Finish or after an error.
func (w *TableWriter) Discard() error {
	_ = w.wait() // its error is that of an earlier call, or does not matter
	w.closeBuilder()
	var err error
	for id := range w.tables {
		if e := os.Remove(TablePath(w.opt.Dir, id+1)); !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
