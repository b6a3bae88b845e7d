package sandbox

import (
	"path/filepath"
	"slices"
	"strings"

	"runner.example/hostabi"
)

// commandName is the handler that a command is: its file's name, without what
// comes before and after it.
func commandName(file string) string {
	return strings.TrimSuffix(filepath.Base(file), ".wasm")
}

// Command is the name of the handler that the module is as a command, by its
// _start: CGI's way, in a sandbox that is as it was before _start. It is empty for
// a module without one, and for one whose handlers include that name.
func (m *Module) Command() string {
	if len(m.handlers) == len(m.program.Handlers) {
		return ""
	}
	return m.handlers[len(m.handlers)-1]
}

// Offers gives the handlers of the module in a schema that names those for which
// named is true: what it exports, or itself when it is a command and exports none
// of them.
func (m *Module) Offers(named func(handler string) bool) []string {
	command := m.Command()
	if command == "" || slices.ContainsFunc(m.Handlers(), named) {
		return m.Handlers()
	}
	return []string{command}
}

// export is the name of the function that a handler is.
func (m *Module) export(handler int) string {
	if handler == len(m.program.Handlers) {
		return exportStart
	}
	return m.handlers[handler]
}

// invokeHandler runs a handler's function, for a command with all that comes
// before and after it.
func (s *sandbox) invokeHandler(call *hostabi.Call, handler int) error {
	f := s.functions[handler]
	if f == nil {
		f = s.function(s.module.export(handler))
		s.functions[handler] = f
	}
	if handler < len(s.module.program.Handlers) {
		return s.invoke(f)
	}
	call.BeginProgram(s.module.handlers[handler])
	return call.EndProgram(s.invoke(f))
}
