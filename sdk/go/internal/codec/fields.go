package codec

import (
	"reflect"
	"strings"
	"unicode"
)

// found is a field of a struct, or of one that is embedded in it.
type found struct {
	field
	typ    reflect.Type
	depth  int
	tagged bool
}

// fieldsOf returns the members of a struct's object in order. It reports false for a struct
// with fields that only encoding/json knows how to handle.
func fieldsOf(t reflect.Type) ([]field, bool) {
	all, ok := collect(nil, t, 0, 0)
	if !ok {
		return nil, false
	}
	var fields []field
	for i, f := range all {
		if dominates(all, i) {
			f.plan = makePlan(f.typ)
			f.key = wordsOf(f.name + `"`)
			f.prefix = wordsOf(`,"` + f.name + `":`)
			f.ordinal = len(fields)
			fields = append(fields, f.field)
		}
	}
	return fields, len(fields) <= maxFields
}

// dominates applies Go's rules for embedded fields of one name: the shallowest one counts,
// then one that is named by a tag, and none if there are two.
func dominates(all []found, at int) bool {
	f := all[at]
	for i, g := range all {
		if i != at && g.name == f.name && (g.depth < f.depth || g.depth == f.depth && (g.tagged || !f.tagged)) {
			return false
		}
	}
	return true
}

func collect(all []found, t reflect.Type, offset uintptr, depth int) (_ []found, ok bool) {
	for i := range t.NumField() {
		sf := t.Field(i)
		embedded := sf.Anonymous && sf.Type.Kind() == reflect.Struct
		tag := sf.Tag.Get("json")
		switch {
		case sf.Anonymous && sf.Type.Kind() == reflect.Pointer:
			return nil, false // made when it is needed
		case tag == "-", !sf.IsExported() && !embedded:
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if !validName(name) {
			name = ""
		}
		if embedded && name == "" {
			if all, ok = collect(all, sf.Type, offset+sf.Offset, depth+1); !ok {
				return nil, false
			}
			continue
		}
		f := found{field: field{name: name, offset: offset + sf.Offset}, typ: sf.Type, depth: depth, tagged: name != ""}
		if name == "" {
			f.name = sf.Name
		}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "string":
				return nil, false
			case "omitempty":
				f.omit |= omitEmpty
			case "omitzero":
				f.omit |= omitZero
			}
		}
		if strings.ContainsAny(f.name, "<>&") || f.omit&omitZero != 0 && sf.Type != timeType && hasIsZero(sf.Type) {
			return nil, false
		}
		all = append(all, f)
	}
	return all, true
}

// hasIsZero reports whether encoding/json asks a method whether to leave the field out.
func hasIsZero(t reflect.Type) bool {
	zeroer := reflect.TypeFor[interface{ IsZero() bool }]()
	return t.Implements(zeroer) || reflect.PointerTo(t).Implements(zeroer)
}

// validName reports whether encoding/json takes a name from a tag.
func validName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c)
	})
}
