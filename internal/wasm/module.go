package wasm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"runner.example/internal/wasm/opcode"
)

// ValueType is the type of a value, by its byte in the binary format.
type ValueType byte

// The value types of Core 2.0.
const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

func (t ValueType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	}
	return fmt.Sprintf("type %#x", byte(t))
}

func (t ValueType) isReference() bool { return t == FuncRef || t == ExternRef }

// FuncType is the type of a function.
type FuncType struct{ Params, Results []ValueType }

func (t FuncType) equal(u FuncType) bool {
	return string(bytesOf(t.Params)) == string(bytesOf(u.Params)) &&
		string(bytesOf(t.Results)) == string(bytesOf(u.Results))
}

// key is a text that two types share exactly when they are equal.
func (t FuncType) key() string { return string(bytesOf(t.Params)) + ">" + string(bytesOf(t.Results)) }

func (k Kind) String() string {
	return [...]string{"function", "table", "memory", "global"}[k]
}

func bytesOf(types []ValueType) []byte {
	b := make([]byte, len(types))
	for i, t := range types {
		b[i] = byte(t)
	}
	return b
}

// Import is an imported function.
type Import struct {
	Module, Name string
	Type         FuncType
	typeIndex    uint32
}

// Kind is the kind of an export, by its byte in the binary format.
type Kind byte

// The kinds of exports.
const (
	FunctionKind Kind = 0
	TableKind    Kind = 1
	MemoryKind   Kind = 2
	GlobalKind   Kind = 3
)

// Export is an export, with its index among its kind.
type Export struct {
	Name  string
	Kind  Kind
	Index uint32
}

// External is an import of any kind, with its index among its kind.
type External struct {
	Module, Name string
	Kind         Kind
	Index        uint32
}

// Memory is the module's linear memory, in pages.
type Memory struct {
	MinPages, MaxPages uint32
	HasMax             bool // otherwise MaxPages is 65536, the most of all memories
}

// Table is a table of references.
type Table struct {
	Type     ValueType
	Min, Max uint32
	HasMax   bool
}

// Global is a global variable.
type Global struct {
	Type    ValueType
	Mutable bool
	init    constant
}

// constant is an instruction for an initial value: one of the consts, ref.null, ref.func or
// global.get, or computed.
type constant struct {
	start, end int // in the file, the closing end included
	op         byte
	index      uint32 // of ref.func and global.get
	value      int64  // of i32.const and i64.const
}

// element is an element segment. Bits of its form: 0: not active; 1: has a table index or is
// declarative; 2: its entries are constants.
type element struct {
	form       uint32
	table      uint32
	offset     constant
	kind       byte // as encoded, where the form has it
	count      int
	start, end int
}

func (e element) active() bool    { return e.form&1 == 0 }
func (e element) hasKind() bool   { return e.form&3 != 0 }
func (e element) constants() bool { return e.form&4 != 0 }

// segment is a data segment.
type segment struct {
	passive    bool
	offset     constant
	start, end int // of its bytes
}

// custom is a custom section. It follows the section with the rank after (see rank).
type custom struct {
	name       string
	start, end int // whole content, name included
	body       int
	after      int
}

// Module is a parsed module. It is read-only.
type Module struct {
	bytes    []byte
	limits   Limits
	sections [13]span // contents by section id; absent ones are empty and at 0

	part      bool // see ParsePart; the indexes of a kind begin with those that are imported
	externals []External

	types     []FuncType
	imports   []Import
	functions []function
	tables    []Table
	memory    *Memory
	globals   []Global
	exports   []Export
	start     int64 // function index, or -1
	elements  []element
	dataCount int64 // as declared, or -1
	data      []segment
	customs   []custom

	codeFacts
}

// codeFacts is what reading the code of all functions finds out.
type codeFacts struct {
	loops       []uint32 // weight of the heaviest path through each loop, in the order of the code
	splits      []int    // positions of instructions that begin a new stretch: see stretch
	before      *Offsets // to the code of the module that WithoutDispatch changed
	places      []place  // loops that WithoutDispatch added, in order
	calls       []uint32 // the functions that each function calls: see function.calls
	indirect    []uint32 // the types that each function calls through tables
	inTable     []bool   // by function index: can be reached by an indirect call
	uses        uses
	typedBlocks bool // the type of a block is one of the module's types
	computes    bool // initial values are computed, which the file says in another way
	used        features
	jumped      []bool // by function index: a tail call goes there
	jumpedTypes []bool // by type: a tail call through a table goes to functions of it
	fills       bool   // a memory.fill is charged by its length
	copies      bool   // a memory.copy is charged by its length
	cost        Cost
}

type span struct{ start, end int }

func (s span) present() bool { return s.start != 0 }

// Section numbers.
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
	sectionTag       = 13
	sectionStrings   = 14
)

// sectionOrder is the required order of the sections.
var sectionOrder = [...]byte{
	sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory, sectionGlobal, sectionExport,
	sectionStart, sectionElement, sectionDataCount, sectionCode, sectionData,
}

var sectionNames = [...]string{
	"custom section", "type section", "import section", "function section", "table section", "memory section",
	"global section", "export section", "start section", "element section", "code section", "data section",
	"data count section",
}

// rank is a section's position in sectionOrder, from 1; 0: the section is unknown.
func rank(id byte) int {
	switch {
	case id >= sectionType && id <= sectionElement:
		return int(id)
	case id == sectionDataCount:
		return 10
	case id == sectionCode:
		return 11
	case id == sectionData:
		return 12
	}
	return 0
}

// Parse parses a module. Every error is one line that continues the name of the module's file
// ("is …", "needs …") and says what is wrong and where, or what to do. The Module borrows the
// bytes.
func Parse(wasm []byte, limits Limits) (*Module, error) { return parse(wasm, limits, false) }

// ParsePart is Parse for a part of a Merge: a module that may import tables, memories and globals too, and
// compute initial values (the proposal "Extended Constant Expressions"). It cannot be rewritten or linked.
func ParsePart(wasm []byte, limits Limits) (*Module, error) { return parse(wasm, limits, true) }

func parse(wasm []byte, limits Limits, part bool) (*Module, error) {
	if err := checkHeader(wasm, limits); err != nil {
		return nil, err
	}
	m := &Module{bytes: wasm, limits: limits, part: part, start: -1, dataCount: -1}
	if err := m.readSections(); err != nil {
		return nil, err
	}
	if err := m.checkCounts(); err != nil {
		return nil, err
	}
	return m, nil
}

// magic begins every module.
const magic = "\x00asm"

// checkMagic checks the first bytes of a file, of which there may be fewer than magic has.
func checkMagic(begin []byte) error {
	switch begin = begin[:min(len(magic), len(begin))]; {
	case len(begin) == 0:
		return errors.New("is empty: build it again")
	case !strings.HasPrefix(magic, string(begin)):
		return errors.New("is not a WebAssembly module: build it for wasm32-wasip1, or copy the right file")
	}
	return nil
}

// checkHeader checks the first eight bytes: magic "\0asm" · u16 version · u16 layer.
func checkHeader(wasm []byte, limits Limits) error {
	switch {
	case len(wasm) > limits.ModuleBytes || len(wasm) > math.MaxInt32:
		return fmt.Errorf("is %d bytes large, and a module may have %d: strip debug information",
			len(wasm), limits.ModuleBytes)
	case checkMagic(wasm) != nil:
		return checkMagic(wasm)
	case len(wasm) < 8:
		return fmt.Errorf("is cut off or damaged: it has %d bytes", len(wasm))
	}
	version, layer := binary.LittleEndian.Uint16(wasm[4:]), binary.LittleEndian.Uint16(wasm[6:])
	switch {
	case layer == 1:
		return fmt.Errorf(
			"is a WebAssembly component, and a core module is needed here: build it for wasm32-wasip1, without wrapping it as a component")
	case layer != 0 || version != 1:
		return fmt.Errorf("has WebAssembly version %d, layer %d, and only core modules of version 1 can be run",
			version, layer)
	}
	return nil
}

func (m *Module) readSections() error {
	r := &reader{bytes: m.bytes, pos: 8, end: len(m.bytes)}
	last := 0
	for r.pos < r.end {
		r.where = "between sections"
		start := r.pos
		id := r.byte()
		size := r.u32()
		switch {
		case r.err != nil:
			return fmt.Errorf("is cut off or damaged: the section at byte %#x has no size", start)
		case id == sectionTag:
			return refusal(opcode.Exceptions)
		case id == sectionStrings:
			return refusal(opcode.Strings)
		case int(id) >= len(sectionNames):
			return fmt.Errorf("has a section of an unknown kind (%d) at byte %#x: build it for WebAssembly 2.0", id, start)
		case uint64(size) > uint64(r.left()):
			return fmt.Errorf("is cut off or damaged: the %s at byte %#x ends outside the file", sectionNames[id], start)
		}
		s := &reader{bytes: m.bytes, pos: r.pos, end: r.pos + int(size), where: sectionNames[id]}
		r.pos = s.end
		if id == sectionCustom {
			m.readCustom(s, last)
		} else {
			if rank(id) <= last {
				return fmt.Errorf("is damaged: the %s at byte %#x is there twice or out of order", sectionNames[id], start)
			}
			last = rank(id)
			m.sections[id] = span{s.pos, s.end}
			m.readSection(id, s)
			if s.err == nil && s.pos != s.end {
				s.fail("%d bytes are left over", s.left())
			}
		}
		if s.err != nil {
			return s.err
		}
	}
	return nil
}

func (m *Module) readSection(id byte, r *reader) {
	switch id {
	case sectionType:
		m.readTypes(r)
	case sectionImport:
		m.readImports(r)
	case sectionFunction:
		m.readFunctions(r)
	case sectionTable:
		m.readTables(r)
	case sectionMemory:
		m.readMemory(r)
	case sectionGlobal:
		m.readGlobals(r)
	case sectionExport:
		m.readExports(r)
	case sectionStart:
		m.start = int64(m.functionIndex(r))
	case sectionElement:
		m.readElements(r)
	case sectionDataCount:
		m.dataCount = int64(r.count("data segments", m.limits.DataSegments, 0))
	case sectionCode:
		m.readCode(r)
	case sectionData:
		m.readData(r)
	}
}

// checkCounts compares what is declared in one section with what is in another.
func (m *Module) checkCounts() error {
	switch {
	case len(m.functions) > 0 && !m.sections[sectionCode].present():
		return fmt.Errorf("is damaged: it declares %d functions and has no code", len(m.functions))
	case m.dataCount >= 0 && int(m.dataCount) != len(m.data):
		return fmt.Errorf("is damaged: it declares %d data segments and has %d", m.dataCount, len(m.data))
	}
	return nil
}

func (m *Module) readCustom(r *reader, after int) {
	if len(m.customs) >= m.limits.Customs {
		r.refuse("has more than %d custom sections: strip debug information", m.limits.Customs)
		return
	}
	c := custom{start: r.pos, end: r.end, after: after}
	c.name = r.name()
	c.body = r.pos
	if c.name == "name" && m.nameSection() != nil {
		r.fail("the name section is there twice")
		return
	}
	m.customs = append(m.customs, c)
}

func (m *Module) nameSection() *custom {
	for i := range m.customs {
		if m.customs[i].name == "name" {
			return &m.customs[i]
		}
	}
	return nil
}

func (m *Module) readTypes(r *reader) {
	n := r.count("types", m.limits.Types, 3)
	m.types = make([]FuncType, 0, n)
	for range n {
		if form := r.byte(); form != 0x60 {
			switch form {
			case 0x4e, 0x4f, 0x50, 0x5e, 0x5f:
				r.refuse("%s", refusal(opcode.GarbageCollection))
			case 0x5d:
				r.refuse("%s", refusal(opcode.StackSwitching))
			case 0x65:
				r.refuse("%s", refusal(opcode.SharedAll))
			}
			r.fail("a type of an unknown form (%#x)", form)
			return
		}
		m.types = append(m.types, FuncType{readTypeList(r), readTypeList(r)})
		if r.err != nil {
			return
		}
	}
}

func readTypeList(r *reader) []ValueType {
	n := r.count("parameters or results in one function type", maxArity, 1)
	if n == 0 {
		return nil
	}
	list := make([]ValueType, n)
	for i := range list {
		list[i] = r.valueType()
	}
	return list
}

func (r *reader) valueType() ValueType {
	t := ValueType(r.byte())
	switch t {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef:
	default:
		r.refuseType(byte(t))
	}
	return t
}

func (r *reader) refuseType(b byte) {
	switch b {
	case 0x63, 0x64:
		r.refuse("%s", refusal(opcode.TypedReferences))
	case 0x69, 0x74:
		r.refuse("%s", refusal(opcode.Exceptions))
	case 0x68, 0x75:
		r.refuse("%s", refusal(opcode.StackSwitching))
	case 0x65:
		r.refuse("%s", refusal(opcode.SharedAll))
	case 0x6e, 0x6d, 0x6c, 0x6b, 0x6a, 0x73, 0x72, 0x71, 0x77, 0x78:
		r.refuse("%s", refusal(opcode.GarbageCollection))
	}
	r.fail("an unknown type (%#x)", b)
}

// typeIndex reads the index of a function type.
func (m *Module) typeIndex(r *reader) uint32 {
	i := r.u32()
	if r.err == nil && uint64(i) >= uint64(len(m.types)) {
		r.fail("type %d is named, and there are %d", i, len(m.types))
		return 0
	}
	return i
}

// functionIndex reads the index of a function.
func (m *Module) functionIndex(r *reader) uint32 {
	i, n := r.u32(), m.functionCount()
	if r.err == nil && uint64(i) >= uint64(n) {
		r.fail("function %d is named, and there are %d", i, n)
		return 0
	}
	return i
}

func (m *Module) functionCount() int { return len(m.imports) + len(m.functions) }

func (m *Module) typeOf(function uint32) uint32 {
	if int(function) < len(m.imports) {
		return m.imports[function].typeIndex
	}
	return m.functions[int(function)-len(m.imports)].typeIndex
}

func (m *Module) readImports(r *reader) {
	n := r.count("imports", m.limits.Imports, 4)
	m.imports = make([]Import, 0, n)
	for range n {
		i := External{Module: r.name(), Name: r.name(), Kind: Kind(r.byte())}
		if r.err != nil {
			return
		}
		m.readImport(r, &i)
		if r.err != nil {
			return
		}
		m.externals = append(m.externals, i)
	}
}

// readImport reads the type of an import.
func (m *Module) readImport(r *reader, i *External) {
	name := i.Module + "." + i.Name
	switch {
	case i.Kind == FunctionKind:
		i.Index = uint32(len(m.imports))
		if t := m.typeIndex(r); r.err == nil {
			m.imports = append(m.imports, Import{i.Module, i.Name, m.types[t], t})
		}
	case i.Kind == 4:
		r.refuse("%s", refusal(opcode.Exceptions))
	case i.Kind > 4:
		r.fail("%.100q is imported as an unknown kind (%d)", name, i.Kind)
	case !m.part && i.Kind == MemoryKind:
		r.refuse("imports its memory (%.100q): build it so that it has and exports its own", name)
	case !m.part:
		r.refuse("imports %.100q, which is not a function: only functions can be imported", name)
	case i.Kind == TableKind:
		i.Index = uint32(len(m.tables))
		m.addTable(r)
	case i.Kind == MemoryKind:
		m.addMemory(r)
	case i.Kind == GlobalKind:
		i.Index = uint32(len(m.globals))
		m.globals = append(m.globals, r.globalType())
	}
}

func (m *Module) readFunctions(r *reader) {
	n := r.count("functions", m.limits.Functions, 1)
	m.functions = make([]function, n)
	for i := range m.functions {
		m.functions[i].typeIndex = m.typeIndex(r)
	}
}

// limits reads a flags byte (1 has a maximum, 2 shared, 4 of 64 bits, 8 a page
// size) and one or two numbers.
func (r *reader) limits(what string) (least, most uint32, hasMax bool) {
	switch flags := r.byte(); {
	case r.err != nil:
		return 0, 0, false
	case flags > 15:
		r.fail("a %s with unknown flags (%#x)", what, flags)
	case flags&2 != 0:
		r.refuse("has a shared %s: build it without threads (wasm32-wasip1, no -pthread and no --shared-memory)", what)
	case flags&4 != 0:
		r.refuse("has a 64-bit %s: build it for wasm32, not wasm64 (no -sMEMORY64)", what)
	case flags&8 != 0:
		r.refuse("has a %s with pages of its own size: build it without custom page sizes", what)
	default:
		hasMax = flags == 1
	}
	least = r.u32()
	if hasMax {
		if most = r.u32(); r.err == nil && most < least {
			r.fail("a %s of at least %d and at most %d", what, least, most)
		}
	}
	return least, most, hasMax
}

func (m *Module) readTables(r *reader) {
	for range r.count("tables", m.limits.Tables, 3) {
		if r.pos < r.end && r.bytes[r.pos] == 0x40 {
			r.refuse("%s", refusal(opcode.TypedReferences))
			return
		}
		m.addTable(r)
	}
}

// addTable reads the type of another table.
func (m *Module) addTable(r *reader) {
	t := r.table()
	total := int64(t.Min)
	for _, t := range m.tables {
		total += int64(t.Min)
	}
	if total > int64(m.limits.TableElements) {
		r.refuse("has tables of %d elements, and may have %d", total, m.limits.TableElements)
	}
	if m.tables = append(m.tables, t); len(m.tables) > m.limits.Tables {
		r.refuse("has more than %d tables", m.limits.Tables)
	}
}

// table reads the type of a table.
func (r *reader) table() Table {
	t := Table{Type: r.valueType()}
	if r.err == nil && !t.Type.isReference() {
		r.fail("a table of %s", t.Type)
	}
	t.Min, t.Max, t.HasMax = r.limits("table")
	return t
}

func (m *Module) readMemory(r *reader) {
	switch n := r.u32(); {
	case n == 0:
		return
	case n > 1 && r.err == nil:
		r.refuse("has %d memories, and may have one: build it without multi-memory", n)
		return
	}
	m.addMemory(r)
}

// addMemory reads the type of the memory.
func (m *Module) addMemory(r *reader) {
	if m.memory != nil && r.err == nil {
		r.refuse("has several memories, and may have one: build it without multi-memory")
		return
	}
	memory := r.memory()
	m.memory = &memory
}

// memory reads the type of a memory.
func (r *reader) memory() (memory Memory) {
	memory.MinPages, memory.MaxPages, memory.HasMax = r.limits("memory")
	if r.err == nil && max(memory.MinPages, memory.MaxPages) > maxPages {
		r.fail("a memory of more than %d pages", maxPages)
	}
	if !memory.HasMax {
		memory.MaxPages = maxPages
	}
	return memory
}

func (m *Module) readGlobals(r *reader) {
	n := r.count("globals", m.limits.Globals, 4)
	m.globals = append(make([]Global, 0, len(m.globals)+n), m.globals...)
	for range n {
		g := r.globalType()
		g.init = m.readConstant(r, len(m.globals))
		m.globals = append(m.globals, g)
	}
}

// globalType reads the type of a global.
func (r *reader) globalType() Global {
	g := Global{Type: r.valueType()}
	switch mutable := r.byte(); mutable {
	case 0, 1:
		g.Mutable = mutable == 1
	default:
		r.fail("a global that is neither mutable nor not (%#x)", mutable)
	}
	return g
}

// readConstant reads an initial value; it may refer to the first n globals.
func (m *Module) readConstant(r *reader, globals int) (c constant) {
	c.start = r.pos
	switch c.op = r.byte(); c.op {
	case opcode.I32Const:
		c.value = r.signed(32)
	case opcode.I64Const:
		c.value = r.signed(64)
	case opcode.F32Const:
		r.take(4)
	case opcode.F64Const:
		r.take(8)
	case opcode.Vector:
		if sub := r.byte(); sub != opcode.VecConst {
			r.fail("an initial value that is not a constant (%#x %#x)", c.op, sub)
		}
		r.take(16)
	case opcode.GlobalGet:
		c.index = r.u32()
		m.checkGlobal(r, c, globals)
	case opcode.RefNull:
		if t := r.byte(); !ValueType(t).isReference() {
			r.refuseType(t)
		}
	case opcode.RefFunc:
		c.index = m.functionIndex(r)
		m.addToTable(c.index)
	default:
		r.fail("an initial value that is not a constant (%#x)", c.op)
	}
	if end := r.byte(); r.err == nil && end != opcode.End {
		switch end {
		case opcode.I32Add, opcode.I32Sub, opcode.I32Mul, opcode.I64Add, opcode.I64Sub, opcode.I64Mul, opcode.I32Const,
			opcode.I64Const, opcode.GlobalGet:
			if m.used&extendedConstants == 0 { // once, as in addToTable
				m.used |= extendedConstants
				m.computes = !m.part
			}
			r.pos = c.start
			value := m.compute(r, globals, func(uint32) int64 { return 0 })
			if !m.part { // it has no imported globals, of which the values are not known
				return value
			}
			c.op = computed
		default:
			r.fail("an initial value of more than one instruction")
		}
	}
	c.end = r.pos
	return c
}

// checkGlobal checks a global.get of an initial value.
func (m *Module) checkGlobal(r *reader, c constant, globals int) {
	switch {
	case r.err != nil:
	case int64(c.index) >= int64(globals):
		r.fail("an initial value is that of global %d, which is not there yet", c.index)
	case m.globals[c.index].Mutable:
		r.fail("an initial value is that of global %d, which can change", c.index)
	}
}

// addToTable notes that a function can be called by reference.
func (m *Module) addToTable(function uint32) {
	if m.inTable == nil {
		m.inTable = make([]bool, m.functionCount())
	}
	if int(function) < len(m.inTable) && !m.inTable[function] { // once: several goroutines may read a parsed segment
		m.inTable[function] = true
	}
}

func (m *Module) readExports(r *reader) {
	n := r.count("exports", m.limits.Exports, 3)
	m.exports = make([]Export, 0, n)
	seen := make(map[string]bool, n)
	for range n {
		e := Export{Name: r.name(), Kind: Kind(r.byte())}
		at := r.pos
		e.Index = r.u32()
		if r.err != nil {
			return
		}
		there := 0
		switch e.Kind {
		case FunctionKind:
			there = m.functionCount()
		case TableKind:
			there = len(m.tables)
		case MemoryKind:
			if m.memory != nil {
				there = 1
			}
		case GlobalKind:
			there = len(m.globals)
		case 4:
			r.refuse("%s", refusal(opcode.Exceptions))
			return
		default:
			r.fail("export %.100q is of an unknown kind (%d)", e.Name, e.Kind)
			return
		}
		if int64(e.Index) >= int64(there) {
			r.failAt(at, "export %.100q is number %d of %d", e.Name, e.Index, there)
			return
		}
		if seen[e.Name] {
			r.failAt(at, "%.100q is exported twice", e.Name)
			return
		}
		seen[e.Name] = true
		m.exports = append(m.exports, e)
	}
}

func (m *Module) readElements(r *reader) {
	n := r.count("element segments", m.limits.Elements, 3)
	total := 0
	for range n {
		e := element{form: r.u32()}
		if r.err == nil && e.form > 7 {
			r.fail("an element segment of an unknown form (%d)", e.form)
		}
		if e.active() {
			if e.form&2 != 0 {
				e.table = r.u32()
			}
			if r.err == nil && int64(e.table) >= int64(len(m.tables)) {
				r.fail("elements for table %d of %d", e.table, len(m.tables))
			}
			e.offset = m.readConstant(r, len(m.globals))
		}
		if e.hasKind() {
			e.kind = r.byte()
			switch {
			case r.err != nil:
			case !e.constants() && e.kind != 0:
				r.fail("elements of an unknown kind (%#x)", e.kind)
			case e.constants() && !ValueType(e.kind).isReference():
				r.refuseType(e.kind)
			}
		}
		e.count = r.count("elements in one segment", m.limits.Elements, 1)
		if total += e.count; total > m.limits.Elements {
			r.refuse("has more than %d elements for its tables", m.limits.Elements)
		}
		e.start = r.pos
		for range e.count {
			if e.constants() {
				m.readConstant(r, len(m.globals))
			} else {
				m.addToTable(m.functionIndex(r))
			}
			if r.err != nil {
				return
			}
		}
		e.end = r.pos
		m.elements = append(m.elements, e)
		if r.err != nil {
			return
		}
	}
}

func (m *Module) readData(r *reader) {
	n := r.count("data segments", m.limits.DataSegments, 2)
	m.data = make([]segment, 0, n)
	for range n {
		s := segment{}
		form := r.u32()
		switch form {
		case 0, 2:
			if form == 2 {
				if memory := r.u32(); memory != 0 {
					r.refuse("%s", refusal(opcode.MultiMemory))
				}
			}
			if r.err == nil && m.memory == nil {
				r.fail("data for a memory that is not there")
			}
			s.offset = m.readConstant(r, len(m.globals))
		case 1:
			s.passive = true
		default:
			r.fail("a data segment of an unknown form (%d)", form)
		}
		size := r.u32()
		s.start = r.pos
		r.take(size)
		s.end = r.pos
		if r.err != nil {
			return
		}
		m.data = append(m.data, s)
	}
}

// checkWhole refuses a part of a Merge.
func (m *Module) checkWhole() error {
	if m.part {
		return errors.New("is part of another module: merge it")
	}
	return nil
}

// Imports are the functions that the module needs, in order. The slice is the
// Module's, as are those of the methods below.
func (m *Module) Imports() []Import { return m.imports }

// Externals are the imports of all kinds, in order. Those of ParsePart come first in Tables and
// Globals, and one can be Memory.
func (m *Module) Externals() []External { return m.externals }

// Exports are what the module offers, in order.
func (m *Module) Exports() []Export { return m.exports }

// Memory is the module's memory, or nil.
func (m *Module) Memory() *Memory { return m.memory }

// Tables are the module's tables.
func (m *Module) Tables() []Table { return m.tables }

// Globals are the module's globals.
func (m *Module) Globals() []Global { return m.globals }

// Functions is how many functions the module defines.
func (m *Module) Functions() int { return len(m.functions) }

// FunctionType is the type of the function of the given index, imports first.
func (m *Module) FunctionType(index uint32) FuncType { return m.types[m.typeOf(index)] }

// HasStart reports whether a function runs when the module is instantiated.
func (m *Module) HasStart() bool { return m.start >= 0 }

// CheckMemory says how a module that has more memory to begin with than the
// given limit is to be mended; nil if it has not.
func (m *Module) CheckMemory(limitPages uint32) error {
	if m.memory == nil || m.memory.MinPages <= limitPages {
		return nil
	}
	return fmt.Errorf(
		"needs %s of memory to begin with, and the limit is %s: raise [sandbox] memory in runner.toml or build it with less",
		pagesText(m.memory.MinPages), pagesText(limitPages))
}

// pagesText shows a number of pages.
func pagesText(pages uint32) string {
	if pages%16 == 0 {
		return fmt.Sprintf("%d MiB", pages/16)
	}
	return fmt.Sprintf("%d KiB", pages*64)
}

// Eligibility names everything that keeps an instance from being brought back to
// an earlier state by its memory and its mutable globals alone; none if that is
// enough.
func (m *Module) Eligibility() []string {
	var reasons []string
	uses := m.uses
	if uses&usesDataDrop == 0 { // a segment that is not dropped stays as it is
		uses &^= usesMemoryInit
	}
	for _, u := range usesText {
		if uses&u.use != 0 {
			reasons = append(reasons, "uses "+u.text)
		}
	}
	for i, g := range m.globals {
		if g.Mutable && (g.Type == V128 || g.Type.isReference()) {
			reasons = append(reasons, fmt.Sprintf("has a mutable global of type %s (number %d)", g.Type, i))
		}
	}
	return reasons
}

// isDebug reports whether a custom section of this name holds debug information. Its code
// addresses are wrong after a rewrite.
func isDebug(name string) bool {
	return strings.HasPrefix(name, ".debug_") || name == "sourceMappingURL" || name == "external_debug_info"
}
