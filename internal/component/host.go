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
	handler    *FuncType
}

// NewHost returns the host of everything that components import. An import "handler" that is in no interface has the
// type of handlers.
func NewHost(worlds ...*Plan) *Host {
	h := &Host{offers: map[[2]string]*Import{}, interfaces: map[string]bool{}}
	for _, world := range worlds {
		for _, i := range world.Imports {
			if i.Interface == "" {
				h.handler = i.Func
				continue
			}
			h.offers[[2]string{HostInterface(i.Interface), i.Name}] = i
			h.interfaces[HostInterface(i.Interface)] = true
		}
	}
	return h
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
	switch {
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
	"fermyon:":       "use wasi:http/outgoing-handler, and env: of its module block in the schema for settings",
	"spin:":          "use wasi:http/outgoing-handler, and env: of its module block in the schema for settings",
	"wasmcloud:":     "use wasi:http/outgoing-handler, and env: of its module block in the schema for settings",
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
