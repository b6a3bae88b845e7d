package python

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"runner.example/internal/diag"
	"runner.example/internal/tree"
	sdk "runner.example/sdk/python"
)

// PackagesDir is the directory of an app with installed packages, and requirements the file that names them.
const (
	PackagesDir  = "python_packages"
	requirements = "handlers/requirements.txt"
)

// cacheName is the directory in which Python itself keeps bytecode.
const cacheName = "__pycache__"

// collect reads all files of the module but the bytecode.
func (b *builder) collect(ctx context.Context) (err error) {
	if err := b.addSDK(); err != nil {
		return err
	}
	if b.files["schema.json"], err = schemaFile(b.options.Schema); err != nil {
		return err
	}
	b.addHandlers()
	if err := b.install(ctx); err != nil || b.found.HasErrors() {
		return err
	}
	return b.addPackages()
}

// addSDK adds the program and the package runner.
func (b *builder) addSDK() error {
	return fs.WalkDir(sdk.Files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == cacheName:
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		b.files[name], err = sdk.Files.ReadFile(name)
		return err
	})
}

// addHandlers adds the app's directory handlers: its sources in Python, and data.
func (b *builder) addHandlers() {
	b.addDir("handlers", "handlers", func(name string, d fs.DirEntry) bool {
		own := path.Dir(name) == "handlers"
		return strings.HasPrefix(d.Name(), ".") || d.Name() == cacheName || d.Name() == "node_modules" ||
			name == requirements || own && b.options.Other(d.Name())
	})
}

// addDir adds the files of a directory of the app below another path in the module. Symbolic links to files are followed.
// skip says which files and directories are left out. What cannot be read is an error in the list.
func (b *builder) addDir(dir, to string, skip func(name string, d fs.DirEntry) bool) {
	root := filepath.Join(b.options.Dir, dir) + string(filepath.Separator) // also follows a link to the directory
	_ = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, file)
		name := path.Join(dir, filepath.ToSlash(rel))
		refuse := func(format string, args ...any) {
			b.found.Errorf("", diag.Span{File: name}, format, args...)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist) && rel == ".":
			return fs.SkipAll
		case err != nil:
			refuse("cannot be read: %v", errors.Unwrap(err))
			return nil
		case rel == ".":
			return nil
		case skip(name, d):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		info, err := os.Stat(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			refuse("is a symbolic link to a file that does not exist: remove it")
		case err != nil:
			refuse("cannot be read: %v", errors.Unwrap(err))
		case info.IsDir():
			refuse("is a symbolic link to a directory, which is not followed: copy the directory")
		case !info.Mode().IsRegular():
			refuse("is neither a file nor a directory: remove it")
		case info.Size() > tree.MaxFileBytes:
			refuse("has more than %d bytes, which is the limit of a file of a module", tree.MaxFileBytes)
		default:
			content, err := os.ReadFile(file)
			if err != nil {
				refuse("cannot be read: %v", errors.Unwrap(err))
				return nil
			}
			b.files[path.Join(to, filepath.ToSlash(rel))] = content
		}
		return nil
	})
}

// addPackages adds the installed packages without their machine code.
func (b *builder) addPackages() error {
	before := len(b.found)
	b.addDir(PackagesDir, "packages", func(name string, d fs.DirEntry) bool {
		own := path.Dir(name) == PackagesDir // pip puts scripts into bin
		return d.Name() == cacheName || own && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin")
	})
	if len(b.found) > before {
		return nil
	}
	if err := b.dropMachineCode(); err != nil {
		return err
	}
	for name := range b.files {
		if !strings.HasPrefix(name, "packages/") {
			continue
		}
		if top, _, _ := strings.Cut(strings.TrimPrefix(name, "packages/"), "/"); strings.TrimSuffix(top, ".py") == "runner" {
			return fmt.Errorf("%s/%s has the name of the SDK, which it would hide: remove it", PackagesDir, top)
		}
	}
	return nil
}
