package compiler

import (
	"cmp"

	"runner.example/internal/tree"
	"runner.example/schema"
	"runner.example/schema/report"
	"runner.example/schema/syntax"
)

// checkPython checks the python block. It has settings of a module block, and the interpreter's file.
func (a *app) checkPython() {
	for _, d := range a.decls {
		block, ok := d.(*syntax.PythonDecl)
		if !ok {
			continue
		}
		a.settingsOnce(block.Settings)
		if m := a.schema.Module(schema.PythonModule); m != nil && a.schema.Python == nil {
			a.Errorf("E560", m.Span,
				"module %s is the one of handlers in Python, which has the settings of the block python at %s: rename build/%[1]s.wasm and this block, or remove the other",
				m.Name, report.At(m.Span, block.Keyword))
		}
		c := moduleChecker{a, schema.Module{Span: block.Keyword}}
		python := &schema.Python{Doc: block.Doc, Span: block.Keyword}
		for _, s := range block.Settings {
			switch s.Name.Name {
			case "wasm":
				if lit, ok := c.String(s.Value); ok {
					python.Wasm, python.WasmSpan = lit.Text, lit.Loc
					if problem := tree.CheckPath(lit.Text); problem != "" {
						c.Errorf("E558", lit.Loc, "the interpreter's file %s: write a path relative to the app directory, such as %q",
							problem, cmp.Or(plainPath(lit.Text), "python/python.wasm"))
					}
				}
			case "env":
				c.env(s)
			case "startTimeout":
				c.startTimeout(s.Value)
			}
		}
		python.Env, python.StartTimeout = c.module.Env, c.module.StartTimeout
		a.schema.Python = python
	}
}
