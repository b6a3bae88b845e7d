package compression_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"runner.example/hostabi/compression"
	"runner.example/internal/cost"
)

var formats = []string{"gzip", "deflate", "deflate-raw", "brotli"}

// through writes the pieces to a stream, and returns all output.
func through(t testing.TB, format string, decompress bool, pieces ...[]byte) (all []byte, err error) {
	t.Helper()
	s, err := compression.New(format, decompress)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, piece := range append(pieces, nil) {
		end := i == len(pieces)
		for {
			out, more, err := s.Write(piece, end, nil)
			all = append(all, out...)
			if err != nil {
				return all, err
			}
			if len(out) > 2*compression.MaxPiece {
				t.Fatalf("%s: %d bytes of output at once", format, len(out))
			}
			if !more {
				break
			}
			piece = nil
		}
	}
	return all, nil
}

func inPieces(b []byte, size int) (pieces [][]byte) {
	for len(b) > size {
		pieces, b = append(pieces, b[:size]), b[size:]
	}
	return append(pieces, b)
}

func TestWhatWasCompressedIsDecompressed(t *testing.T) {
	random := make([]byte, 300_000)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(random)
	for _, format := range formats {
		for name, text := range map[string][]byte{"nothing": nil, "text": []byte("hello"), "zeros": make([]byte, 5<<20), "random": random} {
			for _, size := range []int{1 << 20, 7777} {
				packed, err := through(t, format, false, inPieces(text, size)...)
				if err != nil {
					t.Fatal(err)
				}
				got, err := through(t, format, true, inPieces(packed, size)...)
				if err != nil || !bytes.Equal(got, text) {
					t.Errorf("%s of %s in pieces of %d: %d bytes, %v", format, name, size, len(got), err)
				}
			}
		}
		packed, _ := through(t, format, false, []byte("hello"))
		if got, err := through(t, format, true, inPieces(packed, 1)...); err != nil || string(got) != "hello" {
			t.Errorf("%s byte by byte: %q, %v", format, got, err)
		}
	}
}

func TestWrongInputIsAnError(t *testing.T) {
	text := []byte(strings.Repeat("hello ", 1000))
	for _, format := range formats {
		packed, _ := through(t, format, false, text)
		for n := range packed {
			if _, err := through(t, format, true, packed[:n]); !errors.Is(err, compression.ErrTruncated) {
				t.Errorf("%s: the first %d of %d bytes: %v", format, n, len(packed), err)
			}
		}
		for _, pieces := range [][][]byte{{append(bytes.Clone(packed), 0)}, {packed, {0}}} {
			got, err := through(t, format, true, pieces...)
			if extra := errors.Is(err, compression.ErrExtra) || format == "brotli" && errors.Is(err, compression.ErrMalformed); !extra || !bytes.Equal(got, text) {
				t.Errorf("%s with more bytes: %d bytes, %v", format, len(got), err)
			}
		}
		if _, err := through(t, format, true, bytes.Repeat([]byte{0xff}, 100)); !errors.Is(err, compression.ErrMalformed) {
			t.Errorf("%s: other bytes: %v", format, err)
		}
		if format == "gzip" || format == "deflate" {
			packed[len(packed)-3] ^= 1
			if _, err := through(t, format, true, packed); !errors.Is(err, compression.ErrMalformed) {
				t.Errorf("%s with a wrong checksum: %v", format, err)
			}
		}
	}
	if _, err := compression.New("zip", false); !errors.Is(err, compression.ErrFormat) {
		t.Errorf("format zip: %v", err)
	}
}

func TestAStreamIsNotFedBeforeItsOutputIsRead(t *testing.T) {
	packed, _ := through(t, "gzip", false, make([]byte, 5<<20))
	s, _ := compression.New("gzip", true)
	defer s.Close()
	if out, more, err := s.Write(packed, false, nil); len(out) < compression.MaxPiece || !more || err != nil {
		t.Fatalf("%d bytes, %v, %v", len(out), more, err)
	}
	if _, _, err := s.Write([]byte{0}, false, nil); !errors.Is(err, compression.ErrUnread) {
		t.Errorf("a write before the output is read: %v", err)
	}
}

func TestTheWorkOfAStreamIsCounted(t *testing.T) {
	over := errors.New("over")
	for _, format := range formats {
		packed, _ := through(t, format, false, make([]byte, 5<<20))
		for _, decompress := range []bool{false, true} {
			var m cost.Meter
			m.Reset(func() error { return over })
			s, _ := compression.New(format, decompress)
			data := packed
			if !decompress {
				data = make([]byte, 1<<20)
			}
			if _, _, err := s.Write(data, true, &m); !errors.Is(err, over) {
				t.Errorf("%s, decompress %v: %v", format, decompress, err)
			}
			s.Close()
		}
	}
}

func FuzzDecompress(f *testing.F) {
	for i, format := range formats {
		packed, _ := through(f, format, false, []byte("hello hello"))
		f.Add(uint8(i), packed)
	}
	f.Fuzz(func(t *testing.T, format uint8, data []byte) {
		name := formats[int(format)%len(formats)]
		all, err := through(t, name, true, data)
		one, err1 := through(t, name, true, inPieces(data, 1)...)
		if (err == nil) != (err1 == nil) || err == nil && !bytes.Equal(all, one) {
			t.Errorf("%s: %x is %x %v, and byte by byte %x %v", name, data, all, err, one, err1)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	text := []byte(strings.Repeat("The quick brown fox jumps over the lazy dog. ", 20000))
	for _, format := range formats {
		packed, _ := through(b, format, false, text)
		b.Run(format+"/compress", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = through(b, format, false, text)
			}
		})
		b.Run(format+"/decompress", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = through(b, format, true, packed)
			}
		})
	}
}

// Blocks without content take time too, as they may describe codes.
func TestInputWithoutOutputIsCounted(t *testing.T) {
	over := errors.New("over")
	var m cost.Meter
	m.Reset(func() error { return over })
	s, err := compression.New("deflate-raw", true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	empty := []byte{0x02, 0x08, 0x20, 0x80, 0x00} // four blocks
	if out, _, err := s.Write(bytes.Repeat(empty, 1_000), false, &m); !errors.Is(err, over) || len(out) != 0 {
		t.Errorf("%d bytes of output, %v", len(out), err)
	}
}
