package frame

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
)

// The kinds of frames.
const (
	Keys byte = 'k'
	Blob byte = 'b'
	Data byte = 'd'
	End  byte = 'e'
)

const (
	magic    = "runner backup 2\n"
	maxHead  = 64 << 10
	headLen  = 9
	maxBytes = 64 << 20 // of a payload
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Writer writes frames and hashes all that it writes.
type Writer struct {
	ctx context.Context
	sum hash.Hash
	out *bufio.Writer
}

// NewWriter writes the first two lines of a backup to w immediately. If w cannot be written
// to, the error occurs before anything is read. The head must be one line without a newline.
func NewWriter(ctx context.Context, w io.Writer, head []byte) (*Writer, error) {
	if len(head) > maxHead || bytes.IndexByte(head, '\n') >= 0 {
		return nil, fmt.Errorf("the head of a backup must be one line of at most %d bytes", maxHead)
	}
	sum := sha256.New()
	f := &Writer{ctx, sum, bufio.NewWriterSize(io.MultiWriter(w, sum), 64<<10)}
	if _, err := fmt.Fprintf(f.out, "%s%s\n", magic, head); err != nil {
		return nil, err
	}
	return f, f.out.Flush()
}

// Write writes one frame. When the context has ended, the error is its cause.
func (w *Writer) Write(kind byte, payload []byte) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if len(payload) > maxBytes {
		return fmt.Errorf("frame of %d bytes, the limit is %d", len(payload), maxBytes)
	}
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(payload)))
	head = binary.BigEndian.AppendUint32(head, crc32.Checksum(payload, castagnoli))
	if _, err := w.out.Write(head); err != nil {
		return err
	}
	_, err := w.out.Write(payload)
	return err
}

// Finish writes the last frame and flushes.
func (w *Writer) Finish() error {
	if err := w.out.Flush(); err != nil { // all before the last frame is hashed
		return err
	}
	if err := w.Write(End, w.sum.Sum(nil)); err != nil {
		return err
	}
	return w.out.Flush()
}
