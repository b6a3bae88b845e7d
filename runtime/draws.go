package runtime

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"runner.example/internal/diag"
	"runner.example/internal/wasm"
	"runner.example/runtime/draws"
	"runner.example/runtime/sandbox"
	"runner.example/schema"
	"runner.example/schema/syntax"
)

// FindDraws warns about random values that the modules draw before their first request, because every
// request gets the same ones. It leaves out modules that the schema makes fresh, modules that cannot
// be loaded, and handlers in Python: their SDK draws again in each request. The error is that of ctx.
func FindDraws(ctx context.Context, opt sandbox.Options, bundle *Bundle) (found diag.List, err error) {
	for _, file := range bundle.Modules {
		if bundle.Schema.IsFresh(file.ShortName()) || file.isPython(bundle.Schema) {
			continue
		}
		options, err := drawOptions(opt, ModuleSettings(bundle.Schema, file), file)
		if err != nil {
			continue
		}
		drawn, err := draws.Find(ctx, file.Wasm, options)
		if ctx.Err() != nil {
			return found, ctx.Err()
		}
		if err != nil || len(drawn.Draws) == 0 {
			continue
		}
		handlers := handlersOf(bundle.Schema, file, &drawn)
		for _, d := range drawn.Draws {
			found.Warnf("W554", diag.Span{File: file.Name}, "%s", drawMessage(file, d, &drawn, handlers))
		}
	}
	return found, nil
}

// interpreterTime is how much longer a start may take in the interpreter than in a sandbox, but no longer than
// interpreterLimit: people wait for it.
const (
	interpreterTime  = 10
	interpreterLimit = 30 * time.Second
)

func drawOptions(opt sandbox.Options, settings sandbox.Settings, file ModuleFile) (o draws.Options, err error) {
	o = draws.Options{MemoryBytes: opt.MemoryBytes, Stub: settings.Stub}
	if p := settings.Program; p != nil {
		o.Start, o.MustWait, o.Time = true, p.Timeout > 0, min(interpreterTime*cmp.Or(p.Timeout, opt.InitTime), interpreterLimit)
	}
	o.Program, err = settings.Program.ForHost(file.Name)
	return o, err
}

// maxChain is how many functions of a chain are shown.
const maxChain = 12

func drawMessage(file ModuleFile, d draws.Draw, found *draws.Found, handlers string) string {
	chain := d.Chain
	if len(chain) > maxChain {
		chain = slices.Concat(chain[:maxChain/2], []string{"…"}, chain[len(chain)-maxChain/2:])
	}
	text := fmt.Sprintf("every request gets the same %s, %s before the first request by %s%s",
		d.Kind, d.Kind.Act(), strings.Join(chain, " → "), handlers)
	if !found.Named {
		text += " (the module has no function names: build it without stripping to see which package drew)"
	}
	if found.Waits {
		return text + ": draw after request_next has returned"
	}
	name := file.ShortName()
	if !syntax.IsName(name) {
		name = fmt.Sprintf("%q", name)
	}
	return text + fmt.Sprintf(
		": write `module %s { fresh: true }` in the schema, or draw in the handler or in runner_reseed", name)
}

// handlersOf names the handlers of the schema that a module has, to append to a message.
func handlersOf(s *schema.Schema, file ModuleFile, found *draws.Found) string {
	m, err := wasm.Parse(file.Wasm, wasm.DefaultLimits())
	if err != nil {
		return ""
	}
	var all []string
	switch {
	case found.Handlers != nil:
		all = found.Handlers
	case found.Waits:
		all = []string{file.ShortName()}
	default:
		for _, x := range m.Exports() {
			if x.Kind == wasm.FunctionKind {
				all = append(all, x.Name)
			}
		}
	}
	named := namesHandler(s)
	handlers := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !named(name) })
	const shown = 5
	slices.Sort(handlers)
	switch n := len(handlers); {
	case n == 0:
		return ""
	case n == 1:
		return " (handler " + handlers[0] + ")"
	case n > shown:
		return fmt.Sprintf(" (handlers %s and %d others)", strings.Join(handlers[:shown], ", "), n-shown)
	}
	return " (handlers " + strings.Join(handlers, ", ") + ")"
}
