package editors_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
	"runner.example/tests/harness"
)

// highlighted is a token of the engine.
type highlighted struct {
	start, end int
	scopes     string
}

func (h *highlighted) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&h.start, &h.end, &h.scopes})
}

// The classes of tokens, by the scopes of the grammar that stand for them.
var classes = []struct{ scope, class string }{
	{"comment.", "comment"}, {"string.unquoted.path", "path"}, {"string.", "string"}, {"constant.numeric", "number"},
	{"storage.modifier.attribute", "attribute"}, {"keyword.", "keyword"}, {"constant.language", "constant"},
	{"support.type", "type"}, {"entity.name.type", "type"}, {"entity.name.function", "name"}, {"variable.", "name"},
}

// classOf returns the class of the innermost scope that has one, or "".
func classOf(scopes string) string {
	all := strings.Fields(scopes)
	for _, scope := range slices.Backward(all) {
		for _, c := range classes {
			if strings.HasPrefix(scope, c.scope) {
				return c.class
			}
		}
	}
	return ""
}

// highlight highlights the texts with the engine of VS Code.
func highlight(t *testing.T, texts []string) [][]highlighted {
	t.Helper()
	packages, err := exec.Command(harness.RepoFile("tools/fetch-textmate.sh")).Output()
	if err != nil {
		t.Fatalf("tools/fetch-textmate.sh: %v", err)
	}
	input, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "testdata/highlight.js", strings.TrimSpace(string(packages)),
		harness.RepoFile("editors/vscode/syntaxes/runner-schema.tmLanguage.json"))
	var complaints bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("highlight.js: %v\n%s", err, complaints.Bytes())
	}
	var all [][]highlighted
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// The grammar and the parser read every schema of the repository in the same way.
func TestTheGrammarReadsSchemasAsTheParserDoes(t *testing.T) {
	sources := schemas(t)
	for _, src := range sources {
		sources = append(sources, otherwiseBroken(src)...)
	}
	var texts []string
	for _, src := range sources {
		texts = append(texts, string(src.Text))
	}
	compared := map[string]int{}
	for i, tokens := range highlight(t, texts) {
		wrong := 0
		for _, want := range expected(sources[i]) {
			compared[want.class]++
			for _, got := range tokens {
				start, end := max(got.start, want.start), min(got.end, want.end)
				if start >= end || strings.TrimSpace(texts[i][start:end]) == "" {
					continue
				}
				class := classOf(got.scopes)
				if class == want.class || want.class == "punctuation" && (class == "" || strings.Contains(got.scopes, "keyword.operator")) {
					continue
				}
				if wrong++; wrong <= 5 {
					line := 1 + strings.Count(texts[i][:start], "\n")
					t.Errorf("%s:%d: %q in %q is a %s for the parser, and has the scopes %s", sources[i].Name, line, texts[i][start:end],
						strings.Split(texts[i], "\n")[line-1], want.class, got.scopes)
				}
			}
		}
	}
	t.Logf("compared in %d schemas: %v", len(sources), compared)
	for _, c := range classes {
		if compared[c.class] < 20 {
			t.Errorf("only %d tokens of the class %s were compared", compared[c.class], c.class)
		}
	}
}

// otherwiseBroken returns a valid schema without comments on one line, and with a newline for each space before a token:
// newlines carry no meaning. The grammar reads the name of a field and its colon on one line only.
func otherwiseBroken(src diag.Source) []diag.Source {
	file, found := syntax.Parse(src)
	if found.HasErrors() || len(file.Comments) > 0 {
		return nil
	}
	var narrow []byte
	for _, tok := range file.Tokens {
		start, end := tok.Loc.Start.Offset, tok.Loc.End.Offset
		if start > 0 && src.Text[start-1] == ' ' && tok.Text != "?" && tok.Text != ":" {
			narrow = append(narrow, '\n')
		}
		narrow = append(narrow, src.Text[start:end]...)
		switch rest := bytes.TrimLeft(src.Text[end:], " \n"); {
		case bytes.HasPrefix(rest, []byte(",")):
			narrow = append(narrow, ',')
		case src.Text[min(end, len(src.Text)-1)] == '\n':
			narrow = append(narrow, '\n')
		}
	}
	return []diag.Source{
		{Name: src.Name + " on one line", Text: bytes.ReplaceAll(src.Text, []byte("\n"), []byte(" "))},
		{Name: src.Name + " on many lines", Text: narrow},
	}
}

// classified is a range of bytes and its class.
type classified struct {
	start, end int
	class      string
}

// expected returns the classes of the tokens of a schema, as the parser reads them. Of a declaration with a syntax error it has
// what precedes the error, without the item that the parser could not read.
func expected(src diag.Source) (all []classified) {
	file, found := syntax.Parse(src)
	tree := newTreeClasses(file)
	var begins []int // of declarations
	for _, d := range file.Decls {
		begins = append(begins, d.Span().Start.Offset)
	}
	decl := func(at int) int { // the number of declarations that begin at the offset or before it
		n, exact := slices.BinarySearch(begins, at)
		if exact {
			n++
		}
		return n
	}
	add := func(start, end int, class string) {
		if !slices.ContainsFunc(found, func(d diag.Diagnostic) bool {
			return d.Span.Start.Offset < end && decl(d.Span.Start.Offset) == decl(start)
		}) && !slices.ContainsFunc(file.Unread, func(s diag.Span) bool { return s.Start.Offset <= start && start < s.End.Offset }) {
			all = append(all, classified{start, end, class})
		}
	}
	for _, c := range file.Comments {
		add(c.Loc.Start.Offset, c.Loc.End.Offset, "comment")
	}
	for _, tok := range file.Tokens {
		at, first := tok.Loc.Start.Offset, rune(tok.Text[0])
		class, marked := tree.classes[at]
		switch {
		case marked:
		case first == '"':
			class = "string"
		case syntax.IsDigit(first):
			class = "number"
		case first == '@':
			class = "attribute"
		case syntax.IsLetter(first) && tree.names[at]:
			class = "name"
		case syntax.IsLetter(first):
			class = "keyword"
		default:
			class = "punctuation"
		}
		add(at, tok.Loc.End.Offset, class)
	}
	return all
}

// treeClasses has what the syntax tree says of the tokens of a file, by the offsets where they start. A word that is neither
// in names nor in classes is a keyword.
type treeClasses struct {
	file    *syntax.File
	names   map[int]bool
	classes map[int]string
}

func newTreeClasses(file *syntax.File) *treeClasses {
	c := &treeClasses{file, map[int]bool{}, map[int]string{}}
	c.walk(reflect.ValueOf(file.Decls))
	return c
}

func (c *treeClasses) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			c.walk(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.walk(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			c.walk(v.Field(i))
		}
		c.node(v.Interface())
	}
}

// grantActions are the words for actions in a grant, policyActions those in a policy; other words are errors.
var (
	grantActions  = []string{"read", "write", "delete", "insert", "update"}
	policyActions = append(slices.Clip(grantActions), "all")
)

// node notes what a node says of its tokens, after its children.
func (c *treeClasses) node(n any) {
	mark := func(class string, names ...syntax.Ident) {
		for _, name := range names {
			c.classes[name.Loc.Start.Offset] = class
		}
	}
	switch n := n.(type) {
	case syntax.Ident:
		c.names[n.Loc.Start.Offset] = true
	case syntax.EntityDecl:
		mark("type", n.Name)
	case syntax.TypeDecl:
		mark("type", n.Name)
	case syntax.EnumDecl:
		mark("type", n.Name)
	case syntax.TypeRef:
		mark("type", n.Name)
	case syntax.VarDecl:
		mark("type", n.Type)
	case syntax.FieldDecl:
		if now, ok := n.Default.(*syntax.NameSetting); ok && now.Name.Name == "now" {
			mark("constant", now.Name)
		}
	case syntax.FieldAttr:
		if n.Ref != nil && (n.Name.Name == "onDelete" || n.Name.Name == "index") {
			mark("keyword", *n.Ref)
		}
		delete(c.names, n.Name.Loc.Start.Offset)
	case syntax.EntityAttr:
		if n.Global != nil {
			mark("keyword", *n.Global)
		}
	case syntax.Column:
		if n.Order != nil {
			mark("keyword", *n.Order)
		}
	case syntax.PolicyDecl:
		c.words(n.Actions, policyActions)
	case syntax.GrantDecl:
		c.words(n.Actions, grantActions)
		mark("type", n.Entities...)
	case syntax.ExistsExpr:
		mark("type", n.Entity)
	case syntax.Kind:
		mark("keyword", n.Name)
	case syntax.SessionDecl:
		mark("keyword", n.Kind)
	case syntax.ScopesBlock:
		mark("keyword", n.Name)
	case syntax.AuthMode:
		mark("keyword", n.Kind)
	case syntax.Rate:
		mark("keyword", n.Unit)
		if n.By != nil {
			mark("keyword", *n.By)
		}
	case syntax.RouteSetting:
		if n.Word != nil {
			mark("keyword", *n.Word)
		}
		if n.Ref != nil && n.Name.Name != "as" {
			mark("type", *n.Ref)
		}
	case syntax.VerifyValue:
		for _, tok := range c.file.Tokens {
			if tok.Text == "tolerance" && n.Tolerance != nil && tok.Loc.End.Offset < n.Tolerance.Loc.Start.Offset {
				c.classes[tok.Loc.Start.Offset] = "name"
			}
		}
	case syntax.RouteDecl:
		mark("keyword", n.Method)
		c.classes[n.Path.Loc.Start.Offset] = "path"
	case syntax.Literal:
		if n.Kind == syntax.BoolLit {
			c.classes[n.Loc.Start.Offset] = "constant"
		} else if n.Var != "" {
			c.names[n.Loc.Start.Offset] = true
		}
	case syntax.NullExpr:
		c.classes[n.Loc.Start.Offset] = "constant"
	case syntax.NowExpr:
		c.classes[n.Loc.Start.Offset] = "constant"
	}
}

// words marks the names that are known as keywords.
func (c *treeClasses) words(names []syntax.Ident, known []string) {
	for _, name := range names {
		if slices.Contains(known, name.Name) {
			c.classes[name.Loc.Start.Offset] = "keyword"
		}
	}
}

var fence = regexp.MustCompile("(?ms)^```(?:schema)?\n(.*?)^```$")

// schemas returns the schemas of the repository: the files, those of them with errors included, the blocks of code in pages,
// and the texts in Go.
func schemas(t *testing.T) (all []diag.Source) {
	t.Helper()
	root, files := harness.RepoFile("."), 0
	valid := func(name, text string) { // a text of which it is not known that it is a schema
		src := diag.Source{Name: name, Text: []byte(text)}
		if file, found := syntax.Parse(src); !found.HasErrors() && len(file.Decls) > 0 {
			all = append(all, src)
		}
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "target" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(name) {
		case ".schema":
			files++
			all = append(all, diag.Source{Name: name, Text: []byte(strings.ReplaceAll(harness.MustRead(t, path), "\r\n", "\n"))})
		case ".md":
			for i, block := range fence.FindAllStringSubmatch(harness.MustRead(t, path), -1) {
				valid(fmt.Sprintf("%s: block %d", name, i+1), block[1])
			}
		case ".go":
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil // a template
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, "{") {
					text, _ := strconv.Unquote(lit.Value)
					valid(fmt.Sprintf("%s:%d", name, set.Position(lit.Pos()).Line), text)
				}
				return true
			})
		}
		return nil
	})
	if err != nil || files < 100 || len(all) < 2*files {
		t.Fatalf("%d files, %d schemas, %v", files, len(all), err)
	}
	return all
}
