package wasm

import (
	"fmt"
	"math"
)

// Section is a section of a module's file. The offsets are those in the file.
type Section struct {
	ID   byte
	Name string // of a custom section
	// Start is the offset of the section's first byte, Body that of its content, which follows the
	// size, and in a custom section the name. End is where the next section begins.
	Start, Body, End int
}

// IsCode reports whether it is the code section.
func (s Section) IsCode() bool { return s.ID == sectionCode }

// IsCustom reports whether it is a custom section.
func (s Section) IsCustom() bool { return s.ID == sectionCustom }

// IsDebug reports whether it is a custom section with debug information: DWARF, or where that or a
// source map is.
func (s Section) IsDebug() bool { return s.IsCustom() && isDebug(s.Name) }

// Sections lists the sections of a file without looking into them: a file that Parse refuses may have
// sections, and debug information can make it larger than a module may be. If the list ends early, the
// error says where, in one line that continues the name of the file.
func Sections(file []byte) (all []Section, err error) {
	limits := DefaultLimits()
	if err := checkHeader(file, Limits{ModuleBytes: math.MaxInt32}); err != nil {
		return nil, err
	}
	r := &reader{bytes: file, pos: 8, end: len(file), where: "between sections"}
	for r.pos < r.end {
		s := Section{Start: r.pos}
		s.ID = r.byte()
		size := r.u32()
		if r.err != nil || uint64(size) > uint64(r.left()) {
			return all, fmt.Errorf("is cut off or damaged: the section at byte %#x ends outside the file", s.Start)
		}
		if len(all) >= limits.Customs+len(sectionOrder) {
			return all, fmt.Errorf("has more than %d sections: strip debug information", len(all))
		}
		s.Body, s.End = r.pos, r.pos+int(size)
		r.pos = s.End
		if s.IsCustom() {
			content := &reader{bytes: file, pos: s.Body, end: s.End, where: sectionNames[sectionCustom]}
			if s.Name = content.name(); content.err != nil {
				return all, content.err
			}
			s.Body = content.pos
		}
		all = append(all, s)
	}
	return all, nil
}

// AppendCustom appends a custom section to a file, which is empty or a module.
func AppendCustom(file []byte, name string, content []byte) []byte {
	if len(file) == 0 {
		file = append(file, magic+"\x01\x00\x00\x00"...)
	}
	named := appendName(nil, name)
	file = appendU32(append(file, sectionCustom), uint32(len(named)+len(content)))
	return append(append(file, named...), content...)
}
