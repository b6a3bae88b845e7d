package component

import (
	"bytes"
	"fmt"

	"runner.example/internal/wasm"
)

// What is decoded is a component as the file has it: indices are not checked.

// definition is an entry of a section, or a declarator of a type.
type definition struct {
	at   int // of its first byte in the file
	body any // a pointer to one of the types below
}

// scopeDef is a component, or the type of a component or instance.
type scopeDef struct {
	sort    sort // sortComponent or sortInstance, of a type; 0: a component itself
	entries []definition
	checked bool // the component was evaluated for its declared imports
}

type moduleDef struct{ module *Module }

// instantiation defines a core instance or an instance: of a module or component with arguments,
// or of exports alone.
type instantiation struct {
	core, exportsOnly bool
	of                uint32
	args              []argument
}

// argument is a named item: what is exported, or an argument of an instantiation.
type argument struct {
	at         int
	name       string // of an argument
	externName        // of an export
	sort       sort
	index      uint32
}

type alias struct {
	sort     sort
	outer    bool
	instance uint32 // or how many scopes further out
	name     string
	index    uint32
}

type (
	coreFuncDef   struct{ wasm.FuncType }
	coreModuleDef struct{ entries []definition } // declarators: coreDecl, *alias, *coreFuncDef
	coreDecl      struct {
		imported  bool
		typeIndex uint32 // of a function
		coreExtern
	}
)

// valueDef is a value type with references to its parts.
type valueDef struct {
	kind   Kind
	fields []fieldRef
	part   reference // element
	key    reference // of a map
	length uint32
	handle uint32 // of own and borrow
}

type fieldRef struct {
	name string
	reference
}

// reference is a type by its index, or a negative number for one without parts.
type reference struct {
	at   int
	some bool // there is a type
	to   int64
}

type funcDef struct {
	async  bool
	params []fieldRef
	result reference
}

type resourceDef struct {
	hasDestructor bool
	destructor    uint32
}

type canonDef struct {
	op       Op
	function uint32
	index    uint32 // type
	memory   uint32
	result   reference
	core     wasm.ValueType
	slot     uint32
	async    bool
	options  []option
}

type option struct {
	at    int
	code  byte
	index uint32
}

// extern is an import, an export of a type, or an export with its item.
type extern struct {
	externName
	imported bool
	item     *argument // exported from a component
	typed    bool      // has the fields below
	sort     sort
	fresh    bool // of types: some resource
	index    uint32
}

// sort is a kind of item, and so an index space.
type sort byte

const (
	noSort sort = iota
	sortCoreFunc
	sortCoreTable
	sortCoreMemory
	sortCoreGlobal
	sortCoreType
	sortCoreModule
	sortCoreInstance
	sortFunc
	sortType
	sortComponent
	sortInstance
	sorts
)

var sortNames = [sorts]string{
	"nothing", "core function", "core table", "core memory", "core global", "core type", "core module", "core instance",
	"function", "type", "component", "instance",
}

func (s sort) String() string { return sortNames[s] }

// one is an item of the sort.
func (s sort) one() string {
	if s == sortInstance {
		return "an instance"
	}
	return "a " + sortNames[s]
}

var (
	coreSorts = map[byte]sort{
		0x00: sortCoreFunc, 0x01: sortCoreTable, 0x02: sortCoreMemory, 0x03: sortCoreGlobal,
		0x10: sortCoreType, 0x11: sortCoreModule, 0x12: sortCoreInstance,
	}
	componentSorts = map[byte]sort{0x01: sortFunc, 0x03: sortType, 0x04: sortComponent, 0x05: sortInstance}
)

const preamble = "\x00asm\x0d\x00\x01\x00"

// IsComponent reports whether a file begins as a component does, of this version or another.
func IsComponent(file []byte) bool {
	return len(file) >= 8 && bytes.HasPrefix(file, []byte(preamble[:4])) && file[6] == 1 && file[7] == 0
}

// decoder decodes a file.
type decoder struct {
	bytes   []byte
	entries int
	limits  wasm.Limits
	modules int
}

func (d *decoder) reader(start, end int) *reader {
	return &reader{bytes: d.bytes, pos: start, end: end, entries: &d.entries}
}

// component decodes a component from its preamble to its end.
func (d *decoder) component(start, end, depth int) (*scopeDef, *Error) {
	r := d.reader(start, end)
	if head := r.take(8); r.err != nil {
		return nil, fail(start, "it is cut off")
	} else if string(head) != preamble {
		return nil, fail(start, "its first bytes are %x, and those of a component of this version are %x", head, preamble)
	}
	c := &scopeDef{}
	for r.pos < r.end {
		at := r.pos
		id := r.byte()
		size := r.u32()
		if r.err != nil || int64(size) > int64(r.end-r.pos) {
			return nil, fail(at, "section %d is cut off", id)
		}
		s := d.reader(r.pos, r.pos+int(size))
		r.pos += int(size)
		d.section(c, id, s, depth)
		if s.err == nil && s.pos != s.end {
			s.fail(s.pos, "%d bytes are left over in section %d", s.end-s.pos, id)
		}
		if s.err != nil {
			return nil, s.err
		}
	}
	return c, nil
}

// sectionNames are the sections with a vector of entries.
var sectionNames = map[byte]string{
	2: "core instances", 3: "core types", 5: "instances", 6: "aliases", 7: "types", 8: "canonical definitions",
	10: "imports", 11: "exports",
}

func (d *decoder) section(c *scopeDef, id byte, r *reader, depth int) {
	add := func(at int, body any) { c.entries = append(c.entries, definition{at, body}) }
	at := r.pos
	switch id {
	case 0:
		r.name()
		r.pos = r.end
	case 1:
		if m := d.module(r); r.err == nil {
			add(at, &moduleDef{m})
		}
	case 4:
		if depth == maxNesting {
			r.keep(refuse(at, "components are nested more than %d deep (maxNesting)", maxNesting))
			return
		}
		nested, err := d.component(r.pos, r.end, depth+1)
		if err != nil {
			r.keep(err)
			return
		}
		r.pos = r.end
		add(at, nested)
	case 9, 12:
		r.keep(refuse(at, "it has values and a start function at the level of components, which are not supported"))
	default:
		name, ok := sectionNames[id]
		if !ok {
			r.fail(at, "section %d is not known", id)
			return
		}
		for range r.entriesOf(name, 1) {
			at := r.pos
			if body := d.entry(id, r, depth); r.err == nil {
				add(at, body)
			}
		}
	}
}

func (d *decoder) module(r *reader) *Module {
	if d.modules++; d.modules > maxModules {
		r.keep(refuse(r.pos, "more than %d core modules (maxModules)", maxModules))
		return nil
	}
	at := r.pos
	m := &Module{At: at}
	if err := m.parse(r.take(r.end-r.pos), d.limits); err != nil {
		r.keep(refuse(at, "the core module %v", err))
	}
	r.addEntries(len(m.imports) + len(m.exports))
	return m
}

func (d *decoder) entry(section byte, r *reader, depth int) any {
	switch section {
	case 2:
		return r.instantiation(true)
	case 3:
		return r.coreType(false)
	case 5:
		return r.instantiation(false)
	case 6:
		return r.alias()
	case 7:
		return r.typeDef(depth)
	case 8:
		return r.canon()
	case 10:
		return r.importDecl()
	}
	return r.export()
}

// instantiation reads a core instance or an instance.
func (r *reader) instantiation(core bool) *instantiation {
	at := r.pos
	i := &instantiation{core: core}
	switch form := r.byte(); form {
	case 0:
		i.of = r.u32()
		for range r.entriesOf("arguments", 3) {
			i.args = append(i.args, argument{at: r.pos, name: r.name(), sort: r.argumentSort(core), index: r.u32()})
		}
	case 1:
		i.exportsOnly = true
		for range r.entriesOf("exports", 3) {
			a := argument{at: r.pos}
			if core {
				a.name, a.sort = r.name(), r.coreSort()
			} else {
				a.externName, a.sort = r.externName(), r.sort()
			}
			a.index = r.u32()
			i.args = append(i.args, a)
		}
	default:
		r.fail(at, "an instance of form %#x", form)
	}
	return i
}

// argumentSort reads the sort of an argument. Those of core instances are core instances.
func (r *reader) argumentSort(core bool) sort {
	if !core {
		return r.sort()
	}
	at := r.pos
	s := r.coreSort()
	if s != sortCoreInstance && r.err == nil {
		r.fail(at, "an argument of a core instance is %s, and not an instance", s.one())
	}
	return s
}

func (r *reader) coreSort() sort {
	b := r.byte()
	s := coreSorts[b]
	if s == noSort && r.err == nil {
		if b == 4 {
			r.keep(refuse(r.pos-1, "it uses exception tags, which are not supported"))
		}
		r.fail(r.pos-1, "%#x is not a sort of core item", b)
	}
	return s
}

func (r *reader) sort() sort {
	at := r.pos
	switch b := r.byte(); b {
	case 0:
		return r.coreSort()
	case 2:
		r.keep(refuse(at, "it has values at the level of components, which are not supported"))
	default:
		if s := componentSorts[b]; s != noSort {
			return s
		}
		r.fail(at, "%#x is not a sort of item", b)
	}
	return noSort
}

// externName reads a name with its form and options.
func (r *reader) externName() externName {
	n := externName{nameAt: r.pos}
	form := r.byte()
	n.text = r.name()
	switch form {
	case 0, 1:
	case 2:
		for range r.entriesOf("options of a name", 2) {
			option := r.byte()
			text := r.name()
			switch option {
			case 0:
				n.implements = &text
			case 1:
				n.suffix = &text
			case 2: // a name that means something outside
			default:
				r.fail(n.nameAt, "a name has an option %#x", option)
			}
		}
	default:
		r.fail(n.nameAt, "a name of form %#x", form)
	}
	return n
}

func (r *reader) alias() *alias {
	a := &alias{sort: r.sort()}
	at := r.pos
	switch target := r.byte(); target {
	case 0, 1:
		a.instance = r.u32()
		a.name = r.name()
		if core := a.sort >= sortCoreFunc && a.sort <= sortCoreGlobal; core != (target == 1) {
			r.fail(at, "an alias of %s that an instance of the other kind exports", a.sort.one())
		}
	case 2:
		a.outer = true
		a.instance, a.index = r.u32(), r.u32()
	default:
		r.fail(at, "an alias of form %#x", target)
	}
	return a
}

// coreType reads a function type, or a module type, which has no module types in it.
func (r *reader) coreType(inModule bool) any {
	at := r.pos
	switch form := r.byte(); form {
	case 0x60:
		return &coreFuncDef{wasm.FuncType{Params: r.coreValueTypes(), Results: r.coreValueTypes()}}
	case 0x50:
		if inModule {
			r.fail(at, "a type of a core module is defined within another")
			return nil
		}
		m := &coreModuleDef{}
		for range r.entriesOf("declarators", 2) {
			at := r.pos
			if body := r.moduleDecl(); r.err == nil {
				m.entries = append(m.entries, definition{at, body})
			}
		}
		return m
	case 0x00, 0x4e, 0x4f, 0x5e, 0x5f:
		r.keep(refuse(at, "it uses garbage collection, which is not supported"))
	default:
		r.fail(at, "a core type of form %#x", form)
	}
	return nil
}

func (r *reader) moduleDecl() any {
	at := r.pos
	switch form := r.byte(); form {
	case 0, 3:
		d := &coreDecl{imported: form == 0}
		if d.imported {
			d.Module = r.name()
		}
		d.Name = r.name()
		r.coreDesc(d)
		return d
	case 1:
		return r.coreType(true)
	case 2:
		s, target := r.coreSort(), r.byte()
		if r.err == nil && (s != sortCoreType || target != 1) {
			r.fail(at, "an alias in the type of a core module that is not of an outer type")
		}
		return &alias{sort: s, outer: true, instance: r.u32(), index: r.u32()}
	default:
		r.fail(at, "a declarator %#x in the type of a core module", form)
	}
	return nil
}

func (r *reader) coreDesc(d *coreDecl) {
	at := r.pos
	switch d.Kind = wasm.Kind(r.byte()); d.Kind {
	case wasm.FunctionKind:
		d.typeIndex = r.u32()
	case wasm.TableKind:
		d.Table.Type = r.coreValueType()
		d.Table.Min, d.Table.Max, d.Table.HasMax = r.coreLimits()
	case wasm.MemoryKind:
		d.Memory.MinPages, d.Memory.MaxPages, d.Memory.HasMax = r.coreLimits()
	case wasm.GlobalKind:
		d.Global.Type = r.coreValueType()
		d.Global.Mutable = r.flag("the mutability of a global")
	case 4:
		r.keep(refuse(at, "it uses exception tags, which are not supported"))
	default:
		r.fail(at, "%#x is not a kind of core item", byte(d.Kind))
	}
}

func (r *reader) coreLimits() (least, most uint32, hasMax bool) {
	at := r.pos
	flags := r.byte()
	if flags > 1 && r.err == nil {
		r.keep(refuse(at, "it has memories or tables that are shared, of 64 bits or with pages of their own size"))
	}
	least = r.u32()
	if hasMax = flags == 1; hasMax {
		if most = r.u32(); most < least {
			r.fail(at, "a core memory or table of at least %d and at most %d", least, most)
		}
	}
	return least, most, hasMax
}

func (r *reader) coreValueTypes() (types []wasm.ValueType) {
	for range r.count("parameters or results", maxParams, "maxParams", 1) {
		types = append(types, r.coreValueType())
	}
	return types
}

func (r *reader) coreValueType() wasm.ValueType {
	t := wasm.ValueType(r.byte())
	switch t {
	case wasm.I32, wasm.I64, wasm.F32, wasm.F64, wasm.V128, wasm.FuncRef, wasm.ExternRef:
	default:
		r.fail(r.pos-1, "%#x is not a core value type of WebAssembly 2.0", byte(t))
	}
	return t
}

// typeOpcodes are the value types with parts, by their byte.
var typeOpcodes = map[byte]Kind{
	0x72: Record, 0x71: Variant, 0x70: List, 0x6f: Tuple, 0x6e: Flags, 0x6d: Enum, 0x6b: Option, 0x6a: Result,
	0x69: Own, 0x68: Borrow, 0x67: FixedList, 0x66: Stream, 0x65: Future, 0x63: Map,
}

// primitive returns the type without parts that a byte means.
func primitive(b byte) (Kind, bool) {
	switch {
	case b >= 0x73 && b <= 0x7f:
		return Kind(0x7f - b), true
	case b == 0x64:
		return ErrorContext, true
	}
	return 0, false
}

func (r *reader) typeDef(depth int) any {
	at := r.pos
	b := r.byte()
	if k, ok := primitive(b); ok {
		return &valueDef{kind: k}
	}
	if k, ok := typeOpcodes[b]; ok {
		return r.valueDef(k)
	}
	switch b {
	case 0x40, 0x43:
		return r.funcDef(b == 0x43)
	case 0x41, 0x42:
		return r.scopeType(b == 0x42, depth)
	case 0x3f:
		if rep := r.coreValueType(); rep != wasm.I32 && r.err == nil {
			r.keep(refuse(at, "it has a resource that is represented by %s: only i32 is supported", rep))
		}
		d := &resourceDef{hasDestructor: r.flag("a destructor's presence")}
		if d.hasDestructor {
			d.destructor = r.u32()
		}
		return d
	case 0x3e:
		r.keep(refuse(at, "it has a resource with an asynchronous destructor, which is not supported"))
	}
	r.fail(at, "a type of form %#x", b)
	return nil
}

func (r *reader) typeRef() reference {
	at := r.pos
	to := r.reference()
	if to < 0 {
		if _, ok := primitive(byte(to + 0x80)); !ok {
			r.fail(at, "%#x is not a type without parts", to+0x80)
		}
	}
	return reference{at, true, to}
}

func (r *reader) optional() reference {
	if !r.flag("a type's presence") {
		return reference{}
	}
	return r.typeRef()
}

func (r *reader) valueDef(k Kind) *valueDef {
	d := &valueDef{kind: k}
	switch k {
	case Own, Borrow:
		d.handle = r.u32()
	case Map:
		d.key, d.part = r.typeRef(), r.typeRef()
	case List, Option, FixedList:
		d.part = r.typeRef()
		if k == FixedList {
			d.length = r.u32()
		}
	case Stream, Future:
		d.part = r.optional()
	case Result:
		d.fields = []fieldRef{{"ok", r.optional()}, {"error", r.optional()}}
	default:
		for range r.count("parts of one type", maxFields, "maxFields", 1) {
			var f fieldRef
			if k != Tuple {
				f.name = r.name()
			}
			switch k {
			case Variant:
				f.reference = r.optional()
				if b := r.byte(); b != 0 {
					r.fail(r.pos-1, "a case of a variant ends with %#x, and not with 0", b)
				}
			case Record, Tuple:
				f.reference = r.typeRef()
			}
			d.fields = append(d.fields, f)
		}
	}
	return d
}

func (r *reader) funcDef(async bool) *funcDef {
	d := &funcDef{async: async}
	for range r.count("parameters", maxParams, "maxParams", 2) {
		d.params = append(d.params, fieldRef{r.name(), r.typeRef()})
	}
	d.result = r.resultList()
	return d
}

func (r *reader) resultList() reference {
	if !r.flag("a function's form of results") {
		return r.typeRef()
	}
	at := r.pos
	if n := r.u32(); n != 0 {
		r.fail(at, "a function has results with names")
	}
	return reference{}
}

// scopeType reads the type of an instance or a component.
func (r *reader) scopeType(instance bool, depth int) *scopeDef {
	d := &scopeDef{sort: sortComponent}
	if instance {
		d.sort = sortInstance
	}
	if depth == maxNesting {
		r.keep(refuse(r.pos, "types are nested more than %d deep (maxNesting)", maxNesting))
		return nil
	}
	for range r.entriesOf("declarators", 2) {
		at := r.pos
		var body any
		switch form := r.byte(); {
		case form == 0:
			body = r.coreType(false)
		case form == 1:
			body = r.typeDef(depth + 1)
		case form == 2:
			body = r.alias()
		case form == 3 && !instance:
			body = r.importDecl()
		case form == 4:
			e := &extern{externName: r.externName()}
			r.externDesc(e)
			body = e
		default:
			r.fail(at, "a declarator %#x in the type of %s", form, d.sort.one())
		}
		if r.err != nil {
			return nil
		}
		d.entries = append(d.entries, definition{at, body})
	}
	return d
}

func (r *reader) importDecl() *extern {
	e := &extern{externName: r.externName(), imported: true}
	r.externDesc(e)
	return e
}

func (r *reader) externDesc(e *extern) {
	e.typed = true
	switch e.sort = r.sort(); {
	case e.sort == sortType:
		at := r.pos
		switch bound := r.byte(); bound {
		case 0:
			e.index = r.u32()
		case 1:
			e.fresh = true
		default:
			r.fail(at, "a type has a bound %#x", bound)
		}
	case e.sort == sortCoreModule || e.sort >= sortFunc:
		e.index = r.u32()
	case r.err == nil:
		r.fail(r.pos-1, "%s is imported or exported by a component", e.sort.one())
	}
}

func (r *reader) export() *extern {
	e := &extern{externName: r.externName()}
	e.item = &argument{at: r.pos, sort: r.sort(), index: r.u32()}
	if s := e.item.sort; r.err == nil && s != sortCoreModule && s < sortFunc {
		r.fail(e.item.at, "%s is exported by a component", s.one())
	}
	if r.flag("a type's presence") {
		r.externDesc(e)
	}
	return e
}

func (r *reader) canon() *canonDef {
	at := r.pos
	d := &canonDef{op: Op(r.byte())}
	f, ok := forms[d.op]
	if !ok {
		r.fail(at, "a canonical definition %#x", byte(d.op))
	}
	for _, c := range f.immediates {
		switch c {
		case '-':
			r.keep(refuse(at, "it uses %s, which is not supported", f.name))
		case 'z':
			if b := r.byte(); b != 0 {
				r.fail(r.pos-1, "%s is followed by %#x, and not by 0", f.name, b)
			}
		case 'f':
			d.function = r.u32()
		case 't':
			d.index = r.u32()
		case 'm':
			d.memory = r.u32()
		case 'r':
			d.result = r.resultList()
		case 'o':
			d.options = r.options()
		case 'a':
			d.async = r.flag("async")
		case 'v':
			if d.core = r.coreValueType(); d.core != wasm.I32 && r.err == nil {
				r.keep(refuse(at, "it uses %s with %s: only i32 is supported", f.name, d.core))
			}
		case 's':
			d.slot = r.u32()
		default:
			panic(fmt.Sprintf("BUG: form of %s", f.name))
		}
	}
	return d
}

func (r *reader) options() (all []option) {
	for range r.count("canonical options", maxOptions, "maxOptions", 1) {
		o := option{at: r.pos, code: r.byte()}
		switch {
		case o.code >= optMemory && o.code <= optPostReturn || o.code == optCallback:
			o.index = r.u32()
		case o.code == 8 || o.code == 9:
			r.keep(refuse(o.at, "it uses garbage collection, which is not supported"))
		case o.code > optCallback:
			r.fail(o.at, "a canonical option %#x", o.code)
		}
		all = append(all, o)
	}
	return all
}

// The canonical options. Those below optMemory are encodings.
const (
	optMemory     = 0x03
	optRealloc    = 0x04
	optPostReturn = 0x05
	optAsync      = 0x06
	optCallback   = 0x07
)
