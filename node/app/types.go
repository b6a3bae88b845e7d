package app

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runner.example/schema"
	"runner.example/schema/generate"
	"runner.example/sdk/python"
	"runner.example/sdk/typescript"
)

// File is a file of an app; its name has slashes and is relative to the app directory.
type File struct {
	Name string
	Text []byte
}

// TypeLanguages are the languages that have types, by the names that --lang has for them.
var TypeLanguages = []string{"ts", "python"}

// WriteTypes writes the types of an app for one of TypeLanguages into its directory types, and
// returns their files. Files that are up to date are not touched.
func WriteTypes(dir, language string, s *schema.Schema) (written []string, err error) {
	files, err := TypeFiles(language, s)
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

// TypeFiles returns the files of the directory types for one of TypeLanguages.
func TypeFiles(language string, s *schema.Schema) ([]File, error) {
	if language == "python" {
		return pythonTypes(s)
	}
	return typeScriptTypes(s)
}

func typeScriptTypes(s *schema.Schema) (files []File, err error) {
	files = append(files, File{"types/schema.d.ts", generate.TypeScript(s)})
	for _, name := range []string{"sdk", "globals", "test"} {
		text, err := typescript.Declarations.ReadFile(strings.Replace(name, "sdk", "index", 1) + ".d.ts")
		if err != nil {
			return nil, err
		}
		files = append(files, File{"types/runner-" + name + ".d.ts", text})
	}
	return files, nil
}

// pythonTypes are the package runner with stubs beside two of its modules.
func pythonTypes(s *schema.Schema) (files []File, err error) {
	types, functions := generate.Python(s)
	files = []File{{"types/runner/schema.pyi", types}, {"types/runner/_typed.pyi", functions}}
	return files, fs.WalkDir(python.Files, "runner", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := python.Files.ReadFile(path)
		files = append(files, File{"types/" + path, text})
		return err
	})
}

// LanguagesOfTypes returns those of TypeLanguages that an app has handlers in. JavaScript with a
// configuration of a type checker counts, and so does such a configuration for Python.
func LanguagesOfTypes(dir string) (languages []string) {
	entries, err := os.ReadDir(filepath.Join(dir, "handlers"))
	if err != nil {
		return nil // no handlers
	}
	for _, l := range []struct {
		name                string
		extensions, configs []string
	}{
		{"ts", []string{".ts", ".mts", ".cts", ".tsx"}, []string{"tsconfig.json", "jsconfig.json"}},
		{"python", []string{".py"}, []string{"pyrightconfig.json"}},
	} {
		wanted := slices.ContainsFunc(entries, func(e os.DirEntry) bool {
			return slices.Contains(l.extensions, filepath.Ext(e.Name()))
		})
		for _, config := range l.configs {
			if _, err := os.Stat(filepath.Join(dir, config)); err == nil {
				wanted = true
			}
		}
		if wanted {
			languages = append(languages, l.name)
		}
	}
	return languages
}

// RefreshTypes writes the types of an app for the languages of its handlers.
func RefreshTypes(dir string, s *schema.Schema) error {
	for _, language := range LanguagesOfTypes(dir) {
		if _, err := WriteTypes(dir, language, s); err != nil {
			return err
		}
	}
	return nil
}

// TypesAreCurrent reports whether the types in TypeScript of an app are those that RefreshTypes would write, or the app has none.
func TypesAreCurrent(dir string, s *schema.Schema) (bool, error) {
	if !slices.Contains(LanguagesOfTypes(dir), "ts") {
		return true, nil
	}
	files, err := typeScriptTypes(s)
	if err != nil {
		return false, err
	}
	for _, f := range files {
		if text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.Name))); err != nil || !bytes.Equal(text, f.Text) {
			return false, nil
		}
	}
	return true, nil
}
