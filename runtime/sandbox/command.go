package sandbox

import (
	"path/filepath"
	"slices"
	"strings"

	"runner.example/hostabi"
	"runner.example/internal/component"
)

// commandName is the handler's name of a command: its file's name without the directory and
// the extension.
func commandName(file string) string {
	return strings.TrimSuffix(filepath.Base(file), ".wasm")
}

// Command is the name of the handler that the module is by itself: that of its file. A command's _start runs as CGI
// programs do, in a sandbox that is as it was before it; a component may answer requests instead. The name is empty if
// the module is neither, or exports a handler with this name.
func (m *Module) Command() string {
	if m.waiting != nil || len(m.handlers) == len(m.program.Handlers) {
		return ""
	}
	return m.handlers[len(m.handlers)-1]
}

// CheckNames returns an error if a handler of a component has two names in a schema that names those for which named
// returns true.
func (m *Module) CheckNames(named func(handler string) bool) error {
	if !m.program.Component {
		return nil
	}
	if err := component.CheckNames(m.program.Handlers, named); err != nil {
		return about(m.name, refuse("%v", err))
	}
	return nil
}

// Offers returns the module's handlers for a schema that names those for which named returns
// true: its exports, or the command if it is one and exports none of them. A component that answers requests offers its
// exports and itself.
func (m *Module) Offers(named func(handler string) bool) []string {
	command := m.Command()
	if m.program.Requests {
		return m.handlers
	}
	if command == "" || slices.ContainsFunc(m.Handlers(), named) {
		return m.Handlers()
	}
	return []string{command}
}

// export is the name of a handler's function.
func (m *Module) export(handler int) string {
	switch own := handler == len(m.program.Handlers); {
	case own && m.program.Requests:
		return component.ExportRequest
	case own, m.waiting != nil:
		return exportStart
	}
	return m.handlers[handler]
}

// invokeHandler runs a handler's function or a command's program, or continues a program that waits.
func (s *sandbox) invokeHandler(call *hostabi.Call, handler int) error {
	at := s.module.functionOf(handler)
	f := s.functions[at]
	if f == nil {
		f = s.function(s.module.export(handler))
		s.functions[at] = f
	}
	if s.module.waiting != nil {
		return s.resume(call, f, handler)
	}
	if handler < len(s.module.program.Handlers) || s.module.program.Requests {
		return s.invoke(f)
	}
	call.BeginProgram(s.module.start)
	return call.EndProgram(s.invoke(f))
}
