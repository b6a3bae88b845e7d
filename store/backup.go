package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4/pb"
	"google.golang.org/protobuf/proto"

	"runner.example/store/datadir"
	"runner.example/store/frame"
	"runner.example/store/space"
)

const (
	keyListBytes  = 4 << 20 // Badger sends lists of about this size
	blobDataBytes = 256 << 10
)

// Backup writes the store as of one commit, with all blobs, and returns that
// commit's number. Commits continue meanwhile. What is written is as secret as
// the store: nothing in it is encrypted. The backup begins with the line that head
// returns from a transaction on that commit; nil: an empty line.
func (s *Store) Backup(ctx context.Context, w io.Writer, head func(*Tx) ([]byte, error)) (Seq, error) {
	defer s.blobs.KeepAll()() // before the snapshot, whose keys name blobs
	// The audit of the restored store needs the log's records of the window too.
	seq, kept, ok := s.snapshots.acquireKept(s.appliedSeq)
	if !ok {
		return 0, errClosed
	}
	defer s.snapshots.release(kept)
	if err := s.backup(ctx, seq, w, head); err != nil {
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

func (s *Store) backup(ctx context.Context, seq Seq, w io.Writer, head func(*Tx) ([]byte, error)) error {
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
	digests, err := s.blobs.List()
	if err != nil {
		return err
	}
	for _, d := range digests {
		if err := s.backupBlob(ctx, d, out); err != nil {
			return fmt.Errorf("blob %v: %w", d, err)
		}
	}
	return out.Finish()
}

// backupHead calls head with a transaction on seq, whose versions the caller keeps.
func (s *Store) backupHead(ctx context.Context, seq Seq, head func(*Tx) ([]byte, error)) (line []byte, err error) {
	if head == nil {
		return nil, nil
	}
	tx := &Tx{store: s, ctx: ctx, snap: seq, txn: s.db.NewTransactionAt(uint64(seq), false)}
	defer tx.end()
	line, err = head(tx)
	return line, tx.result(err)
}

// backupKeys writes the keys and versions up to seq.
func (s *Store) backupKeys(ctx context.Context, seq Seq, out *frame.Writer) error {
	before := mismatches.Load()
	stream := s.db.NewStreamAt(uint64(seq))
	stream.LogPrefix = "backup"
	stream.NumGo = 1 // another processor stays free for requests
	stream.MaxSize = keyListBytes
	lists := &listWriter{ctx: ctx, out: out, since: time.Now()}
	_, err := stream.Backup(lists, 0)
	if err := lists.end(err); err != nil {
		return err
	}
	if mismatches.Load() != before {
		return s.damaged(errBlock)
	}
	if s.scrubber == nil {
		return nil
	}
	return s.scrubber.first() // damage that the reads above do not detect
}

func (s *Store) backupBlob(ctx context.Context, d Digest, out *frame.Writer) error {
	r, err := s.blobs.Read(ctx, d)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := out.Write(frame.Blob, d[:]); err != nil {
		return err
	}
	buf := make([]byte, blobDataBytes)
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

// listWriter puts each list that Badger writes into a frame. A list comes with
// its length in front, 8 bytes, little endian.
type listWriter struct {
	ctx   context.Context
	out   *frame.Writer
	buf   []byte
	since time.Time // when the pause after the last list ended

	mu    sync.Mutex
	err   error // the first
	ended bool
}

// end returns why Badger's backup failed; nil if it did not. Badger may report only a
// cancellation, and may leave a goroutine that still writes: after end its writes fail.
func (w *listWriter) end(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.err != nil {
		return w.err
	}
	return err
}

const listHead = 8

func (w *listWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.err != nil {
		return 0, io.ErrClosedPipe
	}
	w.buf = append(w.buf, b...)
	for len(w.buf) >= listHead {
		n := binary.LittleEndian.Uint64(w.buf)
		if uint64(len(w.buf)-listHead) < n {
			break
		}
		list := w.buf[listHead : listHead+n]
		if w.err = w.out.Write(frame.Keys, list); w.err != nil {
			return 0, w.err
		}
		w.buf = append(w.buf[:0], w.buf[listHead+n:]...)
		w.pause()
	}
	return len(b), nil
}

const (
	// sharedAfter: a goroutine that yields, and runs again only after that time, shares its processor.
	sharedAfter = 50 * time.Microsecond
	// pauseFactor: a list is followed by a pause of so many times the time that it took.
	pauseFactor = 5
)

// pause leaves the processors to requests after each list, if there are any that wait.
func (w *listWriter) pause() {
	asked := time.Now()
	runtime.Gosched()
	if time.Since(asked) > sharedAfter {
		timer := time.NewTimer(pauseFactor * asked.Sub(w.since))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-w.ctx.Done(): // the next write fails
		}
	}
	w.since = time.Now()
}

// CheckBackup reads a whole backup and returns its head. The error matches frame.ErrDamaged if
// a byte has changed or is missing.
func CheckBackup(ctx context.Context, r io.Reader) (head []byte, err error) {
	in, head, err := frame.NewReader(ctx, r)
	if err != nil {
		return nil, err
	}
	for {
		kind, payload, err := in.Next()
		if err != nil {
			return nil, err
		}
		switch kind {
		case frame.Keys:
			_, err = listDiskUse(payload)
		case frame.Blob:
			name, sum := bytes.Clone(payload), sha256.New()
			if _, err = io.Copy(sum, in.Data()); err == nil && !bytes.Equal(sum.Sum(nil), name) {
				err = frame.ErrDamaged
			}
		case frame.End:
			return head, nil
		default:
			err = frame.ErrDamaged
		}
		if err != nil {
			return nil, err
		}
	}
}

// Restore reads a backup into a store that has no commits. If check is not nil, it is called
// first with the head; its error ends the restore. It fails if a follower is registered,
// because it would miss the restored keys. It also fails if a byte of the backup has changed
// or is missing; then the store has no keys afterwards. Nothing else may use the store
// meanwhile.
func (s *Store) Restore(ctx context.Context, r io.Reader, check func(head []byte) error) error {
	var err error
	if waiting := s.local.between(ctx, func() { err = s.restore(ctx, r, check) }); waiting != nil {
		return waiting
	}
	if err != nil {
		return fmt.Errorf("restore store: %w", orUnavailable(ctx, err))
	}
	return nil
}

// restore runs between two entries of the log.
func (s *Store) restore(ctx context.Context, r io.Reader, check func(head []byte) error) error {
	s.followers.mu.Lock()
	defer s.followers.mu.Unlock()
	if s.machine.applied > 0 {
		return fmt.Errorf("it has %d commits: restore into a new data directory", s.machine.applied)
	}
	if len(s.followers.all) > 0 {
		return errors.New("it is in use: restore before a follower is registered")
	}
	mark := s.machine.mark
	if err := mark.Set(datadir.Position{Restoring: true}); err != nil {
		return err
	}
	s.space.Ahead = restoreAhead
	err := s.load(ctx, r, check)
	s.space.Ahead = space.Use{}
	var newest logRecord
	if err == nil {
		newest, _, err = audit(s.db, 0)
	}
	if err != nil {
		err = errors.Join(err, s.db.DropAll(), s.space.Attach())
		return errors.Join(err, mark.Set(datadir.Position{}))
	}
	if err := s.reopenBadger(); err != nil {
		return err
	}
	if err := mark.Set(newest.position()); err != nil {
		return err
	}
	s.machine = newMachine(s.db, mark, s.machine.window.size, newest)
	s.applied.set(newest.seq)
	s.discard()
	return nil
}

// reopenBadger makes Badger write the loaded keys to tables: the logs of memtables must have
// only commits, in their order.
func (s *Store) reopenBadger() error {
	if s.dir == "" {
		return nil
	}
	if err := s.closeBadger(); err != nil {
		return err
	}
	return s.openTables(filepath.Join(s.dir, badgerName))
}

// load reads a backup into Badger and the blobs.
func (s *Store) load(ctx context.Context, r io.Reader, check func(head []byte) error) error {
	in, head, err := frame.NewReader(ctx, r)
	if err != nil {
		return err
	}
	if check != nil {
		if err := check(head); err != nil {
			return err
		}
	}
	lists, feed := io.Pipe()
	loaded := make(chan error, 1)
	go func() {
		err := s.db.Load(lists, 1)
		lists.CloseWithError(err) // ends loadFrames
		loaded <- err
	}()
	err = s.loadFrames(in, feed)
	feed.CloseWithError(err) // nil is the end
	if e := <-loaded; err == nil {
		err = e
	}
	return err
}

// restoreAhead bounds what Badger has got and not yet written to its log: one batch that is
// being written and one that is being collected.
var restoreAhead = space.Use{Log: 32 << 20, Table: 32 << 20}

// listDiskUse returns how much of Badger's files a list of keys takes.
func listDiskUse(payload []byte) (r space.Use, err error) {
	var list pb.KVList
	if err := proto.Unmarshal(payload, &list); err != nil {
		return r, frame.ErrDamaged
	}
	for _, kv := range list.Kv {
		r.Add(space.UseOf(1, int64(len(kv.Key)+len(kv.Value))))
	}
	return r, nil
}

func (s *Store) loadFrames(in *frame.Reader, lists io.Writer) error {
	for {
		kind, payload, err := in.Next()
		if err != nil {
			return err
		}
		switch kind {
		case frame.Keys:
			err = s.loadKeys(payload, lists)
		case frame.Blob:
			err = s.loadBlob(in, payload)
		case frame.End:
			return nil
		default:
			err = frame.ErrDamaged
		}
		if err != nil {
			return err
		}
	}
}

func (s *Store) loadKeys(list []byte, lists io.Writer) error {
	r, err := listDiskUse(list)
	if err != nil {
		return err
	}
	if err := s.space.Admit(r); err != nil {
		return unavailable(err)
	}
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(list)))
	_, err = lists.Write(append(head, list...))
	return err
}

func (s *Store) loadBlob(in *frame.Reader, name []byte) error {
	name = bytes.Clone(name)
	_, err := s.blobs.Put(context.Background(), in.Data(), func(d Digest) error {
		if !bytes.Equal(d[:], name) {
			return frame.ErrDamaged
		}
		return nil
	})
	return err
}
