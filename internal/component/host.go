package component

import (
	"fmt"
	"slices"
	"strings"
)

// Host is what a host offers to components: the functions and resources that a component of the host's
// own imports. It may be used by any goroutine.
type Host struct {
	offers     map[[2]string]*Import // by HostInterface and name
	interfaces map[string]bool
	exported   map[string]bool // interfaces that components export
	payloads   []*ValueType
	handler    *FuncType
}

// NewHost returns the host of everything that components import, but for the interfaces that they would export:
// exported has their names without versions. An import "handler" that is in no interface has the type of handlers.
func NewHost(exported map[string]bool, worlds ...*Plan) *Host {
	h := &Host{offers: map[[2]string]*Import{}, interfaces: map[string]bool{}, exported: exported}
	for _, world := range worlds {
		for _, i := range world.Imports {
			if i.Interface == "" {
				h.handler = i.Func
				continue
			}
			h.offers[[2]string{HostInterface(i.Interface), i.Name}] = i
			h.interfaces[HostInterface(i.Interface)] = true
			if i.Func != nil {
				for _, f := range i.Func.fields() {
					h.addPayloads(f.Type)
				}
			}
		}
	}
	return h
}

// addPayloads adds the types of streams and futures in a type.
func (h *Host) addPayloads(t *ValueType) {
	if t == nil {
		return
	}
	if t.Kind == Stream || t.Kind == Future {
		if _, err := h.Payload(t); err != nil {
			h.payloads = append(h.payloads, t)
		}
	}
	h.addPayloads(t.Element)
	for _, f := range t.Fields {
		h.addPayloads(f.Type)
	}
}

// Payloads are the different types of streams and futures that the functions pass, each with its number.
func (h *Host) Payloads() []*ValueType { return h.payloads }

// Payload returns the number of the type of a stream or future. The error says that no interface passes this
// type.
func (h *Host) Payload(t *ValueType) (int, error) {
	for n, have := range h.payloads {
		if (&machine{host: true}).different(t, have) == "" {
			return n, nil
		}
	}
	return 0, fmt.Errorf("has a %s, which no interface of the runner passes: such a %s is not supported", t, t.Kind)
}

// AsyncHandler is the function that answers requests, as WASI 0.3 has it.
func (h *Host) AsyncHandler() *FuncType { return h.offers[[2]string{asyncHandler, "handle"}].Func }

// returns reports whether a type, or nil, is that of a function's result.
func (h *Host) returns(of, name string, t *ValueType) bool {
	f := h.offers[[2]string{of, name}]
	return t != nil && f != nil && (&machine{host: true}).different(t, f.Func.Result) == ""
}

// exports says why a function that a component exports is not that of its interface; nil: it is.
func (h *Host) exports(x *Export) error {
	want := h.offers[[2]string{HostInterface(x.Interface), x.Name}].Func
	if what := (&machine{host: true}).differentFunc(x.Func.Type, want); what != "" {
		return fmt.Errorf("has another type than that of the interface: %s", what)
	}
	return nil
}

// Handler is the type of handlers that are functions of a component.
func (h *Host) Handler() *FuncType { return h.handler }

// CheckHandler says what is different in a function that is exported as a handler; nil: nothing.
func (h *Host) CheckHandler(f *FuncType) error {
	m := &machine{host: true}
	if what := m.differentFunc(f, h.handler); what != "" {
		return fmt.Errorf("has another type than a handler, func(request: request) -> result<response, error> of runner:app: %s", what)
	}
	return nil
}

// Check says why the host does not have what a component imports; nil: it has. Interfaces match as semver.org
// 2.0.0 says: a newer patch of the host's version may be imported, if it only uses what the host has.
func (h *Host) Check(i *Import) error {
	have, ok := h.offers[[2]string{HostInterface(i.Interface), i.Name}]
	base, _, _ := strings.Cut(i.Interface, "@")
	switch {
	case h.exported[base]:
		return fmt.Errorf("imports %s, which components export: a component cannot call another handler", i.Interface)
	case !ok && h.interfaces[HostInterface(i.Interface)]:
		return fmt.Errorf("imports %s of %s, which the runner does not have", i.Name, i.Interface)
	case !ok:
		return fmt.Errorf("imports %s, which the runner does not have%s", i.Interface, h.instead(i.Interface))
	case (have.Func == nil) != (i.Func == nil):
		return fmt.Errorf("imports %s of %s, which is not the same kind of thing in the runner", i.Name, i.Interface)
	case i.Func == nil:
		return nil
	}
	m := &machine{host: true}
	if what := m.differentFunc(i.Func, have.Func); what != "" {
		return fmt.Errorf("imports %s of %s with another type than the runner has: %s", i.Name, i.Interface, what)
	}
	return nil
}

// others are interfaces of other hosts, with what to use instead.
var others = map[string]string{
	"fermyon:":       "it was made for Spin: use wasi:http/outgoing-handler, and env: of its module block in the schema for settings",
	"spin:":          "it was made for Spin: use wasi:http/outgoing-handler, and env: of its module block in the schema for settings",
	"wasmcloud:":     "it was made for wasmCloud: use wasi:http/outgoing-handler, and env: of its module block in the schema for settings",
	"fastly:":        "it was made for Fastly Compute: use wasi:http/outgoing-handler, and rows of the runner",
	"golem:":         "it was made for Golem: use wasi:http/outgoing-handler, and rows of the runner",
	"wasi:config":    "read wasi:cli/environment, which has env: of its module block in the schema",
	"wasi:logging":   "write to wasi:cli/stderr, which goes to the log",
	"wasi:keyvalue":  "use runner:app/rows, or call a store with wasi:http/outgoing-handler",
	"wasi:blobstore": "use runner:app/rows, or call a store with wasi:http/outgoing-handler",
	"wasi:messaging": "use runner:app/jobs, or call a service with wasi:http/outgoing-handler",
}

// instead says what to use instead of an interface, or which version the host has.
func (h *Host) instead(name string) string {
	base, _, _ := strings.Cut(name, "@")
	var versions []string
	for have := range h.interfaces {
		if b, version, _ := strings.Cut(have, "@"); b == base {
			versions = append(versions, version)
		}
	}
	if len(versions) > 0 {
		slices.Sort(versions)
		return fmt.Sprintf(": it has version %s", strings.Join(versions, " and "))
	}
	for prefix, text := range others {
		if strings.HasPrefix(name, prefix) {
			return ": " + text
		}
	}
	return ""
}

// sameImport reports whether two imports are the same of the host.
func sameImport(a, b *Import) bool {
	return a != nil && b != nil && a.Name == b.Name && HostInterface(a.Interface) == HostInterface(b.Interface)
}
