package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runner.example/schema"
	"runner.example/schema/generate"
	"runner.example/sdk/typescript"
)

// File is a file of an app; its name has slashes and is relative to the app directory.
type File struct {
	Name string
	Text []byte
}

// WriteTypes writes the directory types of an app, and returns its files. Files that are up to
// date are not touched.
func WriteTypes(dir string, s *schema.Schema) (written []string, err error) {
	files, err := TypeFiles(s)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := WriteIfChanged(path, f.Text); err != nil {
			return nil, err
		}
		written = append(written, path)
	}
	return written, nil
}

// TypeFiles returns the files of the directory types.
func TypeFiles(s *schema.Schema) (files []File, err error) {
	files = append(files, File{"types/schema.d.ts", generate.TypeScript(s)})
	for _, name := range []string{"sdk", "globals"} {
		text, err := typescript.Declarations.ReadFile(strings.Replace(name, "sdk", "index", 1) + ".d.ts")
		if err != nil {
			return nil, err
		}
		files = append(files, File{"types/runner-" + name + ".d.ts", text})
	}
	return files, nil
}

// RefreshTypes writes the directory types of an app with handlers in TypeScript, or in JavaScript
// with a configuration of a type checker.
func RefreshTypes(dir string, s *schema.Schema) error {
	entries, err := os.ReadDir(filepath.Join(dir, "handlers"))
	if err != nil {
		return nil // no handlers
	}
	wanted := slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return slices.Contains([]string{".ts", ".mts", ".cts", ".tsx"}, filepath.Ext(e.Name()))
	})
	for _, config := range []string{"tsconfig.json", "jsconfig.json"} {
		if _, err := os.Stat(filepath.Join(dir, config)); err == nil {
			wanted = true
		}
	}
	if !wanted {
		return nil
	}
	_, err = WriteTypes(dir, s)
	return err
}
