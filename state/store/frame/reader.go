package frame

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"sync"
)

// ErrDamaged means that a byte of the backup has changed or is missing.
var ErrDamaged = errors.New("the backup is damaged or incomplete")

// Reader reads frames. While the caller uses one, it reads, hashes and checks the next on
// another processor. It is for one goroutine. After an error, or if the caller stops before
// the end, one read of the backup may still be running.
type Reader struct {
	ctx       context.Context
	in        *bufio.Reader
	n         int64 // bytes read
	sum       hash.Hash
	ahead     sync.WaitGroup // next is being read
	now, next readFrame
}

// readFrame is a frame that was read, or why none could be.
type readFrame struct {
	kind    byte
	payload []byte
	err     error
}

// ErrNotBackup means that a file does not begin as a backup does.
var ErrNotBackup = errors.New("this is not a backup, or a backup of another version")

// NewReader reads the first two lines of a backup, and returns the head. Whether the backup
// is intact is known only after the last frame.
func NewReader(ctx context.Context, r io.Reader) (_ *Reader, head []byte, err error) {
	f := &Reader{ctx: ctx, in: bufio.NewReaderSize(r, maxHead+1), sum: sha256.New()}
	line := make([]byte, len(magic))
	switch err := f.fill(line); {
	case err != nil && !errors.Is(err, ErrDamaged):
		return nil, nil, err
	case err != nil || string(line) != magic:
		return nil, nil, ErrNotBackup
	}
	f.hash(line)
	part, err := f.in.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
		return nil, nil, ErrDamaged
	case err != nil:
		return nil, nil, err
	}
	f.hash(part)
	head = bytes.Clone(part[:len(part)-1])
	f.ahead.Go(f.read)
	return f, head, nil
}

// fill reads len(b) bytes.
func (r *Reader) fill(b []byte) error {
	_, err := io.ReadFull(r.in, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrDamaged
	}
	return err
}

// hash counts and hashes what was read.
func (r *Reader) hash(b []byte) {
	r.n += int64(len(b))
	r.sum.Write(b)
}

// Next reads a frame and checks it; the payload is valid until the next call. When the
// context has ended, the error is its cause. At the last frame Next also checks the hash of
// all before it, and that nothing follows.
func (r *Reader) Next() (kind byte, payload []byte, err error) {
	if kind, err := r.peek(); err != nil || kind == End {
		return kind, nil, err
	}
	r.now, r.next = r.next, r.now
	r.ahead.Go(r.read)
	return r.now.kind, r.now.payload, nil
}

// peek returns the kind of the next frame.
func (r *Reader) peek() (byte, error) {
	r.ahead.Wait()
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.next.kind, r.next.err
}

// read reads the next frame.
func (r *Reader) read() {
	f := &r.next
	before := r.sum.Sum(nil)
	var head [headLen]byte
	if f.err = r.fill(head[:]); f.err != nil {
		return
	}
	r.hash(head[:])
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxBytes {
		f.err = ErrDamaged
		return
	}
	if uint32(cap(f.payload)) < n {
		f.payload = make([]byte, n)
	}
	f.payload = f.payload[:n]
	if f.err = r.fill(f.payload); f.err != nil {
		return
	}
	if crc32.Checksum(f.payload, castagnoli) != binary.BigEndian.Uint32(head[5:]) {
		f.err = ErrDamaged
		return
	}
	r.hash(f.payload)
	f.kind = head[0]
	if f.kind == End {
		f.err = r.checkEnd(f.payload, before)
	}
}

// Total returns how many bytes the backup has, and their SHA-256. It is called after the last
// frame.
func (r *Reader) Total() (bytes int64, sum [sha256.Size]byte) {
	r.ahead.Wait()
	r.sum.Sum(sum[:0])
	return r.n, sum
}

// checkEnd checks the hash in the last frame and that nothing follows.
func (r *Reader) checkEnd(sum, before []byte) error {
	if !bytes.Equal(sum, before) {
		return ErrDamaged
	}
	if _, err := r.in.Peek(1); err != io.EOF {
		return ErrDamaged
	}
	return nil
}

// Data returns a reader of the Data frames that come next. It ends before the first frame
// of another kind.
func (r *Reader) Data() io.Reader { return &dataReader{in: r} }

type dataReader struct {
	in   *Reader
	left []byte
}

func (d *dataReader) Read(b []byte) (int, error) {
	for len(d.left) == 0 {
		kind, err := d.in.peek()
		if err != nil {
			return 0, err
		}
		if kind != Data {
			return 0, io.EOF
		}
		if _, d.left, err = d.in.Next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, d.left)
	d.left = d.left[n:]
	return n, nil
}
