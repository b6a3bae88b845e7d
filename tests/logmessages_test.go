package tests

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the lists in docs/ that are compared with the code")

// logWrappers are functions that log a message of their callers: the argument that is the
// message, and the level, or "" when the argument before it is the level. The functions'
// own calls of the logger are not looked at.
var logWrappers = map[string]struct {
	argument int
	level    string
}{
	"runtime/front.warn":      {0, "warn"},
	"internal/telemetry.Line": {1, ""},
}

// otherTexts are functions that log texts which are not the server's own.
var otherTexts = map[string]string{
	"hostabi.write":    "what a handler logs",
	"state/store.line": "what Badger logs",
}

const (
	messagesBegin = "<!-- log messages: go test ./tests -run TestLogMessages -update writes this table -->\n"
	messagesEnd   = "<!-- end of log messages -->\n"
)

// logMessage is a row of the table.
type logMessage struct{ text, level, pkg string }

func TestLogMessagesAreConstantAndListed(t *testing.T) {
	messages := map[logMessage][]string{} // to the names of its fields
	root := repoRoot(t)
	eachGoFile(t, outside, func(path, rel string) error {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(rel))
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			name := pkg + "." + f.Name.Name
			if _, isWrapper := logWrappers[name]; isWrapper || otherTexts[name] != "" {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				message, level, fields, ok := logCall(pkg, call)
				if !ok {
					return true
				}
				text, err := constantText(message)
				if err != nil {
					t.Errorf("%s: a log message must be a constant text, with what varies in fields", fset.Position(call.Pos()))
					return true
				}
				row := logMessage{text, level, pkg}
				messages[row] = append(messages[row], fieldNames(file, fields, call.Ellipsis.IsValid())...)
				return true
			})
		}
		return nil
	})
	if len(messages) < 30 {
		t.Errorf("only %d log messages were found: is the search broken?", len(messages))
	}

	var table strings.Builder
	table.WriteString("| message | level | package | fields |\n|---|---|---|---|\n")
	rows := make([]logMessage, 0, len(messages))
	for row := range messages {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b logMessage) int {
		return strings.Compare(a.text+"\x00"+a.pkg+"\x00"+a.level, b.text+"\x00"+b.pkg+"\x00"+b.level)
	})
	for _, row := range rows {
		fields := messages[row]
		slices.Sort(fields)
		for i, field := range fields {
			fields[i] = "`" + field + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | `%s` | %s |\n", row.text, row.level, row.pkg, strings.Join(slices.Compact(fields), ", "))
	}

	page := filepath.Join(root, "docs/log-messages.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), messagesBegin)
	_, after, ok2 := strings.Cut(rest, messagesEnd)
	if !ok || !ok2 {
		t.Fatalf("docs/log-messages.md has no lines\n%s%s", messagesBegin, messagesEnd)
	}
	want := before + messagesBegin + table.String() + messagesEnd + after
	if want == string(text) {
		return
	}
	if !*update {
		listed, _, _ := strings.Cut(rest, messagesEnd)
		for row := range strings.Lines(table.String()) {
			if !strings.Contains(listed, row) {
				t.Errorf("not in docs/log-messages.md: %s", row)
			}
		}
		for row := range strings.Lines(listed) {
			if !strings.Contains(table.String(), row) {
				t.Errorf("not logged any more: %s", row)
			}
		}
		t.Fatal("docs/log-messages.md has another list of log messages: run\n\n    go test ./tests -run TestLogMessages -update\n\nand read the diff")
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// logCall reports whether a call logs: a method of slog.Logger on something whose name
// ends in log or logger, or one of logWrappers.
func logCall(pkg string, call *ast.CallExpr) (message ast.Expr, level string, fields []ast.Expr, ok bool) {
	if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "log" && len(call.Args) > 0 { // a method of a logger in a variable
		return call.Args[0], "varies", call.Args[1:], true
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil, "", nil, false
	}
	for _, name := range []string{pkg + "." + method.Sel.Name, "internal/telemetry." + method.Sel.Name} {
		if w, ok := logWrappers[name]; ok && len(call.Args) > w.argument {
			if level = w.level; level == "" {
				level = levelOf(call.Args[w.argument-1])
			}
			return call.Args[w.argument], level, call.Args[w.argument+1:], true
		}
	}
	var receiver string
	switch x := method.X.(type) {
	case *ast.Ident:
		receiver = x.Name
	case *ast.SelectorExpr:
		receiver = x.Sel.Name
	}
	receiver = strings.ToLower(receiver)
	if !strings.HasSuffix(receiver, "logger") && receiver != "log" && receiver != "slog" {
		return nil, "", nil, false
	}
	first := 0
	name, withContext := strings.CutSuffix(method.Sel.Name, "Context")
	if withContext {
		first = 1
	}
	switch name {
	case "Debug", "Info", "Warn", "Error":
		level = strings.ToLower(name)
	case "Log", "LogAttrs":
		first = 2
	default:
		return nil, "", nil, false
	}
	if len(call.Args) <= first {
		return nil, "", nil, false
	}
	if level == "" {
		level = levelOf(call.Args[1])
	}
	return call.Args[first], level, call.Args[first+1:], true
}

// levelOf names a level: that of a constant of slog, else several.
func levelOf(e ast.Expr) string {
	if constant, ok := e.(*ast.SelectorExpr); ok {
		if level, ok := strings.CutPrefix(constant.Sel.Name, "Level"); ok {
			return strings.ToLower(level)
		}
	}
	return "varies"
}

// constantText is the value of a literal, or of literals that are added.
func constantText(e ast.Expr) (string, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return strconv.Unquote(e.Value)
	case *ast.BinaryExpr:
		left, err := constantText(e.X)
		if err != nil {
			return "", err
		}
		right, err := constantText(e.Y)
		return left + right, err
	}
	return "", strconv.ErrSyntax
}

// fieldNames lists the names of the fields that a call logs. When it passes a slice, they are all those
// that the function which returns it makes with slog's constructors, or its file.
func fieldNames(file *ast.File, args []ast.Expr, slice bool) (names []string) {
	constructed := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if method, ok := call.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "LogID" { // of a request
				names = append(names, "requestId", "traceId")
			}
			if len(call.Args) < 2 {
				return true
			}
			if method, ok := call.Fun.(*ast.SelectorExpr); ok {
				if pkg, ok := method.X.(*ast.Ident); ok && pkg.Name == "slog" {
					if name, err := constantText(call.Args[0]); err == nil {
						names = append(names, name)
					}
				}
			}
			return true
		})
	}
	if slice {
		constructed(maker(file, args[len(args)-1]))
		return names
	}
	for i := 0; i < len(args); i++ {
		if name, err := constantText(args[i]); err == nil {
			names = append(names, name)
			i++ // its value
			continue
		}
		constructed(args[i])
	}
	return names
}

// maker returns the function of a file that a slice is the result of, else the file.
func maker(file *ast.File, slice ast.Expr) ast.Node {
	if call, ok := slice.(*ast.CallExpr); ok {
		if name, ok := call.Fun.(*ast.Ident); ok {
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == name.Name {
					return f
				}
			}
		}
	}
	return file
}
