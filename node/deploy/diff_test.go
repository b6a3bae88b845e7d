package deploy_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/tree"
	"runner.example/node/admin"
	"runner.example/node/deploy"
	"runner.example/node/release"
)

// version returns a release with a schema and modules ("name bytes").
func version(id, schema string, modules ...string) admin.ReleaseSources {
	v := admin.ReleaseSources{Release: release.Release{ID: id}, Sources: []diag.Source{{Name: "app.schema", Text: []byte(schema)}}}
	for _, m := range modules {
		v.Files = append(v.Files, release.File{Name: "build/" + m[:1] + ".wasm", Size: int64(len(m)), Digest: sha256.Sum256([]byte(m))})
	}
	return v
}

// lines returns the changes as text: one line for each property, or for each change without one.
func lines(d deploy.Difference) string {
	var all []string
	for _, c := range d.Changes {
		line := c.Change + " " + c.Kind + " " + c.Name
		if len(c.Properties) == 0 {
			all = append(all, line)
		}
		for _, p := range c.Properties {
			all = append(all, fmt.Sprintf("%s: %s: %q → %q", line, p.Name, p.Before, p.After))
		}
	}
	return strings.Join(all, "\n")
}

const entities = "entity Order { id: id  total: int }\n"

const scopes = "apiKeys { scopes: { reader: @system(\"reader\") { @grant read on Order } } }\n"

func TestADifferenceNamesEachChange(t *testing.T) {
	scoped := func(text string) string {
		return entities + text + "routes(\"/\", auth: apiKey(reader)) { GET /a -> a }\n"
	}
	route := func(settings string) string {
		return entities + scopes + "secret HOOK\ntype In { a: int }\nroutes(\"/v1\", auth: none) { GET /a -> a  POST /b -> b (" + settings + ") }\n"
	}
	for _, tt := range []struct{ name, before, after, want string }{
		{"nothing", entities, entities, ""},
		{
			"layout, comments and order", "entity A { id: id, n: int }\nentity B { id: id }\n",
			"// new\nentity B { id: id }\n/// Doc.\nentity A {\n  id: id // a, b\n  n:   int\n}\n", "",
		},
		{"a file becomes two declarations", entities, entities + "secret S\n", "added secret S"},
		{"a secret", "secret A\n", "secret B\n", "removed secret A\nadded secret B"},
		{"an origin", "", "outbound { allow: [\"https://a.example\"] }\n", "added outbound https://a.example"},
		{
			"a schedule of variables",
			entities + scopes + "var Z: string = \"Europe/Berlin\"\nvar C: string\njobs(retries: 1) { n() (as: reader, schedule: \"0 3 * * *\" in \"UTC\") }\n",
			entities + scopes + "var Z: string = \"Europe/Berlin\"\nvar C: string\njobs(retries: 1) { n() (as: reader, schedule: C in Z) }\n",
			`changed job n: schedule: "\"0 3 * * *\" in \"UTC\"" → "\"C\" in \"Z\""`,
		},
		{"the app", "app a\n", "app b\n", "removed app a\nadded app b"},
		{
			"an entity", "", entities,
			"added entity Order\nadded field Order.id: declared: \"\" → \"id\"\nadded field Order.total: declared: \"\" → \"int\"",
		},
		{"a type", entities, "entity Order { id: id  total: decimal(12,2) }\n", `changed field Order.total: declared: "int" → "decimal(12,2)"`},
		{"required", entities, "entity Order { id: id  total: int? }\n", `changed field Order.total: declared: "int" → "int?"`},
		{"a default", entities, "entity Order { id: id  total: int = 3 @min(1) }\n", `changed field Order.total: declared: "int" → "int = 3 @min(1)"`},
		{"a pattern with spaces", "entity A { id: id  s: string(0..9) @pattern(\"a b\") }\n", "entity A { id: id  s: string(0..9) @pattern(\"a  b\") }\n", `changed field A.s: declared: "string(0..9) @pattern(\"a b\")" → "string(0..9) @pattern(\"a  b\")"`},
		{"a removed field", "entity A { id: id  n: int }\n", "entity A { id: id }\n", `removed field A.n: declared: "int" → ""`},
		{"an index", "entity A { id: id  n: int }\n", "entity A { id: id  n: int  @@index(n, id desc) }\n", "added index A @@index(n, id desc)"},
		{
			"a policy", "entity A { id: id  n: int  @@allow read when n == 1 }\n", "entity A { id: id  n: int  @@allow read when n == 2 }\n",
			"removed policy A @@allow read when n == 1\nadded policy A @@allow read when n == 2",
		},
		{
			"a grant", scoped(scopes), scoped(strings.Replace(scopes, "read on Order", "read, insert on Order where total > 1", 1)),
			"removed grant reader @grant read on Order\nadded grant reader @grant read, insert on Order where total > 1",
		},
		{
			"who manages keys", scoped(scopes), scoped(strings.Replace(scopes, "@grant", `@manage when auth.kind == "session" @grant`, 1)),
			`changed scope reader: manage: "" → "auth.kind == \"session\""`,
		},
		{"a capability", scoped(scopes), scoped(strings.Replace(scopes, `"reader"`, `"other"`, 1)), `changed scope reader: system: "\"reader\"" → "\"other\""`},
		{"keys", scoped(scopes), scoped(strings.Replace(scopes, "{", "{ maxLifetime: 9d,", 1)), `added api keys maxLifetime: declared: "" → "9d"`},
		{
			"sessions", "", "auth { session cookie(\"__Host-s\") { idle: 1h } roles: [a, b] }\n",
			"added auth roles: declared: \"\" → \"[a, b]\"\nadded auth session cookie: declared: \"\" → \"session cookie(\\\"__Host-s\\\") { idle: 1h }\"",
		},
		{"an enum", "enum E { a, b }\n", "enum E { a, c }\n", "removed enum E.b\nadded enum E.c"},
		{"an input type", "type T { a: int }\n", "type T { a?: int }\n", `changed type T.a: declared: "int" → "int (may be absent)"`},
		{"auth", route("auth: none"), route("auth: apiKey(reader)"), `changed route POST /v1/b: auth: "none" → "apiKey(reader)"`},
		{"a limit", route("rateLimit: 1/minute"), route("rateLimit: [1/minute, 9/hour by ip]"), `changed route POST /v1/b: rateLimit: "1/minute" → "1/minute, 9/hour by ip"`},
		{"a body", route("body: 1kb"), route("body: 2mb"), `changed route POST /v1/b: body: "1kb" → "2mb"`},
		{"a timeout", route("timeout: 1s"), route("timeout: 1500ms"), `changed route POST /v1/b: timeout: "1s" → "1500ms"`},
		{"a stream", route("auth: none"), route("stream: 1m"), `changed route POST /v1/b: stream: "" → "1m"`},
		{
			"a live route", "routes(\"/\", auth: none) { GET /a -> a (live: 30m) }\n", "routes(\"/\", auth: none) { GET /a -> a (live: 90s) }\n",
			`changed route GET /a: live: "30m" → "90s"`,
		},
		{"a default timeout", route("timeout: 1s"), route("auth: none"), `changed route POST /v1/b: timeout: "1s" → ""`},
		{"cors", route("auth: none"), route("cors: [\"https://a.example\"]"), `changed route POST /v1/b: cors: "" → "https://a.example"`},
		{"as", route("auth: none"), route("as: reader"), `changed route POST /v1/b: as: "" → "reader"`},
		{"an input", route("auth: none"), route("input: In"), `changed route POST /v1/b: input: "" → "In"`},
		{
			"a signature", route("verify: webhook(standard, HOOK)"), route("verify: webhook(stripe, HOOK, tolerance: 5m)"),
			`changed route POST /v1/b: verify: "webhook(standard, HOOK)" → "webhook(stripe, HOOK, tolerance: 5m)"`,
		},
		{
			"a handler", "routes(\"/\", auth: none) { GET /a -> a }\n", "routes(\"/\", auth: none) { GET /a -> b }\n",
			`changed route GET /a: handler: "a" → "b"`,
		},
		{
			"a setting of the group", "routes(\"/\", auth: none, timeout: 1s) { GET /a -> a }\n", "routes(\"/\", auth: none, timeout: 2s) { GET /a -> a }\n",
			`changed route GET /a: timeout: "1s" → "2s"`,
		},
		{
			"a function", "functions(auth: none) { @expose f(a: int) -> int }\n", "functions(auth: none) { @expose f(a: int, b: string?) -> bool }\n",
			"changed function f: parameters: \"a: int\" → \"a: int, b: string?\"\nchanged function f: result: \"int\" → \"bool\"",
		},
	} {
		d, err := deploy.Compare(version("rel_a", tt.before), version("rel_b", tt.after))
		if err != nil {
			t.Errorf("%s: %v %v", tt.name, err, err.(*console.Problems).List)
			continue
		}
		if got := lines(d); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestADifferenceComparesModulesByTheirBytes(t *testing.T) {
	d, err := deploy.Compare(version("rel_a", "", "a 1", "b 1", "c"), version("rel_b", "", "a 1", "b 2", "d"))
	if err != nil {
		t.Fatal(err)
	}
	got := lines(d)
	for _, want := range []string{"changed module build/b.wasm: sha256:", "removed module build/c.wasm: size: \"1 byte\"", "added module build/d.wasm"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
	if strings.Contains(got, "a.wasm") || strings.Contains(got, "build/b.wasm: size") {
		t.Error(got)
	}
}

func TestADifferenceFromNoReleaseAddsEverything(t *testing.T) {
	d, err := deploy.Compare(admin.ReleaseSources{}, version("rel_b", entities))
	if err != nil || len(d.Changes) != 3 {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := deploy.Compare(admin.ReleaseSources{}, version("rel_b", "entity {")); err == nil {
		t.Error("a schema with errors was compared")
	}
}

func TestADifferenceNamesTheFilesOfModules(t *testing.T) {
	with := func(id, settings string, contents map[string]string) admin.ReleaseSources {
		v := version(id, "module a { files: \"lib\""+settings+" }\n", "a")
		if contents == nil {
			return v
		}
		var files []tree.File
		for path, content := range contents {
			files = append(files, tree.File{Path: path, Size: int64(len(content)), SHA256: sha256.Sum256([]byte(content))})
		}
		made, err := tree.New(files, nil)
		if err != nil {
			t.Fatal(err)
		}
		v.Files = append(v.Files, release.File{Name: "build/a.tree", Size: 1, Digest: made.Digest()})
		v.Listings = map[string][]tree.File{"build/a.tree": made.List()}
		return v
	}
	many := map[string]string{"kept": "x"}
	for i := range 30 {
		many[fmt.Sprint("f", i)] = "12345"
	}
	print := func(before, after admin.ReleaseSources) string {
		t.Helper()
		d, err := deploy.Compare(before, after)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := d.Print(&console.Console{Stdout: &out, Stderr: io.Discard}); err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(", [0-9a-f]{64}").ReplaceAllString(out.String(), "")
	}
	base := map[string]string{"same": "a", "changed": "b", "gone": "c", "\xff": "d"}
	got := print(with("rel_a", ", args: [\"-v\"]", base), with("rel_b", ", args: [\"-m\", \"x\"], env: { A: \"b c\" }, startTimeout: 90s, stub: [\"s\"]",
		map[string]string{"same": "a", "changed": "bb", "\xff": "e", "new/x\n": ""}))
	const want = `from rel_a to rel_b
module
  ~ build/a.wasm
      args: "-v" → "-m" "x"
      env: not set → A="b c"
      startTimeout: not set → 90s
      stub: not set → "s"
      files: 4 files, 4 bytes → 4 files, 4 bytes
file
  ~ build/a.wasm "\xff"
  + build/a.wasm "new/x\n"  size: 0 bytes
  ~ build/a.wasm changed  size: 1 byte → 2 bytes
  - build/a.wasm gone  size: 1 byte
`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := print(with("rel_a", "", map[string]string{"kept": "x"}), with("rel_b", "", many)); strings.Count(got, "+ build/a.wasm f") != 20 ||
		!strings.Contains(got, "\n  … and 10 files more; --json lists all\n") {
		t.Error(got)
	}
	// A tree that one of them does not have is one line.
	if got := print(version("rel_a", "", "a"), with("rel_b", "", many)); strings.Contains(got, "\nfile\n") || !strings.Contains(got, "directory: not set → lib") ||
		!strings.Contains(got, "files: not set → 31 files, 151 bytes") {
		t.Error(got)
	}
}

func TestADifferenceNamesTheFilesOfAssets(t *testing.T) {
	with := func(id, settings string, contents map[string]string) admin.ReleaseSources {
		v := version(id, "assets(\"/app\", dir: \"web/dist\""+settings+")\n", "a")
		var files []tree.File
		for path, content := range contents {
			files = append(files, tree.File{Path: path, Size: int64(len(content)), SHA256: sha256.Sum256([]byte(content))})
		}
		made, err := tree.New(files, nil)
		if err != nil {
			t.Fatal(err)
		}
		v.Files = append(v.Files, release.File{Name: "assets/web/dist.tree", Size: 1, Digest: made.Digest()})
		v.Listings = map[string][]tree.File{"assets/web/dist.tree": made.List()}
		return v
	}
	d, err := deploy.Compare(with("rel_a", "", map[string]string{"same": "a", "index.html": "b"}),
		with("rel_b", `, spa: "index.html", rateLimit: 5/second by ip, headers: { "X-A": "b", "Referrer-Policy": "" }`, map[string]string{"same": "a", "index.html": "bb", "new.js": ""}))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := d.Print(&console.Console{Stdout: &out, Stderr: io.Discard}); err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(", [0-9a-f]{64}").ReplaceAllString(out.String(), "")
	const want = `from rel_a to rel_b
assets
  ~ /app
      rateLimit: not set → 5/second by ip
      spa: not set → index.html
      headers: not set → X-A: b, Referrer-Policy: 
      files: 2 files, 2 bytes → 3 files, 3 bytes
file
  ~ web/dist/index.html  size: 1 byte → 2 bytes
  + web/dist/new.js  size: 0 bytes
`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestADifferenceIsPrintedWithMarks(t *testing.T) {
	d, err := deploy.Compare(
		version("rel_a", "secret A\nroutes(\"/\", auth: none) { GET /a -> a (timeout: 1s)  GET /b -> b }\n"),
		version("rel_b", "secret B\nroutes(\"/\", auth: none) { GET /a -> a (timeout: 2s, body: 1kb)  GET /b -> c }\n"))
	if err != nil {
		t.Fatal(err)
	}
	d.Notes = []string{"rows were not compared"}
	const want = `from rel_a to rel_b
route
  ~ GET /a
      body: not set → 1kb
      timeout: 1s → 2s
  ~ GET /b  handler: b → c
secret
  - A
  + B
`
	for _, color := range []bool{false, true} {
		var out, errs strings.Builder
		if err := d.Print(&console.Console{Stdout: &out, Stderr: &errs, ColorOut: color}); err != nil {
			t.Fatal(err)
		}
		got := out.String()
		if colored := strings.Contains(got, "\x1b[32m+ B\x1b[0m"); colored != color {
			t.Errorf("colours %v: %q", color, got)
		}
		for _, code := range []string{"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"} {
			got = strings.ReplaceAll(got, code, "")
		}
		if got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		if errs.String() != "runner: rows were not compared\n" {
			t.Errorf("stderr: %s", errs.String())
		}
	}
}
