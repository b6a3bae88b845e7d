package sandbox

import (
	"path/filepath"
	"slices"
	"strings"

	"runner.example/hostabi"
)

// commandName is the handler's name of a command: its file's name without the directory and
// the extension.
func commandName(file string) string {
	return strings.TrimSuffix(filepath.Base(file), ".wasm")
}

// Command is the name of the handler that the module is as a command. _start runs as CGI
// programs do, in a sandbox that is as it was before it. The name is empty if the module
// does not export _start, or exports a handler with this name.
func (m *Module) Command() string {
	if len(m.handlers) == len(m.program.Handlers) {
		return ""
	}
	return m.handlers[len(m.handlers)-1]
}

// Offers returns the module's handlers for a schema that names those for which named returns
// true: its exports, or the command if it is one and exports none of them.
func (m *Module) Offers(named func(handler string) bool) []string {
	command := m.Command()
	if command == "" || slices.ContainsFunc(m.Handlers(), named) {
		return m.Handlers()
	}
	return []string{command}
}

// export is the name of a handler's function.
func (m *Module) export(handler int) string {
	if handler == len(m.program.Handlers) {
		return exportStart
	}
	return m.handlers[handler]
}

// invokeHandler runs a handler's function, or a command's program.
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
