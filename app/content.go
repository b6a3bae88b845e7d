package app

import (
	"context"
	"errors"

	"runner.example/entity/catalog"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/runtime"
	"runner.example/schema"
)

// Content is what a server activates: the checked schema and the modules.
type Content struct{ runtime.App }

// Read reads the schema and the modules of the app, and the values of its secrets.
func (a *App) Read() (*Content, error) {
	s, sources, err := a.Compile()
	if err != nil {
		return nil, err
	}
	return a.Content(s, sources)
}

// Content adds the modules and the values of the secrets to a compiled schema.
func (a *App) Content(s *schema.Schema, sources []diag.Source) (*Content, error) {
	modules, unread := runtime.ReadModules(a.Dir)
	values, missing := a.Secrets(s.Secrets)
	if err := errors.Join(unread, missing); err != nil {
		return nil, err
	}
	return &Content{runtime.App{Schema: s, Sources: sources, Modules: modules, Secrets: values}}, nil
}

// CheckStart returns errors that would prevent a server from starting, as far as they can
// be found quickly and without a store. A failed start should not create a data directory.
func (latest *Content) CheckStart(ctx context.Context, a *App) error {
	if err := a.CheckData(); err != nil {
		return err
	}
	if len(latest.Modules) > 0 {
		return nil // the activation compiles them, and reports errors
	}
	return runtime.CheckModules(ctx, a.SandboxOptions(""), latest.App)
}

func (latest *Content) Activate(ctx context.Context, rt *runtime.Runtime) error {
	return latest.Explain(rt.Activate(ctx, latest.App))
}

// Explain adds the places in the schema to an error of an activation.
func (latest *Content) Explain(err error) error {
	if unbound, ok := errors.AsType[*runtime.UnboundError](err); ok {
		return &console.Problems{What: "the modules do not match the schema: " + console.Counted(unbound.List), Sources: latest.Sources, List: unbound.List}
	}
	if change, ok := errors.AsType[*catalog.ChangeError](err); ok {
		return &console.Problems{What: "existing rows violate the schema: " + console.Counted(change.List), Sources: latest.Sources, List: change.List}
	}
	return err
}
