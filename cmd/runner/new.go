package main

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

	"github.com/spf13/cobra"

	"runner.example/app"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/schema/compiler"
	"runner.example/sdk/assemblyscript"
	clang "runner.example/sdk/c"
	golang "runner.example/sdk/go"
	"runner.example/sdk/rust"
)

const newHelp = `Create a directory with a complete small app: a schema, handlers, settings, a test, and a
README.md that says how to run them. The directory may contain other files, such as .git:
nothing is overwritten, and an existing README.md or .gitignore is kept.

  --lang ts     TypeScript, which the runner builds itself
  --lang go     Go, with its toolchain
  --lang rust   Rust, with cargo
  --lang c      C, with clang
  --lang as     AssemblyScript, with Node.js and npm

The SDK of a language with a toolchain is copied into the directory sdk. For TypeScript there
are types for editors in the directory types.`

// templates are the apps that new creates. A file named gitignore becomes .gitignore: it
// would not be embedded under that name. A file *.tmpl has a name that the Go toolchain
// would interpret here.
//
//go:embed template
var templates embed.FS

// language is a language in which new creates an app.
type language struct {
	name string
	// parts are the directories of template with the files of the app.
	parts []string
	// sdk are files that are copied to the app's directory sdk/<sdkName>, or nil.
	sdk     fs.FS
	sdkName string
	// first is the command to type before the first build, if any.
	first string
}

var languages = []language{
	{name: "ts", parts: []string{"common", "ts", "asked"}},
	{name: "go", parts: []string{"common", "go"}, sdk: golang.Source, sdkName: "go"},
	{name: "rust", parts: []string{"common", "rust"}, sdk: rust.Crate, sdkName: "rust"},
	{name: "c", parts: []string{"common", "c"}, sdk: clang.Headers, sdkName: "c"},
	{name: "as", parts: []string{"common", "as", "asked"}, sdk: assemblyscript.Package, sdkName: "assemblyscript", first: "npm install --prefix handlers/greetings; "},
}

func newCommand(c *cli) *cobra.Command {
	var lang string
	var names []string
	for _, l := range languages {
		names = append(names, l.name)
	}
	cmd := &cobra.Command{
		Use:   "new <dir>",
		Short: "create a small app",
		Long:  newHelp,
		Args:  exactlyOne("the directory to create"),
		RunE: func(_ *cobra.Command, args []string) error {
			c.writesApp()
			i := slices.IndexFunc(languages, func(l language) bool { return l.name == lang })
			if i < 0 {
				return console.Misused("runner new: --lang %s: it is one of %s%s", lang, strings.Join(names, ", "), diag.DidYouMean(lang, names))
			}
			return c.createApp(args[0], &languages[i])
		},
	}
	cmd.Flags().StringVar(&lang, "lang", "ts", "language of the handlers: "+strings.Join(names, ", "))
	completeFlag(cmd, "lang", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// createApp writes the app and prints the files.
func (c *cli) createApp(dir string, l *language) error {
	if dir == "" {
		return console.Invalid("runner new: the directory must not be empty")
	}
	name, err := appName(dir)
	if err != nil {
		return err
	}
	files, err := l.appFiles(name)
	if err != nil {
		return err
	}
	if err := checkEmpty(dir, files); err != nil {
		return err
	}
	var written []string
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if _, err := os.Lstat(path); err == nil { // it is kept
			c.Say("", "kept "+path+kept[f.Name])
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("create the app: %w", err)
		}
		if err := os.WriteFile(path, f.Text, 0o644); err != nil {
			return fmt.Errorf("create the app: %w", err)
		}
		written = append(written, path)
	}
	if c.JSON {
		err = c.PrintJSON(written)
	} else {
		err = c.Print(strings.Join(written, "\n") + "\n")
	}
	first := l.first + "runner dev"
	if filepath.Clean(dir) != "." {
		first = "cd " + shellWord(dir) + ", then: " + first
	}
	c.Say("hint: ", first+"; see README.md")
	return err
}

// kept are files that are kept if the directory has them, with what the user must know
// then.
var kept = map[string]string{"README.md": "", ".gitignore": ": data/ and build/ belong in it"}

// checkEmpty refuses a directory whose files a new app would mix with.
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
	if l.sdk != nil {
		return appendFiles(files, l.sdk, ".", "sdk/"+l.sdkName+"/")
	}
	types, err := typesOf(files)
	return append(files, types...), err
}

// appendFiles adds the files below a directory. It leaves out the tests of SDKs, and what
// only these need; tests of templates are kept.
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

// typesOf returns the files of the directory types of a new app.
func typesOf(files []app.File) ([]app.File, error) {
	for _, f := range files {
		if !strings.HasSuffix(f.Name, ".schema") {
			continue
		}
		s, found := compiler.Compile([]diag.Source{{Name: f.Name, Text: f.Text}}, compiler.Options{})
		if s == nil {
			panic("BUG: the schema of a new app: " + found.Sorted()[0].String())
		}
		return app.TypeFiles(s)
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
