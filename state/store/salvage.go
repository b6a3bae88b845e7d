package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/level"
	"runner.example/state/store/commitlog"
	"runner.example/state/store/datadir"
	"runner.example/state/store/files"
	"runner.example/state/store/retry"
	"runner.example/state/store/space"
)

// SalvageOptions configure Salvage.
type SalvageOptions struct {
	// Dir is the data directory of the damaged store. It is locked and not changed.
	Dir string
	// Into is a directory that does not exist, or is empty. It takes SalvageBytes bytes.
	Into string
	// Progress, if not nil, is called with the number of bytes read and their total.
	Progress func(done, total int64)
}

// Salvaged is the readable part of a damaged store.
type Salvaged struct {
	// Store has the newest readable version of each key. It is for reading. The caller
	// closes it and removes its directory.
	Store *Store
	// Newest is the newest commit of which data was read. Acknowledged is the newest
	// acknowledged commit, 0 if that is not known.
	Newest, Acknowledged Seq
	// Losses are the parts that could not be read, file by file.
	Losses []Loss
}

// Loss is a part of a file that could not be read.
type Loss = files.Loss

// noKey is greater than all keys.
var noKey = []byte{0xff}

// Doubtful reports whether the value or absence of key in the store may be wrong: a newer
// version or deletion may have been in a part that cannot be read.
func (s *Salvaged) Doubtful(key []byte) bool {
	whole := dataKey(nil, key)
	pieces := pieceKey(nil, key, 0)
	return slices.ContainsFunc(s.Losses, func(l Loss) bool {
		return l.Overlaps(whole, whole) || l.Overlaps(pieces[:len(pieces)-2], pieceKey(nil, key, math.MaxUint16))
	})
}

// SalvageBytes returns how much disk space Salvage needs for its copy of the store in dir.
func SalvageBytes(dir string) (int64, error) {
	const unfinished = 256 << 20 // logs, and tables that are being written
	total, err := files.Size(filepath.Join(dir, badgerName))
	if err != nil {
		return 0, err
	}
	return total + unfinished, nil
}

// Salvage copies the readable part of a damaged store, also of one that Open refuses, to a
// new store. It reads every block and every commit with a right checksum, and continues
// after a damaged one.
func Salvage(ctx context.Context, o SalvageOptions) (_ *Salvaged, err error) {
	lock, err := datadir.AcquireUnchanged(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("salvage store %q: %w", o.Dir, err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	v := &salvage{dir: filepath.Join(o.Dir, badgerName), seen: map[Seq]bool{}}
	s, err := v.run(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("salvage store %q: %w", o.Dir, err)
	}
	return s, nil
}

// salvageAhead bounds what Badger has got and not yet written to its log: one batch that is
// being written and one that is being collected.
var salvageAhead = space.Use{Log: 32 << 20, Table: 32 << 20}

// salvage is a run of Salvage.
type salvage struct {
	dir string // of Badger's files

	out          *badger.WriteBatch
	space        *space.Reserver // for what out writes
	newest       Seq
	acknowledged Seq
	seen         map[Seq]bool // commits whose record of the log was read
	floor        Seq          // of the window, from the newest record
	losses       []Loss
}

func (v *salvage) run(ctx context.Context, o SalvageOptions) (_ *Salvaged, err error) {
	v.readMark(o.Dir)
	s := &Store{dir: o.Into, clock: clock.System, log: slog.New(slog.DiscardHandler), turns: retry.New(), mark: &datadir.Mark{}, levels: level.Known()}
	data := filepath.Join(o.Into, badgerName)
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	if err := s.openTables(data); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	v.space, s.space.Ahead = &s.space, salvageAhead
	v.out = s.db.NewManagedWriteBatch()
	v.out.SetMaxPendingTxns(1)
	defer v.out.Cancel()
	in := files.Salvage{
		Dir: v.dir, Put: v.put, Progress: o.Progress,
		KeyStarts: []byte{spaceData, spacePieces, spaceMeta}, MaxUserMeta: metaPieces, MaxValueSize: pieceBytes,
	}
	if err := in.Run(ctx); err != nil {
		return nil, err
	}
	if err := v.out.Flush(); err != nil {
		return nil, err
	}
	v.losses = append(v.losses, in.Losses...)
	v.addLostCommits(in.Tails)
	if err := v.dropPieces(s.db); err != nil {
		return nil, err
	}
	newest := v.newest + 1 // dropPieces writes there
	s.machine = &machine{content: s.content, mark: s.mark, applied: newest, window: commitlog.NewWindow(1, newest)}
	s.applied.set(s.machine.position())
	if err := s.openLevel(false); fault.CodeOf(err) == fault.Invalid { // else its record is damaged
		return nil, err
	}
	startSequencer(s, nil, nil)
	return &Salvaged{Store: s, Newest: v.newest, Acknowledged: v.acknowledged, Losses: v.losses}, nil
}

func (v *salvage) readMark(dir string) {
	m, err := openMark(dir)
	if err != nil {
		v.lose(Loss{File: filepath.Join(dir, datadir.MarkName), Cause: err, Low: noKey, High: noKey})
		return
	}
	v.acknowledged = Seq(m.Seq())
	_ = m.Close()
}

func (v *salvage) lose(l Loss) { v.losses = append(v.losses, l) }

// put writes one version of a key.
func (v *salvage) put(e *files.Version) error {
	version := Seq(e.Seq)
	v.newest = max(v.newest, version)
	switch {
	case version == 0 || len(e.Key) == 0:
		return nil
	case bytes.Equal(e.Key, logKey):
		v.record(version, e.Value)
		return nil
	case e.Key[0] != spaceData && e.Key[0] != spacePieces:
		return nil
	}
	if err := v.space.Admit(space.UseOf(1, int64(len(e.Key)+len(e.Value)))); err != nil {
		return unavailable(err)
	}
	if e.Deleted {
		return v.out.DeleteAt(e.Key, e.Seq)
	}
	return v.out.SetEntryAt(badger.NewEntry(e.Key, e.Value).WithMeta(e.UserMeta), e.Seq)
}

// record remembers a record of the log.
func (v *salvage) record(version Seq, value []byte) {
	var r logRecord
	if r.decode(value) == nil && r.Seq == version {
		v.seen[version] = true
		v.floor = max(v.floor, r.floor)
	}
}

// addLostCommits adds acknowledged commits that are missing to the losses.
func (v *salvage) addLostCommits(tails []Loss) {
	if v.acknowledged == 0 || v.newest < v.acknowledged {
		v.losses = append(v.losses, tails...)
		if v.newest < v.acknowledged {
			v.lose(Loss{
				File: v.dir, Cause: fmt.Errorf(
					"commit %d was acknowledged, and commit %d is the newest that can be read", v.acknowledged, v.newest),
			})
		}
	}
	log := slices.ContainsFunc(v.losses, func(l Loss) bool { return l.Overlaps(logKey, logKey) })
	for seq := v.floor + 1; seq < v.newest && !log; seq++ {
		if !v.seen[seq] {
			v.lose(Loss{File: v.dir, Cause: fmt.Errorf("commit %d is missing", seq)})
			return
		}
	}
}

// dropPieces deletes values of which pieces are missing.
func (v *salvage) dropPieces(db *badger.DB) error {
	txn := db.NewTransactionAt(uint64(v.newest), false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceData}})
	defer it.Close()
	out := db.NewManagedWriteBatch()
	defer out.Cancel()
	for it.Rewind(); it.Valid(); it.Next() {
		item := it.Item()
		if item.UserMeta() != metaPieces {
			continue
		}
		if _, err := readValue(txn, item); err != nil {
			key := item.KeyCopy(nil)
			v.lose(Loss{File: v.dir, Cause: fmt.Errorf("a value of several pieces: %w", err), Low: key, High: key})
			if err := out.DeleteAt(key, uint64(v.newest)+1); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}
