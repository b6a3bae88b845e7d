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
)

// ErrDamaged means that a byte of the backup has changed or is missing.
var ErrDamaged = errors.New("the backup is damaged or incomplete")

// Reader reads frames and hashes all that it reads.
type Reader struct {
	ctx    context.Context
	in     *bufio.Reader
	sum    hash.Hash
	before []byte // the hash before the frame read last
	buf    []byte
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
	part, err := f.in.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
		return nil, nil, ErrDamaged
	case err != nil:
		return nil, nil, err
	}
	f.sum.Write(part)
	return f, bytes.Clone(part[:len(part)-1]), nil
}

// fill reads and hashes len(b) bytes.
func (r *Reader) fill(b []byte) error {
	n, err := io.ReadFull(r.in, b)
	r.sum.Write(b[:n])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrDamaged
	}
	return err
}

// Next reads a frame and checks it; the payload is valid until the next call. When the
// context has ended, the error is its cause. At the last frame Next also checks the hash
// of all before it, and that nothing follows.
func (r *Reader) Next() (kind byte, payload []byte, err error) {
	if r.ctx.Err() != nil {
		return 0, nil, context.Cause(r.ctx)
	}
	r.before = r.sum.Sum(r.before[:0])
	var head [headLen]byte
	if err := r.fill(head[:]); err != nil {
		return 0, nil, err
	}
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
	if head[0] == End {
		return End, nil, r.checkEnd(r.buf)
	}
	return head[0], r.buf, nil
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
