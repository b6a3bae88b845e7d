package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/node/app"
	"runner.example/schema/compiler"
	"runner.example/sdk/assemblyscript"
	clang "runner.example/sdk/c"
	golang "runner.example/sdk/go"
	"runner.example/sdk/rust"
)

// templates are the apps that Create creates. A file named gitignore becomes .gitignore: it
// would not be embedded under that name. A file *.tmpl has a name that the Go toolchain
// would interpret here.
//
//go:embed template
var templates embed.FS

// language is a language in which Create creates an app.
type language struct {
	name string
	// parts are the directories of template with the files of the app.
	parts []string
	// sdk are files that are copied to the app's directory sdk/<sdkName>, or nil.
	sdk     fs.FS
	sdkName string
	// types is the one of app.TypeLanguages whose types of the schema the app has for editors, or empty.
	types string
	// first is the command to type before the first build, if any.
	first string
}

var languages = []language{
	{name: "ts", parts: []string{"common", "ts"}, types: "ts"},
	{name: "python", parts: []string{"common", "python"}, types: "python"},
	{name: "go", parts: []string{"common", "go"}, sdk: golang.Source, sdkName: "go"},
	{name: "rust", parts: []string{"common", "rust"}, sdk: rust.Crate, sdkName: "rust"},
	{name: "c", parts: []string{"common", "c"}, sdk: clang.Files, sdkName: "c"},
	{
		name: "as", parts: []string{"common", "as"}, sdk: assemblyscript.Package, sdkName: "assemblyscript",
		first: "npm install --prefix handlers/greetings; ",
	},
	{name: "nim", parts: []string{"common", "nim"}},
}

// Languages returns the names of the languages in which Create creates an app.
func Languages() (names []string) {
	for _, l := range languages {
		names = append(names, l.name)
	}
	return names
}

// Created says what Create has done.
type Created struct {
	// Written are the paths of the new files.
	Written []string
	// Kept are the paths of files that existed, with what the user must know then.
	Kept []string
	// First is the command to type before the first build, or empty.
	First string
}

// Create writes a complete small app to the directory dir, which it creates if needed. It
// overwrites nothing. lang is one of Languages.
func Create(dir, lang string) (done Created, err error) {
	i := slices.IndexFunc(languages, func(l language) bool { return l.name == lang })
	if i < 0 {
		return done, fmt.Errorf("unknown language %q", lang)
	}
	l := &languages[i]
	name, err := appName(dir)
	if err != nil {
		return done, err
	}
	files, err := l.appFiles(name)
	if err != nil {
		return done, err
	}
	if err := checkEmpty(dir, files); err != nil {
		return done, err
	}
	done.First = l.first
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if _, err := os.Lstat(path); err == nil { // it is kept
			done.Kept = append(done.Kept, path+kept[f.Name])
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return done, fmt.Errorf("create the app: %w", err)
		}
		if err := os.WriteFile(path, f.Text, 0o644); err != nil {
			return done, fmt.Errorf("create the app: %w", err)
		}
		done.Written = append(done.Written, path)
	}
	return done, nil
}

// kept are files that are kept if the directory has them, with what the user must know
// then.
var kept = map[string]string{"README.md": "", ".gitignore": ": data/ and build/ belong in it"}

// checkEmpty returns an error if the directory has files that do not belong to a new app.
func checkEmpty(dir string, files []app.File) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create the app: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		_, stays := kept[name]
		if !stays && (filepath.Ext(name) == ".schema" || slices.ContainsFunc(files, func(f app.File) bool {
			top, _, _ := strings.Cut(f.Name, "/")
			return top == name
		})) {
			return console.Invalid("directory %q already contains %s: choose another one", dir, name)
		}
	}
	return nil
}

// appFiles returns the files of an app with that name.
func (l *language) appFiles(name string) (files []app.File, err error) {
	for _, part := range l.parts {
		if files, err = appendFiles(files, templates, "template/"+part, ""); err != nil {
			return nil, err
		}
	}
	for i := range files {
		f := &files[i]
		f.Name = strings.TrimSuffix(f.Name, ".tmpl")
		switch f.Name {
		case "gitignore":
			f.Name = ".gitignore"
		case "app.schema":
			f.Name = name + ".schema"
			f.Text = bytes.ReplaceAll(f.Text, []byte("app hello\n"), []byte("app "+name+"\n"))
			f.Text = bytes.ReplaceAll(f.Text, []byte(`"hello.greetings"`), []byte(`"`+name+`.greetings"`))
		case "README.md":
			f.Text = bytes.ReplaceAll(f.Text, []byte("# hello\n"), []byte("# "+name+"\n"))
			f.Text = bytes.ReplaceAll(f.Text, []byte("hello.schema"), []byte(name+".schema"))
		}
	}
	switch {
	case l.sdk != nil:
		return appendFiles(files, l.sdk, ".", "sdk/"+l.sdkName+"/")
	case l.types == "":
		return files, nil
	}
	types, err := typesOf(files, l.types)
	return append(files, types...), err
}

// appendFiles adds the files below a directory. It omits the tests of SDKs and files that
// only these tests need. Tests of templates are kept.
func appendFiles(files []app.File, from fs.FS, root, prefix string) ([]app.File, error) {
	err := fs.WalkDir(from, root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case prefix != "" && (d.Name() == "testdata" && d.IsDir()):
			return fs.SkipDir
		case d.IsDir() || prefix != "" && (strings.HasSuffix(path, "_test.go") || path == "source.go"):
			return nil
		}
		text, err := fs.ReadFile(from, path)
		files = append(files, app.File{Name: prefix + strings.TrimPrefix(strings.TrimPrefix(path, root), "/"), Text: text})
		return err
	})
	return files, err
}

// typesOf returns the files of the directory types of a new app, for one of app.TypeLanguages.
func typesOf(files []app.File, language string) ([]app.File, error) {
	for _, f := range files {
		if !strings.HasSuffix(f.Name, ".schema") {
			continue
		}
		s, found := compiler.Compile([]diag.Source{{Name: f.Name, Text: f.Text}}, compiler.Options{})
		if s == nil {
			panic("BUG: the schema of a new app: " + found.Sorted()[0].String())
		}
		return app.TypeFiles(language, s)
	}
	return nil, nil
}

// appName returns the directory's name as a valid name of an app.
func appName(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	name := strings.Trim(notInAppNames.ReplaceAllString(filepath.Base(path), "_"), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "app_" + name
	}
	return strings.Trim(name, "_"), nil
}

var notInAppNames = regexp.MustCompile(`[^A-Za-z0-9_]+`)
