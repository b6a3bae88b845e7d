package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"time"

	"github.com/dgraph-io/badger/v4"

	"runner.example/internal/clock"
	"runner.example/internal/wait"
	"runner.example/state/store/datadir"
	"runner.example/state/store/files"
	"runner.example/state/store/frame"
	"runner.example/state/store/space"
)

const (
	keyListBytes  = 1 << 20 // a list may be one value longer
	blobDataBytes = 256 << 10
)

// Backup writes the store as of one commit, with its blobs, and returns that
// commit's number. Commits continue meanwhile. What is written is as secret as
// the store: nothing in it is encrypted. The backup begins with the line that head
// returns from a transaction on that commit; nil: an empty line. Of the blobs it has those that keeps accepts; nil: all.
// A store in memory has no backups.
func (s *Store) Backup(ctx context.Context, w io.Writer, head func(*Tx) ([]byte, error), keeps func(Digest) bool) (Seq, error) {
	switch {
	case s.isClosed():
		return 0, errClosed
	case s.db == nil:
		return 0, errors.New("back up store: it is in memory: only a data directory can be backed up")
	}
	defer s.blobs.KeepAll()() // before the snapshot, whose keys name blobs
	// The audit of the restored store needs the log's records of the window too.
	seq, kept, ok := s.snapshots.acquireKept(s.appliedSeq)
	if !ok {
		return 0, errClosed
	}
	defer s.snapshots.release(kept)
	if err := s.backup(ctx, seq, w, head, keeps); err != nil {
		return 0, fmt.Errorf("back up store: %w", orUnavailable(ctx, err))
	}
	return seq, nil
}

// orUnavailable makes err match ErrUnavailable if it is that ctx has ended.
func orUnavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) && !errors.Is(err, ErrUnavailable) {
		return unavailable(err)
	}
	return err
}

func (s *Store) backup(ctx context.Context, seq Seq, w io.Writer, head func(*Tx) ([]byte, error), keeps func(Digest) bool) error {
	line, err := s.backupHead(ctx, seq, head)
	if err != nil {
		return err
	}
	out, err := frame.NewWriter(ctx, w, line)
	if err != nil {
		return err
	}
	if seq > 0 { // Badger takes 0 for "not managed"
		if err := s.backupKeys(ctx, seq, out); err != nil {
			return err
		}
	}
	buf := make([]byte, blobDataBytes) // once, and not for each of many small blobs
	err = s.blobs.Each(func(d Digest) error {
		if keeps != nil && !keeps(d) {
			return nil
		}
		if err := s.backupBlob(ctx, d, out, buf); err != nil {
			return fmt.Errorf("blob %v: %w", d, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return out.Finish()
}

// backupHead calls head with a transaction on seq, whose versions the caller keeps.
func (s *Store) backupHead(ctx context.Context, seq Seq, head func(*Tx) ([]byte, error)) (line []byte, err error) {
	if head == nil {
		return nil, nil
	}
	tx := &Tx{store: s, ctx: ctx, snap: seq, snapshot: s.content.at(seq)}
	defer tx.end()
	line, err = head(tx)
	return line, tx.result(err)
}

// backupKeys writes the keys as of seq, in their order.
func (s *Store) backupKeys(ctx context.Context, seq Seq, out *frame.Writer) error {
	txn := s.db.NewTransactionAt(uint64(seq), false)
	defer txn.Discard()
	tx := &Tx{store: s, ctx: ctx}
	floor, err := logFloor(tx, txn)
	if err != nil {
		return err
	}
	it := txn.NewIterator(badger.IteratorOptions{AllVersions: true})
	defer it.Close()
	it.Rewind()
	keys := backupReader{tx: tx, it: it, floor: floor}
	for pace := newPacer(ctx); ; pace.pause() {
		list, err := keys.next()
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		if err := out.Write(frame.Keys, list); err != nil {
			return err
		}
	}
	if s.scrubber == nil {
		return nil
	}
	return s.scrubber.first() // damage that the reads above do not detect
}

// logFloor returns the floor of the window as of the snapshot of txn, which tx reads.
func logFloor(tx *Tx, txn *badger.Txn) (_ Seq, err error) {
	r := tx.reading()
	defer r.done(&err)
	item, err := txn.Get(logKey)
	if err != nil {
		return 0, err
	}
	var newest logRecord
	err = item.Value(newest.decode)
	return newest.floor, err
}

// backupReader reads what a backup has: the newest version of each key, and what restores the
// window, which is the log's records and the keys deleted. Older versions are for transactions
// that are open.
type backupReader struct {
	tx    *Tx
	it    *badger.Iterator
	floor Seq    // of the window
	key   []byte // the key read last
	list  []byte
}

// needs reports whether the backup has that version, older than another one of the same key
// or not.
func (b *backupReader) needs(item *badger.Item, older bool) bool {
	switch inWindow := Seq(item.Version()) > b.floor; {
	case older:
		return inWindow && bytes.Equal(b.key, logKey)
	case item.IsDeletedOrExpired():
		return inWindow && b.key[0] == spaceData
	}
	return true
}

// next returns the next list of versions, which is valid until the next call; an empty one
// at the end.
func (b *backupReader) next() (_ []byte, err error) {
	r := b.tx.reading()
	defer r.done(&err)
	b.list = b.list[:0]
	for ; b.it.Valid() && len(b.list) < keyListBytes; b.it.Next() {
		item := b.it.Item()
		older := bytes.Equal(item.Key(), b.key)
		if !older {
			b.key = item.KeyCopy(b.key)
		}
		if !b.needs(item, older) {
			continue
		}
		err := item.Value(func(value []byte) error {
			v := files.Version{
				Key: b.key, Seq: item.Version(), Deleted: item.IsDeletedOrExpired(), UserMeta: item.UserMeta(), Value: value,
			}
			b.list = v.Append(b.list)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return b.list, nil
}

func (s *Store) backupBlob(ctx context.Context, d Digest, out *frame.Writer, buf []byte) error {
	r, err := s.blobs.Read(ctx, d)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := out.Write(frame.Blob, d[:]); err != nil {
		return err
	}
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if err := out.Write(frame.Data, buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}

const (
	// sharedAfter: a goroutine that yields, and runs again only after that time, shares its processor.
	sharedAfter = 50 * time.Microsecond
	// pauseFactor: a list is followed by a pause of so many times the time that it took.
	pauseFactor = 5
)

// pacer leaves the processors to requests while a backup is written.
type pacer struct {
	ctx   context.Context
	since time.Time // when the last pause ended
}

func newPacer(ctx context.Context) *pacer { return &pacer{ctx, clock.Mark()} }

// pause waits after a list, if there are requests that wait.
func (p *pacer) pause() {
	asked := clock.Mark()
	runtime.Gosched()
	if time.Since(asked) > sharedAfter {
		_ = wait.For(p.ctx, pauseFactor*asked.Sub(p.since)) // when ctx has ended, the next write fails
	}
	p.since = clock.Mark()
}

// CheckBackup reads all frames of a backup. The error matches frame.ErrDamaged if a byte has
// changed or is missing.
func CheckBackup(in *frame.Reader) error {
	var order files.Order
	return readFrames(in, func(list []byte) error {
		return files.EachVersion(list, func(v *files.Version) error {
			_, err := order.Next(v)
			return err
		})
	}, func(name Digest, content io.Reader) error {
		sum := sha256.New()
		if _, err := io.Copy(sum, content); err != nil {
			return err
		}
		if !bytes.Equal(sum.Sum(nil), name[:]) {
			return frame.ErrDamaged
		}
		return nil
	})
}

// readFrames reads all frames: it calls keys with each list of keys, and blob with each blob.
func readFrames(in *frame.Reader, keys func(list []byte) error, blob func(name Digest, content io.Reader) error) error {
	for {
		kind, payload, err := in.Next()
		if err != nil {
			return err
		}
		switch kind {
		case frame.Keys:
			err = keys(payload)
		case frame.Blob:
			if len(payload) != len(Digest{}) {
				return frame.ErrDamaged
			}
			err = blob(Digest(payload), in.Data())
		case frame.End:
			return nil
		default:
			err = frame.ErrDamaged
		}
		switch {
		case errors.Is(err, files.ErrLayout), errors.Is(err, files.ErrOrder):
			return fmt.Errorf("%w: %w", frame.ErrDamaged, err)
		case err != nil:
			return err
		}
	}
}

// Restore reads all frames of a backup into a store on disk that has no commits. It fails if a
// follower is registered, because it would miss the restored keys. It also fails if a byte of
// the backup has changed or is missing; then the store has no keys afterwards. The error
// matches ErrUnavailable if the disk is full. Nothing else may use the store meanwhile.
//
// The context is for the wait until Restore may begin; that of the reader ends it.
func (s *Store) Restore(ctx context.Context, in *frame.Reader) error {
	var err error
	if waiting := s.sequencer.between(ctx, func() { err = s.restore(in) }); waiting != nil {
		return waiting
	}
	if err != nil {
		return fmt.Errorf("restore store: %w", orUnavailable(ctx, err))
	}
	return nil
}

// restore runs between two entries of the log.
func (s *Store) restore(in *frame.Reader) error {
	s.followers.mu.Lock()
	defer s.followers.mu.Unlock()
	switch {
	case s.dir == "":
		return errors.New("it is in memory: restore into a data directory")
	case s.machine.applied > 0:
		return fmt.Errorf("it has %d commits: restore into a new data directory", s.machine.applied)
	case len(s.followers.all) > 0:
		return errors.New("it is in use: restore before a follower is registered")
	}
	mark := s.machine.mark
	if err := mark.Set(datadir.Position{Restoring: true}); err != nil {
		return err
	}
	if err := s.closeBadger(); err != nil {
		return err
	}
	data := filepath.Join(s.dir, badgerName)
	err := s.load(in, data)
	if e := s.openTables(data); e != nil {
		return errors.Join(err, e)
	}
	var records []logRecord
	if err == nil {
		records, _, err = checkRecords(s.db, 0)
	}
	if err == nil {
		s.resume(s.machine.window.Size(), newestOf(records))
		err = errors.Join(s.restoreWindow(context.Background(), records), s.openLevel(true))
	}
	if err != nil {
		err = errors.Join(err, s.db.DropAll(), s.space.Attach())
		s.resume(s.machine.window.Size(), logRecord{})
		err = errors.Join(err, s.openLevel(true))
	}
	s.watches.lose(s.machine.applied)
	return errors.Join(err, mark.Set(datadir.Position{Seq: uint64(s.machine.applied), Chain: s.machine.chain}))
}

// load reads frames into the blobs, and into the tables of the database in dir, which is
// closed. After an error there are no tables.
func (s *Store) load(in *frame.Reader, dir string) error {
	tables := files.NewTableWriter(badgerOptions(dir), func(bytes int64) error {
		if err := s.space.AdmitFile(bytes); err != nil {
			return unavailable(err)
		}
		return nil
	})
	err := readFrames(in, func(list []byte) error {
		return files.EachVersion(list, tables.Add)
	}, s.loadBlob)
	if err == nil {
		err = tables.Finish()
	}
	if err != nil {
		err = errors.Join(err, tables.Discard())
	}
	if space.IsFull(err) {
		err = unavailable(err)
	}
	return err
}

func (s *Store) loadBlob(name Digest, content io.Reader) error {
	_, err := s.blobs.Put(context.Background(), content, func(d Digest) error {
		if d != name {
			return frame.ErrDamaged
		}
		return nil
	})
	return err
}
