package component_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/component"
	"runner.example/internal/wasm"
)

var update = flag.Bool("update", false, "write testdata/*.plan as they come out")

// planText shows a plan, with numbers for what is referred to.
type planText struct {
	*component.Plan
	strings.Builder
}

func (p *planText) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *planText) item(c component.CoreItem) string {
	switch {
	case c.IsZero():
		return "-"
	case c.Canon != nil:
		return fmt.Sprint("canon ", slices.Index(p.Canons, c.Canon))
	}
	return fmt.Sprintf("%q of %d", c.Name, c.Instance)
}

func (p *planText) resource(r *component.Resource) string {
	if r = r.Identity(); r.Import != nil {
		return r.Import.Interface + " " + r.Import.Name
	}
	return fmt.Sprint("resource ", slices.Index(p.Resources, r))
}

func (p *planText) function(f *component.Func) string {
	if f.Lift == nil {
		return fmt.Sprintf("import %d", slices.Index(p.Imports, f.Import))
	}
	return fmt.Sprintf("lift of %s in component %d%s", p.item(f.Lift.Core), f.Lift.Owner, p.options(f.Lift.Options))
}

func (p *planText) options(o component.Options) (text string) {
	for _, i := range []struct {
		name string
		component.CoreItem
	}{{"memory", o.Memory}, {"realloc", o.Realloc}, {"post-return", o.PostReturn}, {"callback", o.Callback}} {
		if !i.IsZero() {
			text += fmt.Sprintf(", %s %s", i.name, p.item(i.CoreItem))
		}
	}
	if o.Encoding != component.UTF8 {
		text += fmt.Sprint(", encoding ", o.Encoding)
	}
	if o.Async {
		text += ", async"
	}
	return text
}

func (p *planText) typeText(t *component.FuncType) string {
	var params []string
	for _, f := range t.Params {
		params = append(params, f.Name+": "+p.valueText(f.Type))
	}
	text := "(" + strings.Join(params, ", ") + ")"
	if t.Async {
		text = "async" + text
	}
	if t.Result != nil {
		text += " -> " + p.valueText(t.Result)
	}
	return text
}

func (p *planText) valueText(t *component.ValueType) string {
	if t.Resource != nil {
		return fmt.Sprintf("%s<%s>", t.Kind, p.resource(t.Resource))
	}
	return t.String()
}

func (p *planText) show() string {
	p.line("%d component instances", p.Components)
	for i, m := range p.Imports {
		if m.Func != nil {
			p.line("import %d: %s %s %s", i, m.Interface, m.Name, p.typeText(m.Func))
		} else {
			p.line("import %d: %s resource %s", i, m.Interface, m.Name)
		}
	}
	for i, r := range p.Resources {
		p.line("resource %d: of component %d, destructor %s", i, r.Owner, p.item(r.Destructor))
	}
	for i, c := range p.Canons {
		what := p.options(c.Options)
		if c.Func != nil {
			what += fmt.Sprintf(" %s = %s", p.typeText(c.Func.Type), p.function(c.Func))
		}
		if c.Resource != nil {
			what += " " + p.resource(c.Resource)
		}
		if c.Type != nil {
			what += " " + p.valueText(c.Type)
		}
		p.line("canon %d: component %d, %s %v > %v%s", i, c.Owner, c.Op, c.Core.Params, c.Core.Results, what)
	}
	for i, in := range p.Instances {
		p.line("core instance %d: component %d", i+1, in.Owner)
		for n, from := range in.Imports {
			p.line("\t%d: %s", n, p.item(from))
		}
	}
	for _, e := range p.Exports {
		if e.Func != nil {
			p.line("export: %s %s %s = %s", e.Interface, e.Name, p.typeText(e.Func.Type), p.function(e.Func))
		} else {
			p.line("export: %s %s = %s", e.Interface, e.Name, p.resource(e.Resource))
		}
	}
	return p.String()
}

func golden(t *testing.T, name string, file []byte) {
	t.Helper()
	plan, err := component.Read(file, wasm.DefaultLimits())
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	text := (&planText{Plan: plan}).show()
	path := filepath.Join("testdata", name+".plan")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s: the plan is\n%s\nand should be\n%s", name, text, want)
	}
}

// sampleFile is a component that a tool made, without its code: see testdata/skeleton.
func sampleFile(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.ReadFile("testdata/" + name + ".wasm")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPlansSayWhereEachImportComesFrom(t *testing.T) {
	for _, c := range specCases(t, "cases") {
		if name, ok := strings.CutPrefix(c.What, "accepted: plan of "); ok {
			golden(t, strings.ReplaceAll(name, " ", "-"), c.Wasm)
		}
	}
}

// find returns the export of an interface and name.
func find(t *testing.T, p *component.Plan, from, name string) *component.Export {
	t.Helper()
	for _, e := range p.Exports {
		if e.Interface == from && e.Name == name {
			return e
		}
	}
	t.Fatalf("no export %s %s", from, name)
	return nil
}

func TestComponentsOfToolsHavePlans(t *testing.T) {
	for _, c := range []struct {
		name                                             string
		components, instances, imports, canons, ofModule int // of the last core instance
		from, export, core                               string
	}{
		{"command-0.2", 2, 4, 37, 37, 36, "wasi:cli/run@0.2.12", "run", "() -> result<ok, error>"},
		{"starlingmonkey-0.2", 2, 4, 109, 117, 69, "wasi:http/incoming-handler@0.2.10", "handle", "(request: own<wasi:http/types@0.2.10 incoming-request>, response-out: own<wasi:http/types@0.2.10 response-outparam>)"},
		{"quickjs-0.3", 5, 8, 72, 108, 62, "wasi:http/handler@0.3.0", "handle", "async(request: own<wasi:http/types@0.3.0 request>) -> result<ok: own, error: variant>"},
	} {
		p, err := component.Read(sampleFile(t, c.name), wasm.DefaultLimits())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		last := p.Instances[len(p.Instances)-1]
		if p.Components != c.components || len(p.Instances) != c.instances || len(p.Imports) != c.imports ||
			len(p.Canons) != c.canons || len(last.Imports) != c.ofModule {
			t.Errorf("%s: %d component instances, %d core instances, %d imports, %d canonical functions, %d imports of the last", c.name,
				p.Components, len(p.Instances), len(p.Imports), len(p.Canons), len(last.Imports))
		}
		f := find(t, p, c.from, c.export).Func
		if got := (&planText{Plan: p}).typeText(f.Type); got != c.core {
			t.Errorf("%s: %s is %s", c.name, c.export, got)
		}
		if async := c.name == "quickjs-0.3"; f.Lift == nil || f.Lift.Options.Async != async || f.Lift.Options.Callback.IsZero() == async {
			t.Errorf("%s: %s is lifted as %+v", c.name, c.export, f.Lift)
		}
		checkPlan(t, p)
	}
}

// checkPlan checks that nothing in a plan comes from what is not there yet.
func checkPlan(t *testing.T, p *component.Plan) {
	t.Helper()
	known := map[*component.Canon]bool{}
	for _, c := range p.Canons {
		known[c] = true
	}
	check := func(what string, c component.CoreItem, before int) {
		if c.Canon != nil && !known[c.Canon] || c.Instance > before || c.Canon != nil && c.Instance != 0 {
			t.Fatalf("%s comes from %+v, before core instance %d", what, c, before)
		}
		if c.Canon != nil {
			return
		}
		exports := p.Instances[c.Instance-1].Module.Parsed.Exports()
		if !slices.ContainsFunc(exports, func(e wasm.Export) bool { return e.Name == c.Name && e.Kind == c.Kind }) {
			t.Fatalf("%s comes from %+v, which is not exported", what, c)
		}
	}
	all := len(p.Instances)
	options := func(o component.Options) {
		for _, i := range []component.CoreItem{o.Memory, o.Realloc, o.PostReturn, o.Callback} {
			if !i.IsZero() {
				check("an option", i, all)
			}
		}
	}
	function := func(f *component.Func) {
		switch {
		case (f.Import == nil) == (f.Lift == nil):
			t.Fatalf("a function is not exactly one of imported and lifted: %+v", f)
		case f.Import != nil && !slices.Contains(p.Imports, f.Import):
			t.Fatalf("a function is imported as %+v, which is not an import", f.Import)
		case f.Lift != nil:
			check("a lifted function", f.Lift.Core, all)
			options(f.Lift.Options)
		}
	}
	for n, i := range p.Instances {
		if imports := i.Module.Parsed.Externals(); len(i.Imports) != len(imports) || i.Owner < 0 || i.Owner >= p.Components {
			t.Fatalf("core instance %d has %d imports and its module %d; it is in component instance %d", n+1, len(i.Imports), len(imports), i.Owner)
		}
		for _, c := range i.Imports {
			check("an import", c, n)
		}
	}
	for _, c := range p.Canons {
		options(c.Options)
		if c.Func != nil {
			function(c.Func)
		}
	}
	for _, e := range p.Exports {
		if e.Func != nil {
			function(e.Func)
		}
	}
}
