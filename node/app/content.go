package app

import (
	"context"
	"errors"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/node/release"
	"runner.example/runtime"
	"runner.example/schema"
	"runner.example/state/entity/catalog"
)

// Content is what a server activates: the checked schema and the modules.
type Content struct {
	runtime.App
	// Name is the name of the app.
	Name string
}

// Read reads the schema and the modules of the app, and the values of its secrets.
func (a *App) Read() (*Content, error) {
	s, sources, err := a.Compile()
	if err != nil {
		return nil, err
	}
	return a.Content(s, sources)
}

// Release returns the content of a stored release: its schema is compiled with the settings of
// this app, and its secrets have this app's values.
func (a *App) Release(name string, files []release.Content) (*Content, error) {
	content := &Content{Name: name}
	for _, f := range files {
		switch {
		case release.IsModule(f.Name):
			content.Modules = append(content.Modules, runtime.ModuleFile{Name: f.Name, Wasm: f.Data})
		case release.IsSchema(f.Name):
			content.Sources = append(content.Sources, diag.Source{Name: f.Name, Text: f.Data})
		}
	}
	var err error
	if content.Schema, err = a.compile(content.Sources); err != nil {
		return nil, err
	}
	if declared := content.Schema.App; declared != "" && declared != name {
		return nil, fault.New(fault.Invalid, "the release is of app %q, and its schema declares app %q", name, declared)
	}
	content.Secrets, err = a.Secrets(content.Schema.Secrets)
	return content, err
}

// Files returns the files of the content, as a release has them.
func (latest *Content) Files() (files []release.Content) {
	for _, s := range latest.Sources {
		files = append(files, release.Content{Name: s.Name, Data: s.Text})
	}
	for _, m := range latest.Modules {
		files = append(files, release.Content{Name: m.Name, Data: m.Wasm})
		if m.Debug != nil {
			files = append(files, release.Content{Name: release.DebugOf(m.Name), Data: m.Debug})
		}
	}
	return files
}

// Content adds the modules and the values of the secrets to a compiled schema.
func (a *App) Content(s *schema.Schema, sources []diag.Source) (*Content, error) {
	modules, unread := runtime.ReadModules(a.Dir)
	values, missing := a.Secrets(s.Secrets)
	if err := errors.Join(unread, missing); err != nil {
		return nil, err
	}
	name, err := a.Name(s)
	return &Content{runtime.App{Schema: s, Sources: sources, Modules: modules, Secrets: values}, name}, err
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
