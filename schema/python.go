package schema

import (
	"time"

	"runner.example/internal/diag"
)

// PythonModule is the name of the module of handlers in Python: the interpreter. PythonFiles is the directory of its
// files, which runner build makes.
const (
	PythonModule = "python"
	PythonFiles  = "build/python"
)

// Python is the python block of the schema.
type Python struct {
	Doc string
	// Wasm is the file of the interpreter, a path with slashes relative to the app directory; empty: the runner's own.
	Wasm     string
	WasmSpan diag.Span
	// Env are environment variables of the interpreter, in the order of the schema.
	Env []EnvVar
	// StartTimeout limits the start of the handlers' module; 0: a minute.
	StartTimeout time.Duration
	Span         diag.Span
}

// pythonEnv are environment variables of the interpreter that the schema may set differently.
var pythonEnv = []EnvVar{{"PYTHONDONTWRITEBYTECODE", "1"}, {"PYTHONUTF8", "1"}}

// Module returns what a module block for the interpreter would say: it runs /app/__main__.py. The receiver may be nil.
func (p *Python) Module() *Module {
	m := &Module{
		Name: PythonModule, Args: []string{"/app"}, Files: PythonFiles, FilesSpan: diag.Span{File: PythonFiles},
		StartTimeout: time.Minute,
	}
	if p == nil {
		m.Env = pythonEnv
		return m
	}
	set := map[string]bool{}
	for _, v := range p.Env {
		set[v.Name] = true
	}
	for _, v := range pythonEnv {
		if !set[v.Name] {
			m.Env = append(m.Env, v)
		}
	}
	m.Doc, m.Span, m.Env = p.Doc, p.Span, append(m.Env, p.Env...)
	if p.StartTimeout > 0 {
		m.StartTimeout = p.StartTimeout
	}
	return m
}
