package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"path/filepath"
	"sync"

	"github.com/dgraph-io/badger/v4/pb"
	"google.golang.org/protobuf/proto"

	"runner.example/store/space"
)

// A backup is a line and frames:
//
//	"runner store backup 1\n" | frames
//	frame = kind, 1 | length, 4 | CRC-32C of the payload, 4 | payload
//
// kind 'k': a list of keys with their versions, as Badger writes it.
// kind 'b': the digest of a blob; kind 'd': the next bytes of that blob.
// kind 'e': the end; its payload is the SHA-256 of all bytes before the frame.
const (
	backupMagic = "runner store backup 1\n"

	frameKeys = 'k'
	frameBlob = 'b'
	frameData = 'd'
	frameEnd  = 'e'

	frameHead     = 9
	maxFrameBytes = 64 << 20
	keyListBytes  = 4 << 20 // Badger sends lists of about this size
	blobDataBytes = 256 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Backup writes the store as of one commit, with all blobs, and returns that
// commit's number. Commits go on meanwhile. What is written is as secret as
// the store: nothing in it is encrypted.
func (s *Store) Backup(ctx context.Context, w io.Writer) (Seq, error) {
	// The audit of the restored store wants the log's records of the window too.
	seq, kept, ok := s.snapshots.acquireKept(s.appliedSeq)
	if !ok {
		return 0, errClosed
	}
	defer s.snapshots.release(kept)
	if err := s.backup(ctx, seq, w); err != nil {
		return 0, fmt.Errorf("back up store: %w", err)
	}
	return seq, nil
}

func (s *Store) backup(ctx context.Context, seq Seq, w io.Writer) error {
	out := newFrameWriter(ctx, w)
	if _, err := io.WriteString(out, backupMagic); err != nil {
		return err
	}
	if err := out.Flush(); err != nil { // who cannot write at all learns it before anything is read
		return err
	}
	if seq > 0 { // Badger takes 0 for "not managed"
		before := mismatches.Load()
		stream := s.db.NewStreamAt(uint64(seq))
		stream.LogPrefix = "backup"
		stream.NumGo = 2
		stream.MaxSize = keyListBytes
		lists := &listWriter{out: out}
		_, err := stream.Backup(lists, 0)
		if err := lists.end(err); err != nil {
			return err
		}
		if mismatches.Load() != before {
			return s.damaged(errBlock)
		}
		if s.scrubber != nil { // what the reads above do not tell
			if err := s.scrubber.first(); err != nil {
				return err
			}
		}
	}
	digests, err := s.blobs.list()
	if err != nil {
		return err
	}
	for _, d := range digests {
		if err := s.backupBlob(ctx, d, out); err != nil {
			return fmt.Errorf("blob %v: %w", d, err)
		}
	}
	if err := out.Flush(); err != nil { // all before the last frame is hashed
		return err
	}
	if err := out.frame(frameEnd, out.sum.Sum(nil)); err != nil {
		return err
	}
	return out.Flush()
}

func (s *Store) backupBlob(ctx context.Context, d Digest, out *frameWriter) error {
	r, err := s.blobs.get(ctx, d)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := out.frame(frameBlob, d[:]); err != nil {
		return err
	}
	buf := make([]byte, blobDataBytes)
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if err := out.frame(frameData, buf[:n]); err != nil {
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

// frameWriter writes frames and hashes all it writes.
type frameWriter struct {
	ctx context.Context
	sum hash.Hash
	*bufio.Writer
}

func newFrameWriter(ctx context.Context, w io.Writer) *frameWriter {
	sum := sha256.New()
	return &frameWriter{ctx, sum, bufio.NewWriterSize(io.MultiWriter(w, sum), 64<<10)}
}

// frame writes one frame.
func (w *frameWriter) frame(kind byte, payload []byte) error {
	if w.ctx.Err() != nil {
		return unavailable(context.Cause(w.ctx))
	}
	if len(payload) > maxFrameBytes {
		return fmt.Errorf("frame of %d bytes, the most is %d", len(payload), maxFrameBytes)
	}
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(payload)))
	head = binary.BigEndian.AppendUint32(head, crc32.Checksum(payload, castagnoli))
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err := w.Write(payload)
	return err
}

// listWriter puts each list that Badger writes into a frame. A list comes with
// its length in front, 8 bytes, little endian.
type listWriter struct {
	out *frameWriter
	buf []byte

	mu    sync.Mutex
	err   error // the first
	ended bool
}

// end returns why Badger's backup came to nothing, if it did. Badger may know
// only that it was cancelled, and may have left a goroutine that still writes:
// after end it writes to nothing.
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
		if w.err = w.out.frame(frameKeys, list); w.err != nil {
			return 0, w.err
		}
		w.buf = append(w.buf[:0], w.buf[listHead+n:]...)
	}
	return len(b), nil
}

// Restore fills an empty store, to which nothing was ever written, from what
// Backup wrote. It fails if a follower is registered already, since it would
// miss what is restored, and if a byte of the backup has changed or is
// missing: then the store holds no keys again. Nothing else may use the store
// meanwhile.
func (s *Store) Restore(ctx context.Context, r io.Reader) error {
	var err error
	if waiting := s.local.between(ctx, func() { err = s.restore(ctx, r) }); waiting != nil {
		return waiting
	}
	if err != nil {
		return fmt.Errorf("restore store: %w", err)
	}
	return nil
}

// restore runs between two entries of the log.
func (s *Store) restore(ctx context.Context, r io.Reader) error {
	s.followers.mu.Lock()
	defer s.followers.mu.Unlock()
	if s.machine.applied > 0 {
		return fmt.Errorf("it holds %d commits already; restore into a new folder", s.machine.applied)
	}
	if len(s.followers.all) > 0 {
		return errors.New("it is in use already; restore before anything follows the store")
	}
	mark := s.machine.mark
	if err := mark.set(markSlot{state: markRestoring}); err != nil {
		return err
	}
	s.space.Ahead = restoreAhead
	err := s.load(newFrameReader(ctx, r))
	s.space.Ahead = space.Use{}
	var newest logRecord
	if err == nil {
		newest, _, err = audit(s.db, 0)
	}
	if err != nil {
		err = errors.Join(err, s.db.DropAll(), s.space.Attach())
		return errors.Join(err, mark.set(markSlot{}))
	}
	if err := s.reopenBadger(); err != nil {
		return err
	}
	if err := mark.set(newest.mark()); err != nil {
		return err
	}
	s.machine = newMachine(s.db, mark, s.machine.window.size, newest)
	s.reached(newest.seq)
	s.discard()
	return nil
}

// reopenBadger has all that was loaded written into tables: the logs of memtables
// hold commits in their order and nothing else.
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
func (s *Store) load(in *frameReader) error {
	magic := make([]byte, len(backupMagic))
	if _, err := io.ReadFull(in, magic); err != nil || string(magic) != backupMagic {
		return errors.New("this is not a backup of a store, or of another version")
	}
	lists, feed := io.Pipe()
	loaded := make(chan error, 1)
	go func() {
		err := s.db.Load(lists, 1)
		lists.CloseWithError(err) // so that the feeding ends
		loaded <- err
	}()
	err := s.loadFrames(in, feed)
	feed.CloseWithError(err) // nil is the end
	if e := <-loaded; err == nil {
		err = e
	}
	return err
}

// restoreAhead bounds what Badger has been given beside the log and has not written,
// when one batch is under way and one is being gathered.
var restoreAhead = space.Use{Log: 32 << 20, Table: 32 << 20}

// listDiskUse returns what a list of keys takes of Badger.
func listDiskUse(payload []byte) (r space.Use, err error) {
	var list pb.KVList
	if err := proto.Unmarshal(payload, &list); err != nil {
		return r, errDamaged
	}
	for _, kv := range list.Kv {
		r.Add(space.UseOf(1, int64(len(kv.Key)+len(kv.Value))))
	}
	return r, nil
}

func (s *Store) loadFrames(in *frameReader, lists io.Writer) error {
	for {
		kind, payload, err := in.next()
		if err != nil {
			return err
		}
		switch kind {
		case frameKeys:
			r, err := listDiskUse(payload)
			if err != nil {
				return err
			}
			if err := s.space.Admit(r); err != nil {
				return unavailable(err)
			}
			head := binary.LittleEndian.AppendUint64(nil, uint64(len(payload)))
			if _, err := lists.Write(append(head, payload...)); err != nil {
				return err
			}
		case frameBlob:
			if err := s.loadBlob(in, payload); err != nil {
				return err
			}
		case frameEnd:
			return in.atEnd(payload)
		default:
			return errDamaged
		}
	}
}

func (s *Store) loadBlob(in *frameReader, name []byte) error {
	name = bytes.Clone(name)
	d, err := s.blobs.put(&blobReader{in: in})
	if err == nil && !bytes.Equal(d[:], name) {
		err = errDamaged
	}
	return err
}

var errDamaged = errors.New("the backup is damaged or incomplete")

// frameReader reads frames and hashes all it reads.
type frameReader struct {
	ctx    context.Context
	r      *bufio.Reader
	sum    hash.Hash
	before []byte // the hash before the frame read last
	buf    []byte
}

func newFrameReader(ctx context.Context, r io.Reader) *frameReader {
	return &frameReader{ctx: ctx, r: bufio.NewReaderSize(r, 64<<10), sum: sha256.New()}
}

// Read reads raw bytes.
func (r *frameReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	r.sum.Write(b[:n])
	return n, err
}

// peek returns the kind of the next frame.
func (r *frameReader) peek() (byte, error) {
	b, err := r.r.Peek(1)
	if err != nil {
		return 0, damaged(err)
	}
	return b[0], nil
}

// next reads a frame; the payload is valid until the next one is read.
func (r *frameReader) next() (kind byte, payload []byte, err error) {
	if r.ctx.Err() != nil {
		return 0, nil, unavailable(context.Cause(r.ctx))
	}
	r.before = r.sum.Sum(r.before[:0])
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, damaged(err)
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrameBytes {
		return 0, nil, errDamaged
	}
	if uint32(cap(r.buf)) < n {
		r.buf = make([]byte, n)
	}
	r.buf = r.buf[:n]
	if _, err := io.ReadFull(r, r.buf); err != nil {
		return 0, nil, damaged(err)
	}
	if crc32.Checksum(r.buf, castagnoli) != binary.BigEndian.Uint32(head[5:]) {
		return 0, nil, errDamaged // before anything of it reaches Badger
	}
	return head[0], r.buf, nil
}

// atEnd checks the hash in the last frame and that nothing follows.
func (r *frameReader) atEnd(sum []byte) error {
	if !bytes.Equal(sum, r.before) {
		return errDamaged
	}
	if _, err := r.r.Peek(1); err != io.EOF {
		return errDamaged
	}
	return nil
}

// damaged says of an early end what it means.
func damaged(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errDamaged
	}
	return err
}

// blobReader reads the data frames that come next.
type blobReader struct {
	in   *frameReader
	left []byte
}

func (r *blobReader) Read(b []byte) (int, error) {
	for len(r.left) == 0 {
		kind, err := r.in.peek()
		if err != nil {
			return 0, err
		}
		if kind != frameData {
			return 0, io.EOF
		}
		if _, r.left, err = r.in.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}
