package symbols

import (
	"math"
	"sort"
)

// row says that the code from an address on comes from a line, up to the next row.
type row struct {
	addr         uint32
	file         int32 // in dwarfIndex.files; noFile: unknown; seqEnd: code ends here
	line, column uint32
}

const (
	noFile = -1
	seqEnd = -2
)

// line returns the file, line and column of an address, without its function.
func (d *dwarfIndex) line(addr uint32) (f Frame, ok bool) {
	i := sort.Search(len(d.rows), func(i int) bool { return d.rows[i].addr > addr })
	if i == 0 || d.rows[i-1].file == seqEnd {
		return Frame{}, false
	}
	r := d.rows[i-1]
	if r.line == 0 || r.file < 0 {
		return Frame{}, true // code that belongs to no line, or to several
	}
	return Frame{File: d.files[r.file].path(), Line: int(r.line), Column: int(r.column)}, true
}

// file returns the number of a file in dwarfIndex.files; noFile: there is none.
func (d *dwarfIndex) file(t fileTable, n uint64) int32 {
	if n < uint64(t.first) || n-uint64(t.first) >= uint64(t.count) {
		return noFile
	}
	return int32(t.at + int(n) - t.first)
}

// lineProgram is the header of a line table (DWARF 5, section 6.2.4).
type lineProgram struct {
	r                     reader
	version               int
	minInstruction        uint64
	lineBase              int8
	lineRange, opcodeBase byte
	operands              []byte // of standard opcodes
	u                     unit   // for forms
	compDir               []byte
	dirs                  [][]byte
	files                 fileTable
}

// readLines reads the line table of a unit, unless another unit had it, and returns its files.
func (d *dwarfIndex) readLines(u *unit, offset uint64, compDir []byte) fileTable {
	if files, ok := d.programs[offset]; ok {
		return files
	}
	r := d.section(".debug_line", offset)
	length, offsetSize := r.length()
	p := &lineProgram{r: reader{data: r.bytes(length)}, compDir: compDir, u: *u}
	p.u.offsetSize = offsetSize
	if d.readHeader(p); p.r.failed {
		d.damaged = true
	} else {
		d.run(p)
	}
	d.programs[offset] = p.files
	return p.files
}

func (d *dwarfIndex) readHeader(p *lineProgram) {
	r := &p.r
	p.version = int(r.uint(2))
	if p.version < 2 || p.version > 5 {
		r.failed = true
		return
	}
	p.u.version = p.version
	if p.version >= 5 {
		p.u.addrSize = int(r.u8())
		r.skip(1) // the size of segment selectors
	}
	program := reader{data: r.data}
	length := program.uint(p.u.offsetSize)
	header := reader{data: program.bytes(length)}
	if program.failed || p.u.addrSize != 4 && p.u.addrSize != 8 {
		r.failed = true
		return
	}
	p.r = header
	p.minInstruction = r.uint(1)
	if p.version >= 4 {
		r.skip(1) // operations of an instruction
	}
	r.skip(1) // whether rows are statements by default
	p.lineBase, p.lineRange, p.opcodeBase = int8(r.u8()), r.u8(), r.u8()
	p.operands = r.bytes(uint64(max(p.opcodeBase, 1) - 1))
	p.files.at = len(d.files)
	if p.version >= 5 {
		d.readFiles(p)
	} else {
		d.readOldFiles(p)
	}
	p.files.count = len(d.files) - p.files.at
	failed := r.failed || p.lineRange == 0
	p.r = program
	p.r.failed = failed
}

// readOldFiles reads directories and files up to version 4: texts up to an empty one; text · uleb directory · uleb
// time · uleb size.
func (d *dwarfIndex) readOldFiles(p *lineProgram) {
	r := &p.r
	p.dirs, p.files.first = [][]byte{nil}, 1
	for name := r.text(); len(name) > 0 && d.spend(1) && len(p.dirs) < maxSources; name = r.text() {
		p.dirs = append(p.dirs, name)
	}
	for name := r.text(); len(name) > 0 && d.addFile(p, name, r.uleb()); name = r.text() {
		r.uleb()
		r.uleb()
	}
}

// Contents of directories and files in version 5.
const (
	contentPath      = 1
	contentDirectory = 2
)

// readFiles reads directories and files of version 5: u8 count · (uleb content · uleb form)*, uleb count · values.
func (d *dwarfIndex) readFiles(p *lineProgram) {
	d.eachListedFile(p, func(name []byte, _ uint64) bool {
		if len(p.dirs) > 0 {
			p.dirs = append(p.dirs, name)
		} else {
			p.dirs = append(p.dirs, nil) // the first is the directory of the compilation
			if len(name) > 0 && name[0] != 0 {
				p.compDir = name
			}
		}
		return len(p.dirs) < maxSources
	})
	d.eachListedFile(p, func(name []byte, dir uint64) bool { return d.addFile(p, name, dir) })
}

func (d *dwarfIndex) eachListedFile(p *lineProgram, do func(name []byte, dir uint64) bool) {
	r := &p.r
	format := make([]attrSpec, r.u8())
	for i := range format {
		format[i] = attrSpec{attr: uint32(r.uleb()), form: uint32(r.uleb())}
	}
	for range r.uleb() {
		if r.failed || !d.spend(1+len(format)) {
			return
		}
		var name []byte
		dir := uint64(0)
		for _, f := range format {
			switch v := p.u.readForm(r, f.form, 0, 0); f.attr {
			case contentPath:
				name = d.text(&p.u, v)
			case contentDirectory:
				dir = v.n
			}
		}
		if !do(name, dir) {
			return
		}
	}
}

// addFile adds a file. false: there are too many.
func (d *dwarfIndex) addFile(p *lineProgram, name []byte, dir uint64) bool {
	if !d.spend(1) || len(d.files) == maxSources {
		d.damaged = true
		return false
	}
	f := sourceFile{compDir: p.compDir, name: name}
	if dir < uint64(len(p.dirs)) {
		f.dir = p.dirs[dir]
	}
	d.files = append(d.files, f)
	return true
}

// Opcodes of line tables.
const (
	opExtended      = 0
	opCopy          = 1
	opAdvance       = 2
	opAdvanceLine   = 3
	opSetFile       = 4
	opSetColumn     = 5
	opConstAdvance  = 8
	opFixedAdvance  = 9
	extendedEnd     = 1
	extendedAddress = 2
)

// run runs a line table, and adds its rows. Sequences outside the code are those of functions that the linker
// has removed.
func (d *dwarfIndex) run(p *lineProgram) {
	type state struct {
		addr         uint64
		file         uint64
		line, column uint64
	}
	begin := state{file: 1, line: 1}
	now, first, valid := begin, len(d.rows), true
	add := func(end bool) {
		if len(d.rows) == maxRows || now.addr == 0 || now.addr > uint64(d.codeSize) {
			valid = false
			return
		}
		next := row{
			uint32(now.addr), d.file(p.files, now.file), uint32(min(now.line, math.MaxInt32)),
			uint32(min(now.column, math.MaxInt32)),
		}
		if end {
			next.file = seqEnd
		}
		d.rows = append(d.rows, next)
	}
	r := &p.r
	for len(r.data) > 0 && d.spend(1) {
		switch op := r.u8(); {
		case op >= p.opcodeBase:
			adjusted := op - p.opcodeBase
			now.addr += uint64(adjusted/p.lineRange) * p.minInstruction
			now.line += uint64(int64(p.lineBase) + int64(adjusted%p.lineRange))
			add(false)
		case op == opExtended:
			content := reader{data: r.bytes(r.uleb())}
			switch content.u8() {
			case extendedEnd:
				if add(true); !valid {
					d.rows = d.rows[:first]
				}
				now, first, valid = begin, len(d.rows), true
			case extendedAddress:
				now.addr = content.uint(min(len(content.data), 8))
			}
		case op == opCopy:
			add(false)
		case op == opAdvance:
			now.addr += r.uleb() * p.minInstruction
		case op == opAdvanceLine:
			now.line += uint64(r.sleb())
		case op == opSetFile:
			now.file = r.uleb()
		case op == opSetColumn:
			now.column = r.uleb()
		case op == opConstAdvance:
			now.addr += uint64((255-p.opcodeBase)/p.lineRange) * p.minInstruction
		case op == opFixedAdvance:
			now.addr += r.uint(2)
		default:
			for range p.operands[op-1] {
				r.uleb()
			}
		}
	}
	d.rows = d.rows[:first] // of a sequence without an end
	if r.failed || len(d.rows) == maxRows {
		d.damaged = true
	}
}
