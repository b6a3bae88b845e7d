package component

import (
	"fmt"

	"runner.example/internal/wasm"
	"runner.example/internal/wasm/opcode"
)

// LinkExports is Link with the functions that the component exports, by their names, instead of those that answer
// requests.
func (p *Plan) LinkExports(limits wasm.Limits, host *Host) ([]byte, error) {
	l, err := newLinker(p, host, func(*Export) bool { return true })
	if err != nil {
		return nil, err
	}
	for _, x := range p.Exports {
		if x.Func == nil || x.Func.Lift == nil {
			continue
		}
		core, err := l.lifted(x.Func)
		if err != nil {
			return nil, err
		}
		t := x.Func.Lift.Shape.FuncType
		enter := l.prologue(x.Func.Lift.Owner)
		l.add("", x.Name, t, nil, func(a *assembler) {
			enter(a)
			for i := range t.Params {
				a.n(opcode.LocalGet, i)
			}
			a.call(core)
		})
	}
	l.addFlags(limits)
	return l.merge.Module(limits)
}

// LinkCanons returns the plan's modules and the functions that its canonical definitions become, which are exported
// by their numbers.
func (p *Plan) LinkCanons(limits wasm.Limits) ([]byte, error) {
	l, err := newLinker(p, &Host{}, func(*Export) bool { return true })
	if err != nil {
		return nil, err
	}
	for i, c := range p.Canons {
		name, err := l.canon(c)
		if err != nil {
			return nil, err
		}
		l.add("", fmt.Sprint(i), c.Core, nil, func(a *assembler) {
			for i := range c.Core.Params {
				a.n(opcode.LocalGet, i)
			}
			a.call(name)
		})
	}
	l.addFlags(limits)
	return l.merge.Module(limits)
}
