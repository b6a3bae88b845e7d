package compiler

import (
	"strings"

	"runner.example/schema"
	"runner.example/schema/report"
	"runner.example/schema/syntax"
)

// checkModules checks the module blocks. Schema.CheckModules checks later whether the modules exist.
func (a *app) checkModules() {
	taken := seenNames{}
	for _, d := range a.decls {
		block, ok := d.(*syntax.ModuleDecl)
		if !ok {
			continue
		}
		a.settingsOnce(block.Settings)
		name := block.Name
		file := strings.TrimPrefix(strings.TrimSuffix(name.Name, ".wasm"), "build/")
		switch first, twice := taken.add(name); {
		case twice:
			a.Errorf("E550", name.Loc, "module %q is already declared at %s", name.Name, report.At(name.Loc, first))
			continue
		case file != name.Name && file != "":
			a.Errorf("E551", name.Loc, "a module has the name of its file in build/ without .wasm: write %q", file)
		case name.Name == "" && block.Quoted != nil || strings.Contains(name.Name, "/"):
			a.Errorf("E551", name.Loc, "%q is not the name of a file in build/ without .wasm", name.Name)
		}
		m := schema.Module{Name: name.Name, Doc: block.Doc, Span: name.Loc}
		for _, s := range block.Settings {
			if lit, ok := a.Literal(s.Value, syntax.BoolLit, "true or false"); ok && s.Name.Name == "fresh" {
				m.Fresh = lit.Bool
			}
		}
		a.schema.Modules = append(a.schema.Modules, m)
	}
}
