package layout

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strings"

	"runner.example/schema"
	"runner.example/state/store"
)

// The store's keys of rows. Numbers are big endian and assigned by the catalog, so that
// names may be long.
//
//	state/entity/catalog                 the catalog of the active schema, JSON
//	entity/generation              u64, grows with every change of the catalog
//	entity/next                    u32 number for the next table or index
//	entity/r <u32 table> <tail>    one row, see codec.go
//	entity/i <u32 index> <entry>   an index entry; the value is the tail of its row
//	entity/b <u32 index>           not yet built, up to this tail
//	entity/d <u32 index>           to be dropped with all its entries
//
// A tail identifies a row of a table: the id, in tables with tenants after the tenant. So
// operations for one tenant scan only its keys.
//
//	tail  = [tenant] id             tenant as a text of an entry, id bare
//	entry = column … [id [tenant]]  the id is missing in unique indexes (but for
//	                                rows with a null), the tenant in those that
//	                                have it as a column
const (
	keyAll        = "entity/"
	KeyCatalog    = keyAll + "catalog"
	KeyGeneration = keyAll + "generation"
	KeyNext       = keyAll + "next"
	SpaceRows     = keyAll + "r"
	SpaceEntries  = keyAll + "i"
	SpaceUnbuilt  = keyAll + "b"
	SpaceDropped  = keyAll + "d"
)

// A row that has a file is an owner of the file's blob, see store.AppendBlobReference:
//
//	owner = <u32 table> <u32 field> <tail>
//
// AppendFileReference appends the key which says that the row with that tail has the blob of a file in a field.
func AppendFileReference(dst []byte, f schema.File, table, field uint32, tail string) []byte {
	var numbers [8]byte
	binary.BigEndian.PutUint32(numbers[:4], table)
	binary.BigEndian.PutUint32(numbers[4:], field)
	return store.AppendBlobReference(dst, f.SHA256, numbers[:], BorrowBytes(tail))
}

// CutFileOwner returns the parts of the owner in a reference; ok is false if it is not one of a row.
func CutFileOwner(owner []byte) (table, field uint32, tail []byte, ok bool) {
	if len(owner) < 8 {
		return 0, 0, nil, false
	}
	return binary.BigEndian.Uint32(owner), binary.BigEndian.Uint32(owner[4:]), owner[8:], true
}

// MaxEntryBytes is the limit of an index entry's key, well below the store's limit.
const MaxEntryBytes = 16 << 10

// NumberedKey returns the key, or the prefix, of a number in a space.
func NumberedKey(space string, number uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte(space), number)
}

// The first byte of a value in an entry. Null sorts first.
const (
	entryNull  = 0
	EntryValue = 1
)

// A text ends with endText. A NUL in it is written as escapedNUL, which is greater: so no
// text is a prefix of another, and the bytes sort like the texts.
const (
	endText    = "\x00\x01"
	escapedNUL = "\x00\xff"
)

// AppendEntry appends a value so that the bytes sort like the values of one column: null
// first, or, if desc, last. No value is a prefix of another.
func AppendEntry(dst []byte, v schema.Value, desc bool) []byte {
	start := len(dst)
	dst = appendAscending(dst, v)
	if desc {
		Invert(dst[start:])
	}
	return dst
}

// Invert inverts all bits, which reverses the order of entries.
func Invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

func appendAscending(dst []byte, v schema.Value) []byte {
	if v.IsNull() {
		return append(dst, entryNull)
	}
	dst = append(dst, EntryValue)
	switch v.Kind() {
	case schema.KindBool:
		if v.Bool() {
			return append(dst, 1)
		}
		return append(dst, 0)
	case schema.KindInt, schema.KindTime, schema.KindDate, schema.KindDuration:
		return binary.BigEndian.AppendUint64(dst, uint64(v.Int())^1<<63)
	case schema.KindFloat:
		n := math.Float64bits(v.Float())
		if n>>63 == 1 {
			return binary.BigEndian.AppendUint64(dst, ^n)
		}
		return binary.BigEndian.AppendUint64(dst, n^1<<63)
	case schema.KindDecimal:
		return appendDecimal(dst, v.Text())
	case schema.KindText, schema.KindBytes:
		return appendTextEntry(dst, v.Text())
	}
	panic("BUG: a value of this kind cannot be indexed")
}

// appendTextEntry appends a text and its end.
func appendTextEntry(dst []byte, s string) []byte {
	return append(AppendTextStart(dst, s), endText...)
}

// AppendTextStart appends a text without its end: the prefix of all texts that begin with
// s.
func AppendTextStart(dst []byte, s string) []byte {
	for i := range len(s) {
		if s[i] == 0 {
			dst = append(dst, escapedNUL...)
			continue
		}
		dst = append(dst, s[i])
	}
	return dst
}

// cutTextEntry decodes what appendTextEntry appended; false if s does not begin with that.
// The text is a part of s unless it has a NUL.
func cutTextEntry(s string) (text, rest string, ok bool) {
	escaped := false
	for i := 0; i+1 < len(s); i++ {
		if s[i] != 0 {
			continue
		}
		switch s[i+1] {
		case endText[1]:
			text, rest = s[:i], s[i+2:]
			if escaped {
				text = strings.ReplaceAll(text, escapedNUL, "\x00")
			}
			return text, rest, true
		case escapedNUL[1]:
			escaped = true
			i++
		default:
			return "", "", false
		}
	}
	return "", "", false
}

// appendDecimal appends the digits of a decimal, at most 38, without the point, as a
// 128-bit number with its sign bit flipped. Decimals of one column have the same places, so
// the bytes sort like the values.
func appendDecimal(dst []byte, digits string) []byte {
	var hi, lo uint64
	negative := false
	for i := range len(digits) {
		switch c := digits[i]; c {
		case '-':
			negative = true
		case '.':
		default:
			over, low := bits.Mul64(lo, 10)
			low, carry := bits.Add64(low, uint64(c-'0'), 0)
			hi, lo = hi*10+over+carry, low
		}
	}
	if negative {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	dst = binary.BigEndian.AppendUint64(dst, hi^1<<63)
	return binary.BigEndian.AppendUint64(dst, lo)
}

// PrefixEnd returns the least key above all that begin with b, nil if there is none. It
// changes b.
func PrefixEnd(b []byte) []byte {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			b[i]++
			return b[:i+1]
		}
	}
	return nil
}
