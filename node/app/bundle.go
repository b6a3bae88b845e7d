package app

import (
	"context"
	"errors"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/node/release"
	"runner.example/runtime"
	"runner.example/schema"
)

// Read returns the bundle of the app directory: its schema and its modules, and the values of its secrets.
func (a *App) Read() (*runtime.Bundle, error) {
	s, sources, err := a.Compile()
	if err != nil {
		return nil, err
	}
	return a.Bundle(s, sources)
}

// Bundle is Read with a schema that was compiled before.
func (a *App) Bundle(s *schema.Schema, sources []diag.Source) (*runtime.Bundle, error) {
	modules, unread := runtime.ReadModules(a.Dir)
	values, missing := a.Secrets(s.Secrets)
	if err := errors.Join(unread, missing); err != nil {
		return nil, err
	}
	name, err := a.Name(s)
	return &runtime.Bundle{App: name, Schema: s, Sources: sources, Modules: modules, Secrets: values}, err
}

// BundleOf returns the bundle of the stored release rel with its files. The schema is compiled with the settings
// of this app, and the values of the secrets are this app's.
func (a *App) BundleOf(rel release.Release, files []release.FileData) (*runtime.Bundle, error) {
	b := &runtime.Bundle{App: rel.App, Release: rel.ID}
	for _, f := range files {
		switch {
		case release.IsModule(f.Name):
			b.Modules = append(b.Modules, runtime.ModuleFile{Name: f.Name, Wasm: f.Data})
		case release.IsSchema(f.Name):
			b.Sources = append(b.Sources, diag.Source{Name: f.Name, Text: f.Data})
		}
	}
	var err error
	if b.Schema, err = a.compile(b.Sources); err != nil {
		return nil, err
	}
	if declared := b.Schema.App; declared != "" && declared != b.App {
		return nil, fault.New(fault.Invalid, "the release is of app %q, and its schema declares app %q", b.App, declared)
	}
	b.Secrets, err = a.Secrets(b.Schema.Secrets)
	return b, err
}

// Files returns the files of a bundle, as a release has them.
func Files(b *runtime.Bundle) (files []release.FileData) {
	for _, s := range b.Sources {
		files = append(files, release.FileData{Name: s.Name, Data: s.Text})
	}
	for _, m := range b.Modules {
		files = append(files, release.FileData{Name: m.Name, Data: m.Wasm})
		if m.Debug != nil {
			files = append(files, release.FileData{Name: release.DebugOf(m.Name), Data: m.Debug})
		}
	}
	return files
}

// CheckStart returns errors about the bundle that would prevent a server from starting, as far as they can
// be found quickly and without a store. A failed start should not create a data directory.
func (a *App) CheckStart(ctx context.Context, b *runtime.Bundle) error {
	if err := a.CheckData(); err != nil {
		return err
	}
	if len(b.Modules) > 0 {
		return nil // the activation compiles them, and reports errors
	}
	return runtime.CheckModules(ctx, a.SandboxOptions(""), b)
}
