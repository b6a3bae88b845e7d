package symbols

// value is the value of an attribute.
type value struct {
	class class
	n     uint64
	text  []byte
}

type class byte

const (
	classNone       class = iota
	classNumber           // also an offset in another section
	classAddress          // an address
	classText             // text, which may go on after a zero byte
	classString           // an offset in .debug_str
	classLineString       // an offset in .debug_line_str
	classStringAt         // an index in the unit's part of .debug_str_offsets
	classAddressAt        // an index in the unit's part of .debug_addr
	classRangesAt         // an index in the unit's part of .debug_rnglists
	classEntry            // an offset in .debug_info
)

// Forms that need more than a number of bytes and a class.
const (
	formString        = 0x08
	formRefAddr       = 0x10
	formIndirect      = 0x16
	formImplicitConst = 0x21
)

// sizes of forms: a positive number of bytes, or how the size is found.
const (
	sizeAddress = -1 - iota
	sizeOffset
	sizeLEB
	sizeSignedLEB
	blockOf1, blockOf2, blockOf4, blockLEB = -11, -12, -14, -10
)

// forms are the forms of values, by number.
var forms = map[uint32]struct {
	size  int
	class class
	unit  bool // the number counts from the unit's header
}{
	0x01: {sizeAddress, classAddress, false},
	0x03: {blockOf2, classNone, false},
	0x04: {blockOf4, classNone, false},
	0x05: {2, classNumber, false},
	0x06: {4, classNumber, false},
	0x07: {8, classNumber, false},
	0x09: {blockLEB, classNone, false},
	0x0a: {blockOf1, classNone, false},
	0x0b: {1, classNumber, false},
	0x0c: {1, classNone, false},
	0x0d: {sizeSignedLEB, classNumber, false},
	0x0e: {sizeOffset, classString, false},
	0x0f: {sizeLEB, classNumber, false},
	0x11: {1, classEntry, true},
	0x12: {2, classEntry, true},
	0x13: {4, classEntry, true},
	0x14: {8, classEntry, true},
	0x15: {sizeLEB, classEntry, true},
	0x17: {sizeOffset, classNumber, false},
	0x18: {blockLEB, classNone, false},
	0x19: {0, classNone, false},
	0x1a: {sizeLEB, classStringAt, false},
	0x1b: {sizeLEB, classAddressAt, false},
	0x1c: {4, classNone, false},
	0x1d: {sizeOffset, classNone, false},
	0x1e: {16, classNone, false},
	0x1f: {sizeOffset, classLineString, false},
	0x20: {8, classNone, false},
	0x22: {sizeLEB, classNone, false},
	0x23: {sizeLEB, classRangesAt, false},
	0x24: {8, classNone, false},
	0x25: {1, classStringAt, false},
	0x26: {2, classStringAt, false},
	0x27: {3, classStringAt, false},
	0x28: {4, classStringAt, false},
	0x29: {1, classAddressAt, false},
	0x2a: {2, classAddressAt, false},
	0x2b: {3, classAddressAt, false},
	0x2c: {4, classAddressAt, false},

	0x1f01: {sizeLEB, classAddressAt, false}, // GNU's forms before version 5
	0x1f02: {sizeLEB, classStringAt, false},
	0x1f20: {sizeOffset, classNone, false},
	0x1f21: {sizeOffset, classNone, false},
}

// maxIndirect limits how often a value names another form.
const maxIndirect = 2

// readForm reads a value.
func (u *unit) readForm(r *reader, form uint32, implicit int64, depth int) value {
	switch {
	case form == formString:
		return value{class: classText, text: r.text()}
	case form == formImplicitConst:
		return value{class: classNumber, n: uint64(implicit)}
	case form == formIndirect && depth < maxIndirect:
		return u.readForm(r, uint32(r.uleb()), 0, depth+1)
	case form == formRefAddr && u.version == 2:
		return value{class: classEntry, n: r.uint(u.addrSize)}
	case form == formRefAddr:
		return value{class: classEntry, n: r.uint(u.offsetSize)}
	}
	f, known := forms[form]
	if !known {
		r.failed, r.data = true, nil
		return value{}
	}
	v := value{class: f.class}
	switch f.size {
	case sizeAddress:
		v.n = r.uint(u.addrSize)
	case sizeOffset:
		v.n = r.uint(u.offsetSize)
	case sizeLEB:
		v.n = r.uleb()
	case sizeSignedLEB:
		v.n = uint64(r.sleb())
	case blockOf1:
		r.skip(r.uint(1))
	case blockOf2:
		r.skip(r.uint(2))
	case blockOf4:
		r.skip(r.uint(4))
	case blockLEB:
		r.skip(r.uleb())
	case 16:
		r.skip(16)
	default:
		v.n = r.uint(f.size)
	}
	if f.unit {
		v.n += uint64(u.base)
	}
	return v
}

// text returns a text, which may go on after a zero byte.
func (d *dwarfIndex) text(u *unit, v value) []byte {
	switch v.class {
	case classText:
		return v.text
	case classString:
		r := reader{data: d.sections[".debug_str"]}
		r.skip(v.n)
		return r.data
	case classLineString:
		r := reader{data: d.sections[".debug_line_str"]}
		r.skip(v.n)
		return r.data
	case classStringAt:
		r := reader{data: d.sections[".debug_str_offsets"]}
		r.skip(u.strings)
		r.skip(min(v.n, 1<<32) * uint64(u.offsetSize))
		return d.text(u, value{class: classString, n: r.uint(u.offsetSize)})
	}
	return nil
}

// address returns an address. false: the value is not one.
func (d *dwarfIndex) address(u *unit, v value) (uint64, bool) {
	switch v.class {
	case classAddress:
		return v.n, true
	case classAddressAt:
		r := reader{data: d.sections[".debug_addr"]}
		r.skip(u.addrs)
		r.skip(min(v.n, 1<<32) * uint64(u.addrSize))
		addr := r.uint(u.addrSize)
		return addr, !r.failed
	}
	return 0, false
}

// eachRange calls do with the ranges of an entry's addresses.
func (d *dwarfIndex) eachRange(u *unit, e entry, do func(low, high uint64)) {
	if e.ranges.class != classNone {
		d.eachListed(u, e.ranges, do)
		return
	}
	low, ok := d.address(u, e.low)
	if !ok {
		return
	}
	if high, ok := d.address(u, e.high); ok {
		do(low, high)
	} else if e.high.class == classNumber {
		do(low, low+e.high.n)
	}
}

// Entries of lists of ranges (DWARF 5, section 7.25).
const (
	rangesEnd = iota
	rangesBaseAt
	rangesStartAtEndAt
	rangesStartAtLength
	rangesOffsets
	rangesBase
	rangesStartEnd
	rangesStartLength
)

// eachListed calls do with the ranges of a list.
func (d *dwarfIndex) eachListed(u *unit, list value, do func(low, high uint64)) {
	base := u.low
	if u.version < 5 {
		r := d.section(".debug_ranges", list.n)
		for d.spend(1) && !r.failed {
			low, high := r.uint(u.addrSize), r.uint(u.addrSize)
			switch {
			case low == 0 && high == 0:
				return
			case low == 1<<(8*u.addrSize)-1:
				base = high
			default:
				do(base+low, base+high)
			}
		}
		return
	}
	offset := list.n
	if list.class == classRangesAt {
		r := d.section(".debug_rnglists", u.rng)
		r.skip(min(list.n, 1<<32) * uint64(u.offsetSize))
		offset = u.rng + r.uint(u.offsetSize)
	}
	r := d.section(".debug_rnglists", offset)
	at := func() uint64 {
		addr, _ := d.address(u, value{class: classAddressAt, n: r.uleb()})
		return addr
	}
	for d.spend(1) && !r.failed {
		switch r.u8() {
		case rangesBaseAt:
			base = at()
		case rangesStartAtEndAt:
			low, high := at(), at()
			do(low, high)
		case rangesStartAtLength:
			low := at()
			do(low, low+r.uleb())
		case rangesOffsets:
			low, high := r.uleb(), r.uleb()
			do(base+low, base+high)
		case rangesBase:
			base = r.uint(u.addrSize)
		case rangesStartEnd:
			low, high := r.uint(u.addrSize), r.uint(u.addrSize)
			do(low, high)
		case rangesStartLength:
			low := r.uint(u.addrSize)
			do(low, low+r.uleb())
		default: // the end, or an unknown kind
			return
		}
	}
}
