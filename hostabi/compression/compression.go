package compression

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"

	"runner.example/internal/cost"
)

// MaxPiece is about how many bytes of output Write returns at once when it decompresses.
const MaxPiece = 256 << 10

// The cost of a byte of input, and of a byte of output that is decompressed. Input that has little output costs the same:
// it may describe codes that nothing uses.
const (
	inputUnits  = 64
	outputUnits = 8
)

// checkedUnits is how much work a decompression does at once, about: 4 KiB of input, or 32 KiB of output.
const checkedUnits = 4 * cost.Every

// The parameters of brotli: about the speed and the memory of gzip.
const (
	brotliQuality = 5
	brotliWindow  = 18 // 256 KiB
)

var formats = []string{"gzip", "deflate", "deflate-raw", "brotli"}

var (
	// ErrFormat is the error of New for an unknown format.
	ErrFormat = fmt.Errorf("the format must be %s", strings.Join(formats, ", "))
	// ErrMalformed is the error of input that is not in the format.
	ErrMalformed = errors.New("the input is malformed")
	// ErrTruncated is the error of input that ends before the compressed data does.
	ErrTruncated = errors.New("the input ends too early")
	// ErrExtra is the error of input after the end of the compressed data.
	ErrExtra = errors.New("the input has bytes after the compressed data")
	// ErrUnread is the error of new input while there is output of the last one.
	ErrUnread = errors.New("there is output of the last input: write without data until there is no more")
)

// Stream compresses or decompresses one input. It is used by one goroutine at a time.
type Stream struct {
	memory int
	in     []byte // what is not decompressed yet
	ended  bool   // nothing follows in
	out    bytes.Buffer
	err    error // returned when out is empty

	w io.WriteCloser // compresses to out; nil if the stream decompresses

	// A decompression has a goroutine, which works only while Write waits for its next step. It is not a coroutine
	// of iter.Pull: a run locks its goroutine to a thread and unlocks it, and the Go runtime ends the process if a
	// coroutine is then used.
	resume chan struct{} // closed: the goroutine must end
	steps  chan step     // closed: it has ended
	failed any           // the panic that has ended it
	units  int           // of work that the meter has not counted
}

// step says why a decompression stands.
type step int

const (
	needsInput step = iota
	isFull          // out has about MaxPiece bytes
	isChecked       // so much work was done that the meter must count it
	hasEnded
)

// New returns a stream. Its user must call Close.
func New(format string, decompress bool) (*Stream, error) {
	if !slices.Contains(formats, format) {
		return nil, ErrFormat
	}
	s := &Stream{memory: memory(format, decompress)}
	if decompress {
		s.resume, s.steps = make(chan struct{}), make(chan step)
		go s.decompress(format)
		return s, nil
	}
	s.w = writer(format, &s.out)
	return s, nil
}

func memory(format string, decompress bool) int {
	switch {
	case decompress && format == "brotli":
		return 17 << 20 // its window may have 16 MiB
	case decompress:
		return 128 << 10
	case format == "brotli":
		return 4 << 20
	}
	return 1 << 20
}

// Memory returns about how many bytes the stream takes.
func (s *Stream) Memory() int { return s.memory }

// Close frees the stream.
func (s *Stream) Close() {
	if s.resume == nil {
		return
	}
	close(s.resume)
	for range s.steps { // until the goroutine has ended
	}
	s.resume = nil
}

// next lets the decompression work until its next step.
func (s *Stream) next() step {
	select {
	case s.resume <- struct{}{}:
	case <-s.steps: // closed
		return hasEnded
	}
	at, going := <-s.steps
	if s.failed != nil {
		panic(s.failed)
	}
	if !going {
		return hasEnded
	}
	return at
}

// stand ends a step. False says that the stream is closed.
func (s *Stream) stand(at step) bool {
	s.steps <- at
	_, going := <-s.resume
	return going
}

// spend counts work of the decompression.
func (s *Stream) spend(units int) error {
	if s.units += units; s.units >= checkedUnits && !s.stand(isChecked) {
		return errStopped
	}
	return nil
}

// Write takes a piece of input, and returns output, which belongs to the caller. If more is true, further output or an
// error follows: call Write again without data. Until more is false, the caller must not change data. With end, no input
// follows. The meter counts the work. The error is ErrMalformed, ErrTruncated, ErrExtra, ErrUnread, or one of the meter.
// After any error except ErrUnread, the stream cannot be used.
func (s *Stream) Write(data []byte, end bool, m *cost.Meter) (out []byte, more bool, err error) {
	if len(data) > 0 && (len(s.in) > 0 || s.out.Len() > 0) {
		return nil, false, ErrUnread
	}
	s.ended = end
	if s.w != nil {
		out, err = s.compress(data, m)
		return out, false, err
	}
	if len(data) > 0 {
		s.in = data
	}
	at := isChecked
	for at == isChecked && s.err == nil {
		at = s.next()
		units := s.units
		s.units = 0
		if err := m.Spend(units); err != nil {
			return nil, false, err
		}
	}
	out = bytes.Clone(s.out.Bytes())
	s.out.Reset()
	switch {
	case s.err == nil:
		return out, at == isFull, nil
	case len(out) > 0:
		return out, true, nil
	}
	return nil, false, s.err
}

func (s *Stream) compress(data []byte, m *cost.Meter) ([]byte, error) {
	for piece := range slices.Chunk(data, cost.Every/inputUnits*16) {
		if err := m.Spend(inputUnits * len(piece)); err != nil {
			return nil, err
		}
		if _, err := s.w.Write(piece); err != nil {
			return nil, err
		}
	}
	if s.ended {
		if err := s.w.Close(); err != nil {
			return nil, err
		}
	}
	out := bytes.Clone(s.out.Bytes())
	s.out.Reset()
	return out, nil
}

func writer(format string, to io.Writer) io.WriteCloser {
	switch format {
	case "gzip":
		return gzip.NewWriter(to)
	case "deflate":
		return zlib.NewWriter(to)
	case "brotli":
		return brotli.NewWriterOptions(to, brotli.WriterOptions{Quality: brotliQuality, LGWin: brotliWindow})
	}
	w, err := flate.NewWriter(to, flate.DefaultCompression)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return w
}

// decompress does the steps of a decompression, until an error or the end of the input.
func (s *Stream) decompress(format string) {
	defer close(s.steps)
	defer func() { s.failed = recover() }()
	if _, going := <-s.resume; !going {
		return
	}
	err := s.readAll(format)
	switch {
	case err == nil, errors.Is(err, errStopped):
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = ErrTruncated
	case !errors.Is(err, ErrExtra):
		err = ErrMalformed
	}
	s.err = err
}

var errStopped = errors.New("the stream is closed")

func (s *Stream) readAll(format string) error {
	r, err := reader(format, source{s})
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		s.out.Write(buf[:n])
		switch spent := s.spend(outputUnits * n); {
		case spent != nil:
			return spent
		case errors.Is(err, io.EOF):
			return s.atEnd()
		case err != nil:
			return err
		}
		if s.out.Len() >= MaxPiece && !s.stand(isFull) {
			return errStopped
		}
	}
}

// atEnd waits for the end of the input, before which nothing may follow.
func (s *Stream) atEnd() error {
	for {
		switch {
		case len(s.in) > 0:
			return ErrExtra
		case s.ended:
			return nil
		case !s.stand(needsInput):
			return errStopped
		}
	}
}

func reader(format string, from source) (io.Reader, error) {
	switch format {
	case "gzip":
		r, err := gzip.NewReader(from)
		if err != nil {
			return nil, err
		}
		r.Multistream(false)
		return r, nil
	case "deflate":
		return zlib.NewReader(from)
	case "brotli":
		return brotli.NewReader(from), nil
	}
	return flate.NewReader(from), nil
}

// source reads the input of a stream, and waits for more. As it is an io.ByteReader, the decoders of Go read no more
// than they need.
type source struct{ s *Stream }

// wait waits until there is input.
func (r source) wait() error {
	for len(r.s.in) == 0 {
		if r.s.ended {
			return io.EOF
		}
		if !r.s.stand(needsInput) {
			return errStopped
		}
	}
	return nil
}

func (r source) Read(p []byte) (int, error) {
	if err := r.wait(); err != nil {
		return 0, err
	}
	n := min(len(p), len(r.s.in), checkedUnits/inputUnits)
	copy(p, r.s.in[:n])
	r.s.in = r.s.in[n:]
	return n, r.s.spend(inputUnits * n)
}

func (r source) ReadByte() (byte, error) {
	if err := r.wait(); err != nil {
		return 0, err
	}
	b := r.s.in[0]
	r.s.in = r.s.in[1:]
	return b, r.s.spend(inputUnits)
}
