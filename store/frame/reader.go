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

// Reader reads frames and hashes all that it reads, on another processor while the caller
// uses a payload. It is for one goroutine.
type Reader struct {
	ctx     context.Context
	in      *bufio.Reader
	n       int64 // bytes read
	sum     hash.Hash
	hashing sync.WaitGroup // a payload is being added to sum
	before  []byte         // the hash before the frame read last
	buf     []byte
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
	f.add(line)
	part, err := f.in.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
		return nil, nil, ErrDamaged
	case err != nil:
		return nil, nil, err
	}
	f.add(part)
	return f, bytes.Clone(part[:len(part)-1]), nil
}

// fill reads len(b) bytes.
func (r *Reader) fill(b []byte) error {
	_, err := io.ReadFull(r.in, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrDamaged
	}
	return err
}

// add counts and hashes what was read.
func (r *Reader) add(b []byte) {
	r.n += int64(len(b))
	r.sum.Write(b)
}

// Next reads a frame and checks it; the payload is valid until the next call, and must not be
// changed. When the context has ended, the error is its cause. At the last frame Next also
// checks the hash of all before it, and that nothing follows.
func (r *Reader) Next() (kind byte, payload []byte, err error) {
	r.hashing.Wait()
	if r.ctx.Err() != nil {
		return 0, nil, context.Cause(r.ctx)
	}
	r.before = r.sum.Sum(r.before[:0])
	var head [headLen]byte
	if err := r.fill(head[:]); err != nil {
		return 0, nil, err
	}
	r.add(head[:])
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxBytes {
		return 0, nil, ErrDamaged
	}
	if uint32(cap(r.buf)) < n {
		r.buf = make([]byte, n)
	}
	r.buf = r.buf[:n]
	if err := r.fill(r.buf); err != nil {
		return 0, nil, err
	}
	if crc32.Checksum(r.buf, castagnoli) != binary.BigEndian.Uint32(head[5:]) {
		return 0, nil, ErrDamaged
	}
	r.hashing.Go(func() { r.add(r.buf) })
	if head[0] == End {
		return End, nil, r.checkEnd(r.buf)
	}
	return head[0], r.buf, nil
}

// Total returns how many bytes the backup has, and their SHA-256. It is called after the last
// frame.
func (r *Reader) Total() (bytes int64, sum [sha256.Size]byte) {
	r.hashing.Wait()
	r.sum.Sum(sum[:0])
	return r.n, sum
}

// checkEnd checks the hash in the last frame and that nothing follows.
func (r *Reader) checkEnd(sum []byte) error {
	if !bytes.Equal(sum, r.before) {
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

// peek returns the kind of the next frame.
func (r *Reader) peek() (byte, error) {
	b, err := r.in.Peek(1)
	if errors.Is(err, io.EOF) {
		return 0, ErrDamaged
	}
	if err != nil {
		return 0, err
	}
	return b[0], nil
}
