package codec

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// replacement is how a byte of a string is written that is not UTF-8.
var replacement = []byte(`\ufffd`)

// AppendExact is Append that refuses what JSON has no form for: a NaN, a function, text that is
// not UTF-8, which Append replaces, an error without a marshaler, which Append writes as {}, and
// an empty json.Number, which Append writes as 0. Of such a value, where is its path, such as
// ".lines[2].price", and what names it.
func AppendExact(dst []byte, v any) (out []byte, where, what string) {
	out, suspect, err := appendValue(dst, v)
	if err == nil && !suspect && !bytes.Contains(out[len(dst):], replacement) {
		return out, "", ""
	}
	w := walk{}
	w.value(reflect.ValueOf(v), 0)
	if w.what == "" && err != nil {
		w.what = fmt.Sprintf("no JSON (%v)", err)
	}
	return out, string(w.where), w.what
}

// walk looks for the first part of a value that JSON has no form for.
type walk struct {
	path, where []byte
	what        string
}

func (w *walk) found(what string) { w.where, w.what = slices.Clone(w.path), what }

// inside visits a part whose path ends with name.
func (w *walk) inside(name string, v reflect.Value, depth int) {
	here := len(w.path)
	w.path = append(w.path, name...)
	w.value(v, depth+1)
	w.path = w.path[:here]
}

func (w *walk) value(v reflect.Value, depth int) {
	switch {
	case w.what != "" || !v.IsValid():
		return
	case depth > 2*maxNesting:
		w.found("nested too deeply")
		return
	}
	k := v.Kind()
	pointer := k == reflect.Pointer || k == reflect.Interface
	switch {
	case pointer && v.IsNil():
		return // null, whatever methods it has
	case isError(v.Type()):
		w.found("an error, of which err.Error() is the text")
		return
	case v.Type() == numberType && v.Len() == 0:
		w.found("an empty json.Number")
		return
	}
	if !pointer && w.custom(v) {
		return
	}
	switch k {
	case reflect.Pointer, reflect.Interface:
		w.value(v.Elem(), depth+1)
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			w.found(strconv.FormatFloat(f, 'g', -1, 64))
		}
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			w.found("text that is not UTF-8")
		}
	case reflect.Func, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		w.found("a " + v.Type().String())
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // base64
		}
		for i := range v.Len() {
			w.inside("["+strconv.Itoa(i)+"]", v.Index(i), depth)
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, key := range keys {
			if key.Kind() == reflect.String && !utf8.ValidString(key.String()) {
				w.found("an object with a name that is not UTF-8")
				return
			}
			w.inside("."+fmt.Sprint(key), v.MapIndex(key), depth)
		}
	case reflect.Struct:
		w.members(v, depth)
	}
}

// custom visits a value that has its own form in JSON, and reports whether it is one.
func (w *walk) custom(v reflect.Value) bool {
	if v.CanAddr() && v.Addr().CanInterface() {
		v = v.Addr()
	}
	if !v.CanInterface() {
		return false
	}
	var text []byte
	var err error
	switch m := v.Interface().(type) {
	case json.Marshaler:
		text, err = json.Marshal(m)
	case encoding.TextMarshaler:
		text, err = m.MarshalText() // of which json.Marshal replaces what is not UTF-8
	default:
		return false
	}
	switch {
	case err != nil:
		w.found(fmt.Sprintf("no JSON (%v)", err))
	case !utf8.Valid(text):
		w.found("text that is not UTF-8")
	}
	return true
}

func (w *walk) members(v reflect.Value, depth int) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" && options == "", !f.IsExported() && !f.Anonymous:
		case (strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")) && v.Field(i).IsZero():
		case f.Anonymous && name == "":
			w.value(v.Field(i), depth+1)
		case name == "":
			w.inside("."+f.Name, v.Field(i), depth)
		default:
			w.inside("."+name, v.Field(i), depth)
		}
	}
}
