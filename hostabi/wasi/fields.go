package wasi

import (
	"bytes"
	"slices"
	"strings"

	"runner.example/hostabi/outbound"
	"runner.example/internal/component/canon"
)

// fields are the resource of that name: headers or trailers.
type fields struct {
	all       []field
	immutable bool
}

func (*fields) kind() string { return "fields" }

// field is one line. Its name is as it was given, and its value is not changed.
type field struct {
	name  string
	value []byte
}

// The cases of header-error.
const (
	invalidSyntax = iota
	forbidden
	immutable
)

func headerError(n uint32) any { return fail(canon.Case{Index: n}) }

var fieldFunctions = map[string]function{
	"[constructor]fields":      func(r *run, _ []any) any { return r.add(&fields{}, 0) },
	"[static]fields.from-list": fieldsFromList,
	"[method]fields.get":       func(r *run, a []any) any { return use[*fields](r, a[0]).get(a[1].(string)) },
	"[method]fields.has":       func(r *run, a []any) any { return len(use[*fields](r, a[0]).get(a[1].(string))) > 0 },
	"[method]fields.set":       setField,
	"[method]fields.delete":    func(r *run, a []any) any { return use[*fields](r, a[0]).change(a[1].(string), nil, true) },
	"[method]fields.append":    appendField,
	"[method]fields.clone":     func(r *run, a []any) any { return r.add(r.copy(use[*fields](r, a[0])), 0) },
}

func fieldsFromList(r *run, a []any) any {
	f := &fields{}
	for _, e := range a[0].([]any) {
		pair := e.([]any)
		if problem := checkField(pair[0].(string), pair[1].([]byte)); problem != nil {
			return problem
		}
		f.add(pair[0].(string), pair[1].([]byte))
	}
	return ok(r.add(f, 0))
}

func setField(r *run, a []any) any {
	var values [][]byte
	for _, v := range a[2].([]any) {
		values = append(values, v.([]byte))
	}
	return use[*fields](r, a[0]).change(a[1].(string), values, true)
}

func appendField(r *run, a []any) any {
	return use[*fields](r, a[0]).change(a[1].(string), [][]byte{a[2].([]byte)}, false)
}

// change adds values of a name, perhaps instead of those that are there. It returns the result of the
// WIT function.
func (f *fields) change(name string, values [][]byte, instead bool) any {
	if f.immutable {
		return headerError(immutable)
	}
	if problem := checkField(name, values...); problem != nil {
		return problem
	}
	if instead {
		f.all = slices.DeleteFunc(f.all, func(l field) bool { return strings.EqualFold(l.name, name) })
	}
	for _, v := range values {
		f.add(name, v)
	}
	return ok(nil)
}

// add adds a copy.
func (f *fields) add(name string, value []byte) {
	f.all = append(f.all, field{name, bytes.Clone(value)})
}

// get returns the values of a name, in the form of WIT.
func (f *fields) get(name string) []any {
	values := []any{}
	for _, l := range f.all {
		if outbound.IsToken(name) && strings.EqualFold(l.name, name) {
			values = append(values, l.value)
		}
	}
	return values
}

func (f *fields) entries() []any {
	all := make([]any, len(f.all))
	for i, l := range f.all {
		all[i] = []any{l.name, l.value}
	}
	return all
}

// copy returns fields that can be changed. What they keep counts as moved.
func (r *run) copy(f *fields) *fields {
	size := 0
	for _, l := range f.all {
		size += len(l.name) + len(l.value)
	}
	r.call.CountMoved(size + 64*len(f.all))
	return &fields{all: slices.Clone(f.all)} // values are not changed
}

// headersOf adds headers to the table as a child of their message. They cannot be changed.
func (r *run) headersOf(message any, headers []field) any {
	return r.add(&fields{all: headers, immutable: true}, message.(uint32))
}

// forbiddenFields control the connection.
var forbiddenFields = map[string]bool{
	"connection": true, "keep-alive": true, "proxy-authenticate": true, "proxy-authorization": true,
	"proxy-connection": true, "transfer-encoding": true, "upgrade": true, "host": true, "http2-settings": true,
}

// checkField returns the header-error of a name with values, or nil.
func checkField(name string, values ...[]byte) any {
	switch {
	case !outbound.IsToken(name):
		return headerError(invalidSyntax)
	case slices.ContainsFunc(values, func(v []byte) bool { return !outbound.IsValue(string(v)) }):
		return headerError(invalidSyntax)
	case forbiddenFields[strings.ToLower(name)]:
		return headerError(forbidden)
	}
	return nil
}

// fieldsOf are the headers that a component sees of a message: those that it might also set.
func fieldsOf[T any](headers []T, pair func(T) (string, []byte)) (all []field) {
	for _, h := range headers {
		if name, value := pair(h); !forbiddenFields[strings.ToLower(name)] {
			all = append(all, field{name, value})
		}
	}
	return all
}
