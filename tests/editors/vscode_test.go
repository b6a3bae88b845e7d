package editors_test

import (
	"archive/zip"
	"encoding/json"
	"encoding/xml"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
	"runner.example/tests/harness"
)

// manifest is what the tests read of package.json.
type manifest struct {
	Main, Version, Publisher, Name string
	Engines                        struct{ VSCode string }
	Contributes                    struct {
		Languages             []struct{ ID, Configuration string }
		Grammars              []struct{ Language, ScopeName, Path string }
		Snippets              []struct{ Language, Path string }
		Commands              []struct{ Command, Title string }
		Configuration         struct{ Properties map[string]any }
		ConfigurationDefaults map[string]any
	}
}

func readManifest(t *testing.T, path string) (m manifest) {
	t.Helper()
	readJSON(t, path, &m)
	return m
}

func readJSON(t *testing.T, path string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(harness.MustRead(t, path)), to); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// unpackExtension makes the archive and unpacks it.
func unpackExtension(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	archive := filepath.Join(dir, "runner.vsix")
	if out, err := exec.Command(harness.RepoFile("tools/vsix.sh"), archive).CombinedOutput(); err != nil {
		t.Fatalf("tools/vsix.sh: %v\n%s", err, out)
	}
	packed, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	for _, file := range packed.File {
		from, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(file.Name))
		if err := errorsOf(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func errorsOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// The archive has what VS Code reads: the manifest of the archive, that of the extension, and the files that they name.
func TestTheExtensionIsComplete(t *testing.T) {
	dir := unpackExtension(t)
	has := func(name, from string) {
		t.Helper()
		if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err != nil || info.Size() == 0 {
			t.Errorf("%s names %s: %v", from, name, err)
		}
	}
	var outer struct {
		Metadata struct {
			Identity struct {
				ID        string `xml:"Id,attr"`
				Version   string `xml:"Version,attr"`
				Publisher string `xml:"Publisher,attr"`
			}
			License    string
			Properties struct {
				Property []struct {
					ID    string `xml:"Id,attr"`
					Value string `xml:"Value,attr"`
				}
			}
		}
		Assets struct {
			Asset []struct {
				Path string `xml:",attr"`
			}
		}
	}
	if err := xml.Unmarshal([]byte(harness.MustRead(t, filepath.Join(dir, "extension.vsixmanifest"))), &outer); err != nil {
		t.Fatal(err)
	}
	m := readManifest(t, filepath.Join(dir, "extension/package.json"))
	id := outer.Metadata.Identity
	if id.ID != m.Name || id.Version != m.Version || id.Publisher != m.Publisher || !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(m.Version) {
		t.Errorf("the archive is %+v, and package.json %s %s of %s", id, m.Name, m.Version, m.Publisher)
	}
	if p := outer.Metadata.Properties.Property; len(p) == 0 || p[0].Value != m.Engines.VSCode || m.Engines.VSCode == "" {
		t.Errorf("properties: %v, want the engine %s", p, m.Engines.VSCode)
	}
	for _, asset := range outer.Assets.Asset {
		has(asset.Path, "the archive")
	}
	has(outer.Metadata.License, "the archive")
	has("extension/"+m.Main, "package.json")
	for _, l := range m.Contributes.Languages {
		has("extension/"+l.Configuration, "package.json")
	}
	for _, g := range m.Contributes.Grammars {
		has("extension/"+g.Path, "package.json")
		var grammar struct{ ScopeName string }
		if readJSON(t, filepath.Join(dir, "extension", g.Path), &grammar); grammar.ScopeName != g.ScopeName {
			t.Errorf("package.json names the scope %s, and the grammar is %s", g.ScopeName, grammar.ScopeName)
		}
	}
	for _, s := range m.Contributes.Snippets {
		var snippets map[string]struct{ Prefix string }
		if readJSON(t, filepath.Join(dir, "extension", s.Path), &snippets); len(snippets) == 0 {
			t.Errorf("%s has no snippet", s.Path)
		}
	}
	var types struct {
		Default []struct {
			Extension string `xml:",attr"`
		}
		Override []struct {
			PartName string `xml:",attr"`
		}
	}
	if err := xml.Unmarshal([]byte(harness.MustRead(t, filepath.Join(dir, "[Content_Types].xml"))), &types); err != nil {
		t.Fatal(err)
	}
	err := fs.WalkDir(os.DirFS(filepath.Join(dir)), "extension", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		known := slices.ContainsFunc(types.Default, func(e struct {
			Extension string `xml:",attr"`
		}) bool {
			return filepath.Ext(name) == "."+e.Extension
		}) || slices.ContainsFunc(types.Override, func(o struct {
			PartName string `xml:",attr"`
		}) bool {
			return o.PartName == "/"+name
		})
		if !known {
			t.Errorf("[Content_Types].xml does not have the type of %s", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	// Node reads the code, in which the client of the language server is. The module vscode is only in VS Code.
	main := filepath.Join(dir, "extension", m.Main)
	if out, err := exec.Command("node", "--check", main).CombinedOutput(); err != nil {
		t.Errorf("node --check: %v\n%s", err, out)
	}
	out, err := exec.Command("node", main).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Cannot find module 'vscode'") {
		t.Errorf("the only module that Node does not find is vscode: %v\n%s", err, out)
	}
}

// The commands, languages and settings of the code are those of package.json.
func TestTheExtensionRegistersItsCommands(t *testing.T) {
	m := readManifest(t, harness.RepoFile("editors/vscode/package.json"))
	code := harness.MustRead(t, harness.RepoFile("editors/vscode/extension.js"))
	var declared, registered []string
	for _, c := range m.Contributes.Commands {
		declared = append(declared, c.Command)
	}
	for _, match := range regexp.MustCompile(`registerCommand\("([^"]+)"`).FindAllStringSubmatch(code, -1) {
		registered = append(registered, match[1])
	}
	slices.Sort(declared)
	slices.Sort(registered)
	if len(declared) < 2 || !slices.Equal(declared, registered) {
		t.Errorf("package.json declares %v, and the code registers %v", declared, registered)
	}
	if m.Contributes.Configuration.Properties["runner.path"] == nil || !strings.Contains(code, `getConfiguration("runner").get("path"`) {
		t.Errorf("the setting runner.path is not declared or not read")
	}
	if id := m.Contributes.Languages[0].ID; m.Contributes.Grammars[0].Language != id || !strings.Contains(code, `language: "`+id+`"`) ||
		m.Contributes.ConfigurationDefaults["["+id+"]"] == nil {
		t.Errorf("the language %s is not that of the grammar, the client and the defaults", id)
	}
}

// The code uses the interfaces of VS Code and of the client as their types declare them.
func TestTheTypesOfTheExtensionAreRight(t *testing.T) {
	packages, err := exec.Command(harness.RepoFile("tools/fetch-vscode-packages.sh")).Output()
	if err != nil {
		t.Fatalf("tools/fetch-vscode-packages.sh: %v", err)
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(strings.TrimSpace(string(packages)), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"extension.js", "testcalls.js", "tsconfig.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(harness.MustRead(t, harness.RepoFile("editors/vscode/"+name))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out := harness.CompileTypeScript(t, dir); out != "" {
		t.Error(out)
	}
}

// What a snippet of the schema language inserts has no syntax error.
func TestTheSnippetsAreValid(t *testing.T) {
	var snippets map[string]struct {
		Prefix string
		Body   json.RawMessage
	}
	readJSON(t, harness.RepoFile("editors/vscode/snippets/schema.json"), &snippets)
	for name, s := range snippets {
		var lines []string
		if err := json.Unmarshal(s.Body, &lines); err != nil {
			lines = []string{""}
			if err := json.Unmarshal(s.Body, &lines[0]); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		text := regexp.MustCompile(`\$\{\d:([^}]*)\}`).ReplaceAllString(strings.Join(lines, "\n"), "$1")
		if s.Prefix == "scope" {
			text = "apiKeys { scopes: { " + text + " } }"
		}
		if file, found := syntax.Parse(diag.Source{Name: name, Text: []byte(text)}); found.HasErrors() || len(file.Decls) != 1 {
			t.Errorf("%s inserts\n%s\n%v", name, text, found)
		}
	}
}

func TestTheExtensionFindsTests(t *testing.T) {
	const file = `import { test } from "@runner/test";
test("a \"quoted\" name", async () => {});
  test.only('it\'s', () => {});
test(
  ` + "`plain`" + `, () => {});
test(` + "`computed ${n}`" + `, () => {});
test.each([1])("each %d", () => {});
latest("other", 1);
test("not closed
// test("a comment", () => {});
`
	cmd := exec.Command("node", "-e", `
		const { testsOf } = require(process.argv[1]);
		const text = require("node:fs").readFileSync(0, "utf8");
		for (const { at, name } of testsOf(text)) console.log(text.slice(0, at).split("\n").length + ": " + name);`,
		harness.RepoFile("editors/vscode/testcalls.js"))
	cmd.Stdin = strings.NewReader(file)
	out, err := cmd.CombinedOutput()
	if want := "2: a \"quoted\" name\n3: it's\n4: plain\n"; err != nil || string(out) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}

// The lock file is the same for every registry.
func TestTheLockFileNamesNoRegistry(t *testing.T) {
	lock := harness.MustRead(t, harness.RepoFile("editors/vscode/package-lock.json"))
	if strings.Contains(lock, `"resolved"`) || !strings.Contains(lock, `"integrity"`) {
		t.Error("editors/vscode/package-lock.json: remove the members resolved, and keep those of integrity")
	}
}
