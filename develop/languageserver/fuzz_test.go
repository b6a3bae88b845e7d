package languageserver_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"runner.example/internal/diag"
)

// examples are the schemas of the example apps, by their directory.
func examples(t testing.TB) map[string]map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../../plugins/examples/*/*.schema")
	if err != nil || len(paths) < 4 {
		t.Fatalf("%d examples, %v", len(paths), err)
	}
	apps := map[string]map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Base(filepath.Dir(path))
		if apps[dir] == nil {
			apps[dir] = map[string]string{}
		}
		apps[dir][filepath.Base(path)] = string(text)
	}
	apps["shop"] = map[string]string{"shop.schema": shop}
	return apps
}

// snippets are what people type and paste.
var snippets = []string{
	"{", "}", "(", ")", "[", "]", "@", "@@", "\"", "//", "/*", "*/", ":", ",", ".", "->", "==", "\n", " ", "\t", "é", "𝄞", "0", "9mb", "5m",
	"entity ", "entity X {\n  id: id\n}\n", "routes(\"/x\", auth: none) {\n", "GET /a -> b\n", "apiKey(", "@@allow read when ", "enum E { a, b }",
	"exists(Order where ", "auth.", "auth: ", "rateLimit: 6/minute", "when", "type ", "@grant read on ", "functions {", "jobs {", "not ", "old.",
}

// requests are all that asks about a place, with parameters beside it.
func (c *client) askEverything(name string, at position) {
	c.mu.Lock()
	present := c.published[name]
	c.mu.Unlock()
	doc := map[string]any{"uri": c.uri(name)}
	whole := span{position{0, 0}, position{100000, 0}}
	for method, more := range map[string]map[string]any{
		"textDocument/completion": nil, "textDocument/hover": nil, "textDocument/definition": nil, "textDocument/prepareRename": nil,
		"textDocument/references": {"context": map[string]any{"includeDeclaration": true}}, "textDocument/documentHighlight": nil,
		"textDocument/rename": {"newName": "renamed"}, "textDocument/documentSymbol": nil, "textDocument/foldingRange": nil,
		"textDocument/semanticTokens/full": nil, "textDocument/inlayHint": {"range": whole},
		"textDocument/formatting": {"options": map[string]any{"tabSize": 2, "insertSpaces": true}}, "workspace/symbol": {"query": "o"},
		"textDocument/codeAction": {"range": span{at, at}, "context": map[string]any{"diagnostics": present}},
	} {
		params := map[string]any{"textDocument": doc, "position": at}
		maps.Copy(params, more)
		a := c.answer(method, params)
		if a.Error != nil && a.Error.Code != -32803 { // a refusal of rename
			c.t.Errorf("%s at %v: %d %s", method, at, a.Error.Code, a.Error.Message)
		}
	}
}

// randomEdit returns an edit of a text, and the text after it.
func randomEdit(r *rand.Rand, text string) (map[string]any, string) {
	runes := []rune(text)
	from := r.IntN(len(runes) + 1)
	to, insert := from, snippets[r.IntN(len(snippets))]
	switch r.IntN(4) {
	case 0: // delete a few
		to, insert = min(len(runes), from+1+r.IntN(8)), ""
	case 1: // delete much, or replace it by a part of the text
		to = min(len(runes), from+r.IntN(200))
		if other := r.IntN(len(runes) + 1); r.IntN(2) == 0 {
			insert = string(runes[other:min(len(runes), other+r.IntN(100))])
		}
	}
	before, removed, after := string(runes[:from]), string(runes[from:to]), string(runes[to:])
	place := func(s string) position {
		return position{strings.Count(s, "\n"), utf16Len(s[strings.LastIndexByte(s, '\n')+1:])}
	}
	change := map[string]any{"range": span{place(before), place(before + removed)}, "text": insert}
	return change, before + insert + after
}

// expected are the diagnostics of `runner check` as an editor shows them.
func expected(dir string, files map[string]string) map[string][]string {
	var sources []diag.Source
	for name, text := range files {
		sources = append(sources, diag.Source{Name: name, Text: []byte(text)})
	}
	slices.SortFunc(sources, func(a, b diag.Source) int { return cmp.Compare(a.Name, b.Name) })
	want := map[string][]string{}
	for _, d := range check(dir, sources).Excerpt().Findings {
		line := ""
		if lines := strings.Split(files[d.Span.File], "\n"); d.Span.Start.Line > 0 {
			line = lines[d.Span.Start.Line-1]
		}
		column := 0
		if runes := []rune(line); d.Span.Start.Col > 0 {
			column = utf16Len(string(runes[:min(d.Span.Start.Col-1, len(runes))]))
		}
		want[d.Span.File] = append(want[d.Span.File], fmt.Sprintf("%d:%d %s %s", max(d.Span.Start.Line-1, 0), column, d.Code, d.Message))
	}
	return want
}

func shown(all map[string][]diagnostic) map[string][]string {
	got := map[string][]string{}
	for name, list := range all {
		for _, d := range list {
			got[name] = append(got[name], fmt.Sprintf("%d:%d %s %s", d.Range.Start.Line, d.Range.Start.Character, d.Code, d.Message))
		}
	}
	return got
}

// TestRandomEditsKeepTheServerRight edits the schemas of the examples at random, through the protocol. The server
// answers every request, and when nothing is typed any more its diagnostics are those of the check.
func TestRandomEditsKeepTheServerRight(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("EDIT_SEED"); given != "" {
		if _, err := fmt.Sscan(given, &seed); err != nil {
			t.Fatal(err)
		}
	}
	rounds := 12
	if given := os.Getenv("EDIT_ROUNDS"); given != "" {
		if _, err := fmt.Sscan(given, &rounds); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("EDIT_SEED=%d repeats this; EDIT_ROUNDS sets the number of edits", seed)
	for app, files := range examples(t) {
		t.Run(app, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, uint64(len(app))))
			c := start(t, "", files)
			texts := maps.Clone(files)
			names := slices.Sorted(maps.Keys(texts))
			for _, name := range names {
				c.open(name, texts[name])
			}
			for range rounds {
				name := names[r.IntN(len(names))]
				if r.IntN(6) == 0 { // begin again, so that not all is broken
					texts[name] = files[name]
					c.change(name, texts[name])
				}
				for range 1 + r.IntN(4) {
					var change map[string]any
					change, texts[name] = randomEdit(r, texts[name])
					c.edit(name, change)
				}
				lines := strings.Split(texts[name], "\n")
				line := r.IntN(len(lines))
				c.askEverything(name, position{line, r.IntN(utf16Len(lines[line]) + 2)})
			}
			want := expected(c.dir, texts)
			agree := func(all map[string][]diagnostic) bool { return gocmp.Equal(shown(all), want) }
			func() {
				defer func() {
					if t.Failed() {
						t.Logf("(-want +got):\n%s", gocmp.Diff(want, shown(c.published)))
					}
				}()
				c.diagnostics(agree)
			}()
		})
	}
}
