package component

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// Error is why a component cannot be used: where in the file, and what is wrong there. It is
// one line that continues the name of the file.
type Error struct {
	At      int  // byte of the file
	Refused bool // the component may be valid, but uses more than is allowed or what is not supported
	What    string
}

func (e *Error) Error() string {
	if e.Refused {
		return fmt.Sprintf("cannot be used: %s, at byte %#x", e.What, e.At)
	}
	return fmt.Sprintf("is not a valid component: %s, at byte %#x", e.What, e.At)
}

// fail makes the error of what is not valid.
func fail(at int, format string, args ...any) *Error {
	return &Error{At: at, What: fmt.Sprintf(format, args...)}
}

// refuse makes the error of what is not supported or too much.
func refuse(at int, format string, args ...any) *Error {
	return &Error{At: at, Refused: true, What: fmt.Sprintf(format, args...)}
}

// reader takes numbers and byte strings off a component. The first thing that goes wrong is kept
// in err, after which everything read is zero or empty.
type reader struct {
	bytes    []byte // the whole file, so that pos is a position in it
	pos, end int
	err      *Error
	entries  *int // of all sections and types so far: see maxEntries
}

func (r *reader) fail(at int, format string, args ...any) { r.keep(fail(at, format, args...)) }

func (r *reader) keep(err *Error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) byte() byte {
	b := r.take(1)
	if b == nil {
		return 0
	}
	return b[0]
}

func (r *reader) take(n int) []byte {
	if r.err == nil && n > r.end-r.pos {
		r.fail(r.pos, "%d bytes are expected and %d are there", n, r.end-r.pos)
	}
	if r.err != nil {
		return nil
	}
	taken := r.bytes[r.pos : r.pos+n : r.pos+n]
	r.pos += n
	return taken
}

// u32 reads an unsigned LEB128 number of at most 32 bits, in at most 5 bytes.
func (r *reader) u32() uint32 {
	if r.err != nil {
		return 0
	}
	n, size := binary.Uvarint(r.bytes[r.pos:min(r.end, r.pos+5)])
	if size <= 0 || n > math.MaxUint32 {
		r.fail(r.pos, "a number is cut off or larger than 32 bits")
		return 0
	}
	r.pos += size
	return uint32(n)
}

// reference reads a type: an index, or a negative number for a type without parts. It is a
// signed LEB128 number of 33 bits, of which the negative ones take one byte.
func (r *reader) reference() int64 {
	if r.err == nil && r.pos < r.end && r.bytes[r.pos]&0xc0 == 0x40 {
		return int64(r.byte()) - 0x80
	}
	at := r.pos
	n := int64(r.u32())
	// bit 6 of the last byte is the sign, so an index may need one byte more
	if r.err == nil && r.pos-at < 5 && r.bytes[r.pos-1]&0x40 != 0 {
		r.fail(at, "a type is a negative number of more than one byte")
	}
	return n
}

// count reads how many entries of at least size bytes each follow, of which there may be
// limit. What names them, in the plural.
func (r *reader) count(what string, limit int, name string, size int) int {
	at := r.pos
	n := int64(r.u32())
	switch {
	case r.err != nil:
		return 0
	case n > int64(limit):
		r.keep(refuse(at, "%d %s, and there may be %d (%s)", n, what, limit, name))
	case n*int64(size) > int64(r.end-r.pos):
		r.fail(at, "%d %s are announced, which %d bytes cannot hold", n, what, r.end-r.pos)
	default:
		return int(n)
	}
	return 0
}

// entriesOf reads the number of entries of a section or type, and counts them.
func (r *reader) entriesOf(what string, size int) int {
	n := r.count(what, maxEntries, "maxEntries", size)
	r.addEntries(n)
	return n
}

func (r *reader) addEntries(n int) {
	if *r.entries += n; *r.entries > maxEntries {
		r.keep(refuse(r.pos, "more than %d entries in all sections, types and core modules (maxEntries)", maxEntries))
	}
}

func (r *reader) name() string {
	n := r.count("bytes of a name", maxNameBytes, "maxNameBytes", 1)
	at := r.pos
	b := r.take(n)
	if !utf8.Valid(b) {
		r.fail(at, "a name is not UTF-8 text")
	}
	return string(b)
}

// flag reads a byte that is 0 or 1.
func (r *reader) flag(what string) bool {
	at := r.pos
	b := r.byte()
	if b > 1 {
		r.fail(at, "%s is %#x, and not 0 or 1", what, b)
	}
	return b == 1
}
