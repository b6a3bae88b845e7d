package app

import (
	"context"
	"errors"

	"runner.example/entity"
	"runner.example/internal/console"
	"runner.example/runtime"
)

// content is what an app's folder holds for serving: the schema, which compile
// has checked, and the modules.
type Content struct{ runtime.App }

func (a *App) Read() (*Content, error) {
	s, sources, err := a.Compile()
	if err != nil {
		return nil, err
	}
	modules, err := runtime.ReadModules(a.Dir)
	if err != nil {
		return nil, err
	}
	return &Content{runtime.App{Schema: s, Sources: sources, Modules: modules}}, nil
}

// fits tells what would keep a server from starting, as far as that can be known
// soon and without a store: a start that fails had better leave no data folder
// behind.
func (latest *Content) CheckStart(ctx context.Context, a *App, opt runtime.Options) error {
	if err := a.CheckData(); err != nil {
		return err
	}
	if _, err := opt.Secrets(latest.Schema.Secrets); err != nil {
		return err
	}
	if len(latest.Modules) > 0 {
		return nil // the activation compiles them, and tells about them
	}
	return runtime.CheckModules(ctx, a.SandboxOptions(""), latest.App)
}

func (latest *Content) Activate(ctx context.Context, rt *runtime.Runtime) error {
	return latest.Explain(rt.Activate(ctx, latest.App))
}

// Explain shows the places in the schema that an activation complains about.
func (latest *Content) Explain(err error) error {
	if unbound, ok := errors.AsType[*runtime.UnboundError](err); ok {
		return &console.Problems{What: "the modules do not fit the schema: " + console.Counted(unbound.List), Sources: latest.Sources, List: unbound.List}
	}
	if change, ok := errors.AsType[*entity.ChangeError](err); ok {
		return &console.Problems{What: "the schema does not fit the rows that are there: " + console.Counted(change.List), Sources: latest.Sources, List: change.List}
	}
	return err
}
