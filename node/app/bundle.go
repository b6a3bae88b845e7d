package app

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/tree"
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
	b := &runtime.Bundle{Schema: s, Sources: sources, Modules: modules, Secrets: values}
	if err := errors.Join(unread, missing, a.ReadTrees(b)); err != nil {
		return nil, err
	}
	var err error
	b.App, err = a.Name(s)
	return b, err
}

// ReadTrees gives the modules and the assets of a bundle of the app directory their files. The error is a
// *console.Problems with all that is wrong with the directories.
func (a *App) ReadTrees(b *runtime.Bundle) error {
	_, err := a.ReadTreesWarned(b)
	return err
}

// ReadTreesWarned is ReadTrees, and returns warnings about files of assets that are left out.
func (a *App) ReadTreesWarned(b *runtime.Bundle) (warnings diag.List, err error) {
	trees, found := a.trees(b.Schema)
	assets, more := a.assets(b.Schema)
	found.Append(more)
	if found.HasErrors() {
		return nil, &console.Problems{What: "the files of the app cannot be read: " + console.Counted(found), Sources: b.Sources, List: found}
	}
	b.Assets = assets
	for _, block := range a.blocks(b.Schema) {
		for i := range b.Modules {
			if b.Modules[i].ShortName() == block.Name {
				b.Modules[i].Files = trees[block.Files]
			}
		}
	}
	return found, nil
}

// blocks are the module blocks of a schema, and that of handlers in Python if runner build has made files of them.
func (a *App) blocks(s *schema.Schema) []schema.Module {
	if s.Module(schema.PythonModule) != nil {
		return s.Modules
	}
	if _, err := os.Stat(filepath.Join(a.Dir, filepath.FromSlash(schema.PythonFiles))); err != nil {
		return s.Modules
	}
	return append(slices.Clip(s.Modules), *s.Python.Module())
}

// CheckTrees reports what is wrong with the directories of module blocks and assets, and warns about files that are left
// out.
func (a *App) CheckTrees(s *schema.Schema) diag.List {
	_, found := a.trees(s)
	_, more := a.assets(s)
	found.Append(more)
	return found
}

// AssetFiles returns the number of files of each directory of assets that can be read.
func (a *App) AssetFiles(s *schema.Schema) map[string]int {
	counts := map[string]int{}
	trees, _ := a.assets(s)
	for dir, t := range trees {
		if t != nil {
			counts[dir] = len(t.List())
		}
	}
	return counts
}

// assets reads the directories of assets.
func (a *App) assets(s *schema.Schema) (trees map[string]*tree.Tree, found diag.List) {
	trees, omitted, wrong := map[string]*tree.Tree{}, map[string][]string{}, map[string][]string{}
	for i := range s.Assets {
		declared := &s.Assets[i]
		dir := declared.Dir
		if trees[dir] == nil && wrong[dir] == nil {
			read, left, err := tree.OpenPublic(a.Dir, dir, a.Data)
			if invalid, ok := errors.AsType[*tree.InvalidError](err); ok {
				wrong[dir] = invalid.Problems
			} else {
				trees[dir], omitted[dir] = read, left
			}
		}
		hasSPA := false
		if trees[dir] != nil {
			_, hasSPA = trees[dir].Lookup(declared.SPA)
		}
		found.Append(declared.CheckFiles(wrong[dir], hasSPA))
		found.Append(declared.WarnOmitted(omitted[dir]))
	}
	return trees, found
}

// trees reads the directories that the module blocks name. The data directory cannot be in one of them: it has the
// keys of the server.
func (a *App) trees(s *schema.Schema) (trees map[string]*tree.Tree, found diag.List) {
	trees, wrong := map[string]*tree.Tree{}, map[string][]string{}
	for _, block := range a.blocks(s) {
		dir := block.Files
		if dir == "" {
			continue
		}
		if trees[dir] == nil && wrong[dir] == nil {
			read, err := tree.OpenDir(a.Dir, dir, a.Data)
			if invalid, ok := errors.AsType[*tree.InvalidError](err); ok {
				wrong[dir] = invalid.Problems
			} else {
				trees[dir] = read
			}
		}
		found.Append(block.CheckFiles(wrong[dir]))
	}
	return trees, found
}

// BundleOf returns the bundle of the stored release rel with its files. The schema is compiled with the settings
// of this app, and the values of the secrets are this app's. If the release was activated before, perhaps by an older
// version, what only newer versions refuse in its schema is in Refused of the bundle, and no error.
func (a *App) BundleOf(rel release.Release, files []release.FileData) (*runtime.Bundle, error) {
	b := &runtime.Bundle{App: rel.App, Release: rel.ID}
	for _, f := range files {
		switch {
		case release.IsModule(f.Name):
			b.Modules = append(b.Modules, runtime.ModuleFile{Name: f.Name, Wasm: f.Data, Files: treeIn(files, release.TreeOf(f.Name))})
		case release.IsSchema(f.Name):
			b.Sources = append(b.Sources, diag.Source{Name: f.Name, Text: f.Data})
		}
		if dir, ok := release.AssetsDir(f.Name); ok {
			if b.Assets == nil {
				b.Assets = map[string]*tree.Tree{}
			}
			b.Assets[dir] = f.Tree
		}
	}
	var err error
	if b.Schema, b.Refused, err = a.compile(b.Sources, !rel.Activated.IsZero()); err != nil {
		return nil, err
	}
	if declared := b.Schema.App; declared != "" && declared != b.App {
		return nil, fault.New(fault.Invalid, "the release is of app %q, and its schema declares app %q", b.App, declared)
	}
	if err := checkTrees(b, rel); err != nil {
		return nil, err
	}
	b.Secrets, err = a.Secrets(b.Schema.Secrets)
	return b, err
}

// treeIn returns the tree of the listing with that name; nil: there is none.
func treeIn(files []release.FileData, name string) *tree.Tree {
	for _, f := range files {
		if f.Name == name {
			return f.Tree
		}
	}
	return nil
}

// checkTrees refuses a stored release whose schema gives a module files that it does not have, or no files, or names other
// directories of assets than those that it has. Another program than runner deploy has made it. The module of handlers in
// Python has files without a block. The bundle may have the schema alone.
func checkTrees(b *runtime.Bundle, rel release.Release) error {
	declared := map[string]bool{}
	for i := range b.Schema.Assets {
		a := &b.Schema.Assets[i]
		name := release.AssetsOf(a.Dir)
		declared[name] = true
		if !slices.ContainsFunc(rel.Files, func(f release.File) bool { return f.Name == name }) {
			return fault.New(fault.Invalid, "the schema has assets of the directory %q, and the release has no %s: deploy the app again", a.Dir, name)
		}
		if t := b.Assets[a.Dir]; t != nil && a.SPA != "" {
			if _, has := t.Lookup(a.SPA); !has {
				return fault.New(fault.Invalid, "%s of the release has no file %q, which spa: names: deploy the app again", name, a.SPA)
			}
		}
	}
	for _, f := range rel.Files {
		if _, is := release.AssetsDir(f.Name); is && !declared[f.Name] {
			return fault.New(fault.Invalid, "the release has %s, and the schema has no assets of that directory: deploy the app again", f.Name)
		}
	}
	for _, m := range b.Modules {
		block := b.Schema.Module(m.ShortName())
		given := block != nil && block.Files != ""
		switch {
		case given && m.Files == nil:
			return fault.New(fault.Invalid, "the schema gives module %s the directory %q, and the release has no %s: deploy the app again",
				block.Name, block.Files, release.TreeOf(m.Name))
		case !given && m.Files != nil && (block != nil || m.ShortName() != schema.PythonModule):
			return fault.New(fault.Invalid, "the release has %s, and the schema gives module %s no files: deploy the app again",
				release.TreeOf(m.Name), m.ShortName())
		}
	}
	return nil
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
		if m.Files != nil {
			files = append(files, release.FileData{Name: release.TreeOf(m.Name), Data: m.Files.Listing(), Tree: m.Files})
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(b.Assets)) {
		files = append(files, release.FileData{Name: release.AssetsOf(dir), Data: b.Assets[dir].Listing(), Tree: b.Assets[dir]})
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
	_, err := runtime.CheckModules(ctx, a.SandboxOptions(""), b)
	return err
}
