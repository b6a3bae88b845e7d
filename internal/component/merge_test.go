package component_test

import (
	"fmt"
	"slices"
	"testing"

	"runner.example/internal/component"
	"runner.example/internal/wasm"
)

// merged makes one module of a plan, which imports its canonical functions from the host.
func merged(p *component.Plan) ([]byte, error) {
	m := wasm.Merge{}
	for n, c := range p.Canons {
		m.Imports = append(m.Imports, wasm.Import{Module: "canon", Name: fmt.Sprint(n), Type: c.Core})
	}
	for _, i := range p.Instances {
		part := wasm.Part{Module: i.Module.Parsed}
		for _, from := range i.Imports {
			source := wasm.Source{Part: from.Instance - 1, Name: from.Name}
			if from.Canon != nil {
				source = wasm.Source{Part: wasm.NoPart, Name: fmt.Sprint("canon.", slices.Index(p.Canons, from.Canon))}
			}
			part.Imports = append(part.Imports, source)
		}
		m.Parts = append(m.Parts, part)
	}
	for n, e := range p.Exports {
		if e.Func != nil && e.Func.Lift != nil && e.Func.Lift.Core.Canon == nil {
			core := e.Func.Lift.Core
			m.Exports = append(m.Exports, wasm.MergedExport{Name: fmt.Sprint(n), Source: wasm.Source{Part: core.Instance - 1, Name: core.Name}})
		}
	}
	return m.Module(wasm.DefaultLimits())
}

func TestPlansMergeToOneModule(t *testing.T) {
	files := map[string][]byte{}
	for _, name := range []string{"command-0.2", "starlingmonkey-0.2", "quickjs-0.3"} {
		files[name] = sampleFile(t, name)
	}
	for _, c := range specCases(t, "cases") {
		if c.What == "accepted: plan of modules with a table that is filled later" {
			files[c.What] = c.Wasm
		}
	}
	for name, file := range files {
		p, err := component.Read(file, wasm.DefaultLimits())
		if err != nil {
			t.Fatal(name, err)
		}
		module, err := merged(p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		parsed, err := wasm.Parse(module, wasm.DefaultLimits())
		if err != nil {
			t.Errorf("%s: the merged module %v", name, err)
			continue
		}
		if len(parsed.Imports()) != len(p.Canons) {
			t.Errorf("%s: the merged module has %d imports, and there are %d canonical functions", name, len(parsed.Imports()), len(p.Canons))
		}
	}
}
