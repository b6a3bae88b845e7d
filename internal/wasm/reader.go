package wasm

import (
	"fmt"
	"unicode/utf8"
)

// reader takes numbers and byte strings off a module. The first thing that goes
// wrong is kept in err, after which everything read is zero or empty.
type reader struct {
	bytes []byte // the whole file, so that pos is a position in it
	pos   int
	end   int    // of what may be read
	where string // the section, for messages
	err   error
}

// fail keeps the first error, with its section and its byte in the file.
func (r *reader) fail(format string, args ...any) {
	r.failAt(r.pos, format, args...)
}

func (r *reader) failAt(pos int, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("is damaged: %s, byte %#x: %s", r.where, pos, fmt.Sprintf(format, args...))
	}
}

// refuse records the refusal of a well-formed module, with what to do.
func (r *reader) refuse(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) left() int { return r.end - r.pos }

func (r *reader) byte() byte {
	if r.err != nil {
		return 0
	}
	if r.pos >= r.end {
		r.fail("ends too early")
		return 0
	}
	b := r.bytes[r.pos]
	r.pos++
	return b
}

func (r *reader) take(n uint32) []byte {
	if r.err != nil {
		return nil
	}
	if uint64(n) > uint64(r.left()) {
		r.fail("%d bytes are announced and %d are there", n, r.left())
		return nil
	}
	taken := r.bytes[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return taken
}

// u32 reads an unsigned LEB128 number of at most 32 bits.
func (r *reader) u32() uint32 {
	if r.err != nil {
		return 0
	}
	n, size := uleb32(r.bytes[r.pos:r.end])
	if size <= 0 {
		r.badNumber(size)
		return 0
	}
	r.pos += size
	return n
}

func (r *reader) badNumber(size int) {
	if size == 0 {
		r.fail("ends too early")
	} else {
		r.fail("a number has more bits than it may")
	}
}

// signed skips a signed LEB128 number of the given bits.
func (r *reader) signed(bits int) (n int64) {
	if r.err != nil {
		return 0
	}
	n, size := sleb(r.bytes[r.pos:r.end], bits)
	if size <= 0 {
		r.badNumber(size)
		return 0
	}
	r.pos += size
	return n
}

// count reads how many things of at least size bytes each follow, which may be
// at most limit. What names them, in the plural.
func (r *reader) count(what string, limit, size int) int {
	start := r.pos
	n := int64(r.u32())
	switch {
	case r.err != nil:
		return 0
	case n > int64(limit):
		r.refuse("has %d %s, and may have %d", n, what, limit)
		return 0
	case n*int64(size) > int64(r.left()):
		r.failAt(start, "%d %s are announced, which %d bytes cannot hold", n, what, r.left())
		return 0
	}
	return int(n)
}

// name reads a byte string that must be text.
func (r *reader) name() string {
	b := r.take(r.u32())
	if !utf8.Valid(b) {
		r.fail("a name is not UTF-8 text")
		return ""
	}
	return string(b)
}

// uleb32 decodes an unsigned LEB128 number of at most 32 bits. The size is 0 if
// it is cut off and negative if it is too large.
func uleb32(b []byte) (uint32, int) {
	var n uint32
	for i, c := range b {
		if i == 4 && c > 0x0f {
			return 0, -1
		}
		n |= uint32(c&0x7f) << (7 * i)
		if c < 0x80 {
			return n, i + 1
		}
	}
	return 0, 0
}

// sleb decodes a signed LEB128 number of the given bits, with sizes as uleb32.
func sleb(b []byte, bits int) (int64, int) {
	var n int64
	last := (bits+6)/7 - 1 // index of the last byte there may be
	for i, c := range b {
		if i > last {
			return 0, -1
		}
		n |= int64(c&0x7f) << (7 * i)
		if c < 0x80 {
			if shift := 7 * (i + 1); shift < 64 && c&0x40 != 0 {
				n |= -1 << shift
			}
			// the last byte's unused bits repeat the sign
			if used := bits - 7*last; i == last {
				if top := int8(c<<1) >> used; top != 0 && top != -1 {
					return 0, -1
				}
			}
			return n, i + 1
		}
		if i == last {
			return 0, -1
		}
	}
	return 0, 0
}

func appendU32(b []byte, n uint32) []byte {
	for n >= 0x80 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n))
}

func appendSigned(b []byte, n int64) []byte {
	for {
		c := byte(n) & 0x7f
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func appendName(b []byte, name string) []byte {
	return append(appendU32(b, uint32(len(name))), name...)
}
