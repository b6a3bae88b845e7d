// Package canon lifts and lowers values as the component model's CanonicalABI.md says: it reads them
// from a guest's memory and core values, and writes them there. Pointers have 32 bits, strings are
// UTF-8.
//
// Go has values of component types as follows:
//
//	bool                                     bool
//	u8 u16 u32 u64                           uint64
//	s8 s16 s32 s64                           int64
//	f32 f64                                  float64
//	char                                     rune
//	string                                   string; a []byte that is UTF-8 is lowered too
//	list<u8>                                 []byte
//	other lists, of fixed length too, maps   []any; an entry of a map is a tuple
//	strings, and lists of no fixed length    a Part is lowered too
//	record tuple                             []any
//	variant enum option result               Case
//	flags                                    uint64, the first flag is the lowest bit
//	own borrow stream future error-context   uint32
//
// What the canonical ABI traps on is an error. Handles are numbers here: their owner checks them.
package canon

// Case is a value of a variant, enum, option or result. Value is nil if the case has no payload. The
// cases of an option are none and some, those of a result are ok and error.
type Case struct {
	Index uint32
	Value any
}

// maxBytes is the canonical ABI's bound of the length of a string or list (MAX_LIST_BYTE_LENGTH).
const maxBytes = 1<<28 - 1
