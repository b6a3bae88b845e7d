package symbols

import (
	"bytes"
	"encoding/binary"
	"regexp"

	"github.com/ianlancetaylor/demangle"
)

// rustHash ends the names of Rust's functions.
var rustHash = regexp.MustCompile(`::h[0-9a-f]{16}$`)

// maxNameBits limits names to 2^maxNameBits bytes: a module may name its functions as it likes, and a short
// name can be one of gigabytes when it is demangled.
const maxNameBits = 10

// PlainName returns the name of a function as in the source: it demangles names of Rust and C++, because not
// all linkers do that. The result is printable and has at most 1,027 bytes.
func PlainName(name string) string {
	if len(name) <= 1<<maxNameBits { // demangling takes more than quadratic time
		name = rustHash.ReplaceAllString(demangle.Filter(name, demangle.MaxLength(maxNameBits)), "")
	}
	if len(name) > 1<<maxNameBits {
		return clean(name[:1<<maxNameBits]) + "…"
	}
	return clean(name)
}

// reader reads numbers in little-endian order. After the first read past the end, all reads return zero or
// nothing.
type reader struct {
	data   []byte
	failed bool
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.data)) {
		r.failed, r.data = true, nil
		return nil
	}
	taken := r.data[:n:n]
	r.data = r.data[n:]
	return taken
}

func (r *reader) skip(n uint64) { r.bytes(n) }

func (r *reader) u8() byte {
	if len(r.data) == 0 {
		r.failed = true
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

// uint reads a number of 1 to 8 bytes.
func (r *reader) uint(size int) uint64 {
	var whole [8]byte
	copy(whole[:], r.bytes(uint64(size)))
	return binary.LittleEndian.Uint64(whole[:])
}

func (r *reader) uleb() (n uint64) {
	for shift := 0; ; shift += 7 {
		b := r.u8()
		if shift < 64 {
			n |= uint64(b&0x7f) << shift
		}
		if b < 0x80 {
			return n
		}
	}
}

func (r *reader) sleb() (n int64) {
	for shift := 0; ; {
		b := r.u8()
		if shift < 64 {
			n |= int64(b&0x7f) << shift
		}
		shift += 7
		if b < 0x80 {
			if shift < 64 && b&0x40 != 0 {
				n |= -1 << shift
			}
			return n
		}
	}
}

// text reads up to a zero byte.
func (r *reader) text() []byte {
	if i := bytes.IndexByte(r.data, 0); i >= 0 {
		return r.bytes(uint64(i) + 1)[:i:i]
	}
	r.failed, r.data = true, nil
	return nil
}
