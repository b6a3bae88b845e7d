package symbols

import (
	"cmp"
	"errors"
	"slices"
	"sort"
	"strings"
)

// usedSections are the sections of DWARF that the package reads.
var usedSections = []string{
	".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_line_str",
	".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_str_offsets",
}

func isUsed(section string) bool { return slices.Contains(usedSections, section) }

// The limits of DWARF. Compilers write far less: a program with 32 MiB of DWARF has about 10 million attributes.
const (
	// maxWork limits attributes, instructions of line tables, and range entries that are read, together.
	maxWork    = 1 << 25
	maxUnits   = 1 << 16
	maxAbbrevs = 1 << 20 // attributes of all abbreviations
	maxRows    = 1 << 21
	maxSources = 1 << 18
	maxScopes  = 1 << 20
	maxRanges  = 1 << 20
	maxDepth   = 1 << 12
	maxAttrs   = 1 << 8  // of one entry
	maxEntry   = 1 << 16 // bytes of an entry with the name of a function
)

var errDamaged = errors.New("is incomplete: DWARF is damaged, or has more than can be read")

// dwarfIndex is DWARF by address. It does not change after readDWARF.
type dwarfIndex struct {
	sections map[string][]byte
	codeSize uint32
	work     int
	damaged  bool

	units   []unit // by offset
	abbrevs map[uint64]map[uint64]*abbrev
	specs   int // attributes in abbrevs

	programs map[uint64]fileTable
	files    []sourceFile
	rows     []row

	scopes []scope
	ranges []pcRange // by scope
	byLow  []pcRange // the same, by low
}

// unit is one unit of .debug_info.
type unit struct {
	base, start, end    int // of its header, its first entry and the next unit
	offsetSize          int // 4 or 8
	version, addrSize   int
	abbrevs             map[uint64]*abbrev
	strings, addrs, rng uint64 // its parts of .debug_str_offsets, .debug_addr and .debug_rnglists
	low                 uint64
	files               fileTable
}

// abbrev says which attributes an entry has.
type abbrev struct {
	tag      uint64
	children bool
	attrs    []attrSpec
}

type attrSpec struct {
	attr, form uint32
	value      int64 // of DW_FORM_implicit_const
}

// fileTable is a part of dwarfIndex.files, in which numbers begin with first.
type fileTable struct{ at, count, first int }

// scope is a function, or an inlined call. Their parent is the scope around them; -1: none.
type scope struct {
	entry            uint32 // offset in .debug_info
	parent           int32
	firstRange       int32
	ranges           int32
	inlined          bool
	callFile         int32 // in dwarfIndex.files; -1: unknown
	callLine, callAt uint32
}

type pcRange struct {
	low, high uint32
	scope     int32
}

// Tags, attributes and forms of DWARF (version 5, section 7.5).
const (
	tagCompileUnit  = 0x11
	tagInlined      = 0x1d
	tagSubprogram   = 0x2e
	tagPartialUnit  = 0x3c
	tagSkeletonUnit = 0x4a

	attrName           = 0x03
	attrStmtList       = 0x10
	attrLowPC          = 0x11
	attrHighPC         = 0x12
	attrCompDir        = 0x1b
	attrAbstractOrigin = 0x31
	attrSpecification  = 0x47
	attrRanges         = 0x55
	attrCallColumn     = 0x57
	attrCallFile       = 0x58
	attrCallLine       = 0x59
	attrLinkageName    = 0x6e
	attrStrOffsetsBase = 0x72
	attrAddrBase       = 0x73
	attrRnglistsBase   = 0x74
	attrMIPSLinkage    = 0x2007
	attrGNUAddrBase    = 0x2133
)

// readDWARF reads DWARF of a module with a code section of that size. The index is never nil: after an error it
// has what could be read.
func readDWARF(sections map[string][]byte, codeSize uint32) (*dwarfIndex, error) {
	d := &dwarfIndex{
		sections: sections, codeSize: codeSize, work: maxWork,
		abbrevs: map[uint64]map[uint64]*abbrev{}, programs: map[uint64]fileTable{},
	}
	d.readUnits()
	for i := range d.units {
		d.index(&d.units[i])
	}
	slices.SortStableFunc(d.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(min(a.file, noFile), min(b.file, noFile))) // ends first
	})
	d.byLow = slices.Clone(d.ranges)
	slices.SortStableFunc(d.byLow, func(a, b pcRange) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.scope, b.scope))
	})
	d.programs = nil
	if d.damaged {
		return d, errDamaged
	}
	return d, nil
}

// spend takes n from the limit of work. false: it is used up.
func (d *dwarfIndex) spend(n int) bool {
	d.work -= n
	if d.work < 0 {
		d.damaged = true
	}
	return d.work >= 0
}

// section returns a section from an offset on.
func (d *dwarfIndex) section(name string, offset uint64) reader {
	data := d.sections[name]
	if offset > uint64(len(data)) {
		d.damaged = true
		return reader{failed: true}
	}
	return reader{data: data[offset:]}
}

// length reads the length of a unit, and the size of offsets in it.
func (r *reader) length() (n uint64, offsetSize int) {
	if n = r.uint(4); n == 0xffffffff {
		return r.uint(8), 8
	}
	return n, 4
}

// readUnits reads the headers of all units.
func (d *dwarfIndex) readUnits() {
	whole := d.sections[".debug_info"]
	r := reader{data: whole}
	for len(r.data) > 0 {
		u := unit{base: len(whole) - len(r.data)}
		var length uint64
		length, u.offsetSize = r.length()
		body := reader{data: r.bytes(length)}
		if r.failed || len(d.units) == maxUnits {
			d.damaged = true
			return
		}
		u.end = len(whole) - len(r.data)
		u.version = int(body.uint(2))
		kind, abbrevs := byte(1), uint64(0)
		if u.version >= 5 {
			kind, u.addrSize = body.u8(), int(body.u8())
			abbrevs = body.uint(u.offsetSize)
		} else {
			abbrevs = body.uint(u.offsetSize)
			u.addrSize = int(body.u8())
		}
		switch kind {
		case 4, 5: // skeletons and split units: u64 id
			body.skip(8)
		case 2, 6: // types have no code
			continue
		}
		u.start = u.end - len(body.data)
		if u.version < 2 || u.version > 5 || body.failed || u.addrSize != 4 && u.addrSize != 8 {
			d.damaged = true
			continue
		}
		if u.abbrevs = d.abbrevsAt(abbrevs); u.abbrevs != nil {
			d.units = append(d.units, u)
		}
	}
}

// abbrevsAt reads a table of abbreviations; nil: it is damaged.
func (d *dwarfIndex) abbrevsAt(offset uint64) map[uint64]*abbrev {
	if table, ok := d.abbrevs[offset]; ok {
		return table
	}
	r := d.section(".debug_abbrev", offset)
	table := map[uint64]*abbrev{}
	for {
		code := r.uleb()
		if code == 0 {
			break
		}
		a := &abbrev{tag: r.uleb(), children: r.u8() != 0}
		for {
			s := attrSpec{attr: uint32(r.uleb()), form: uint32(r.uleb())}
			if s.form == formImplicitConst {
				s.value = r.sleb()
			}
			if d.specs++; r.failed || d.specs > maxAbbrevs || len(a.attrs) > maxAttrs {
				d.damaged = true
				d.abbrevs[offset] = nil
				return nil
			}
			if s.attr == 0 && s.form == 0 {
				break
			}
			a.attrs = append(a.attrs, s)
		}
		table[code] = a
	}
	if r.failed {
		d.damaged, table = true, nil
	}
	d.abbrevs[offset] = table
	return table
}

// entry has the attributes of one entry that are used.
type entry struct {
	low, high, ranges            value
	callFile, callLine, callAt   uint64
	origin                       value // or the specification
	name, linkageName            value
	lines, dir                   value
	stringBase, addrBase, rngsAt value
}

// readEntry reads the attributes of an entry.
func (u *unit) readEntry(r *reader, a *abbrev) (e entry) {
	for _, s := range a.attrs {
		v := u.readForm(r, s.form, s.value, 0)
		switch s.attr {
		case attrName:
			e.name = v
		case attrStmtList:
			e.lines = v
		case attrLowPC:
			e.low = v
		case attrHighPC:
			e.high = v
		case attrCompDir:
			e.dir = v
		case attrAbstractOrigin, attrSpecification:
			e.origin = v
		case attrRanges:
			e.ranges = v
		case attrCallColumn:
			e.callAt = v.n
		case attrCallFile:
			e.callFile = v.n
		case attrCallLine:
			e.callLine = v.n
		case attrLinkageName, attrMIPSLinkage:
			e.linkageName = v
		case attrStrOffsetsBase:
			e.stringBase = v
		case attrAddrBase, attrGNUAddrBase:
			e.addrBase = v
		case attrRnglistsBase:
			e.rngsAt = v
		}
	}
	return e
}

// index reads the entries of a unit.
func (d *dwarfIndex) index(u *unit) {
	r := reader{data: d.sections[".debug_info"][u.start:u.end]}
	current := int32(-1)
	var around []int32
	for first := true; len(r.data) > 0; {
		at := u.end - len(r.data)
		code := r.uleb()
		if !d.spend(1) {
			return
		}
		if code == 0 {
			if len(around) == 0 {
				return // padding
			}
			current, around = around[len(around)-1], around[:len(around)-1]
			continue
		}
		a := u.abbrevs[code]
		if a == nil || !d.spend(len(a.attrs)) || len(around) > maxDepth {
			d.damaged = true
			return
		}
		e := u.readEntry(&r, a)
		if r.failed {
			d.damaged = true
			return
		}
		inside := current
		switch {
		case first:
			d.begin(u, a, e)
		case a.tag == tagSubprogram, a.tag == tagInlined:
			inside = d.addScope(u, a, e, at, current)
		}
		first = false
		if a.children {
			around, current = append(around, current), inside
		}
	}
}

// begin reads the first entry of a unit, which describes it.
func (d *dwarfIndex) begin(u *unit, a *abbrev, e entry) {
	if a.tag != tagCompileUnit && a.tag != tagPartialUnit && a.tag != tagSkeletonUnit {
		return
	}
	u.strings, u.addrs, u.rng = e.stringBase.n, e.addrBase.n, e.rngsAt.n
	u.low, _ = d.address(u, e.low)
	if e.lines.class == classNumber {
		u.files = d.readLines(u, e.lines.n, d.text(u, e.dir))
	}
}

// addScope adds a function or an inlined call with its ranges, and returns its number; that of the scope around
// it if it has no code.
func (d *dwarfIndex) addScope(u *unit, a *abbrev, e entry, at int, parent int32) int32 {
	s := scope{
		entry: uint32(at), parent: parent, firstRange: int32(len(d.ranges)), inlined: a.tag == tagInlined,
		callFile: d.file(u.files, e.callFile), callLine: uint32(e.callLine), callAt: uint32(e.callAt),
	}
	number := int32(len(d.scopes))
	d.eachRange(u, e, func(low, high uint64) {
		switch {
		case low == 0 || low >= high || high > uint64(d.codeSize): // the linker has removed the code
		case len(d.ranges) == maxRanges:
			d.damaged = true
		default:
			d.ranges = append(d.ranges, pcRange{uint32(low), uint32(high), number})
		}
	})
	if s.ranges = int32(len(d.ranges)) - s.firstRange; s.ranges == 0 {
		return parent
	}
	if len(d.scopes) == maxScopes {
		d.damaged, d.ranges = true, d.ranges[:s.firstRange]
		return parent
	}
	d.scopes = append(d.scopes, s)
	return number
}

// contains reports whether a scope has an address.
func (d *dwarfIndex) contains(s scope, addr uint32) bool {
	return slices.ContainsFunc(d.ranges[s.firstRange:s.firstRange+s.ranges], func(r pcRange) bool {
		return r.low <= addr && addr < r.high
	})
}

// frames returns the frames at an address, innermost first; none if nothing is known about it.
func (d *dwarfIndex) frames(addr uint32) (frames []Frame) {
	place, known := d.line(addr)
	i := sort.Search(len(d.byLow), func(i int) bool { return d.byLow[i].low > addr })
	at := int32(-1)
	if i > 0 {
		at = d.byLow[i-1].scope // this one begins inside of all others that have the address
	}
	whole := false // the function itself was found
	for ; at >= 0 && len(frames) < maxInlined && !whole; at = d.scopes[at].parent {
		s := d.scopes[at]
		if !d.contains(s, addr) {
			continue
		}
		place.Function = d.name(s.entry)
		frames = append(frames, place)
		whole = !s.inlined
		if place = (Frame{}); s.inlined && s.callFile >= 0 {
			place = Frame{File: d.files[s.callFile].path(), Line: int(s.callLine), Column: int(s.callAt)}
		}
	}
	if len(frames) == 0 && !known {
		return nil
	}
	if !whole {
		frames = append(frames, place)
	}
	return frames
}

// maxOrigins limits how often the name of an entry is that of another one.
const maxOrigins = 8

// name returns the name of the function of an entry: demangled if it has a name for the linker.
func (d *dwarfIndex) name(at uint32) string {
	plain, offset := "", uint64(at)
	for range maxOrigins {
		i := sort.Search(len(d.units), func(i int) bool { return uint64(d.units[i].end) > offset })
		if i == len(d.units) || offset < uint64(d.units[i].start) {
			break
		}
		u := &d.units[i]
		r := reader{data: d.sections[".debug_info"][offset:min(u.end, int(offset)+maxEntry)]}
		a := u.abbrevs[r.uleb()]
		if a == nil {
			break
		}
		e := u.readEntry(&r, a)
		if name := d.nameText(u, e.linkageName); name != "" {
			return PlainName(name)
		}
		if plain == "" {
			plain = d.nameText(u, e.name)
		}
		if e.origin.class != classEntry {
			break
		}
		offset = e.origin.n
	}
	return PlainName(plain)
}

// nameText returns a text of limited length.
func (d *dwarfIndex) nameText(u *unit, v value) string {
	text := d.text(u, v)
	text = text[:min(len(text), 1<<maxNameBits+1)]
	name, _, _ := strings.Cut(string(text), "\x00")
	return name
}
