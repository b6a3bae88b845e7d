package languageserver_test

import (
	"slices"
	"strings"
	"testing"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
)

// outlined are the declarations of a text with their names, and the routes, functions, jobs and fields in them.
func outlined(text string) (names []string) {
	file, _ := syntax.Parse(diag.Source{Name: "a.schema", Text: []byte(text)})
	add := func(parts ...string) { names = append(names, strings.Join(parts, " ")) }
	var routes func(d *syntax.RoutesDecl)
	routes = func(d *syntax.RoutesDecl) {
		for _, item := range d.Items {
			switch item := item.(type) {
			case *syntax.RoutesDecl:
				routes(item)
			case *syntax.RouteDecl:
				add("route", item.Method.Name, item.Path.Raw)
			}
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *syntax.EntityDecl:
			add("entity", d.Name.Name)
		case *syntax.TypeDecl:
			add("type", d.Name.Name)
		case *syntax.EnumDecl:
			add("enum", d.Name.Name)
		case *syntax.AuthDecl:
			add("auth")
		case *syntax.SecretDecl:
			add("secret", d.Name.Name)
		case *syntax.APIKeysDecl:
			add("apiKeys")
			for _, block := range d.Blocks {
				for _, scope := range block.Scopes {
					add("scope", scope.Name.Name)
				}
			}
		case *syntax.FunctionsDecl:
			for _, f := range d.Functions {
				add("function", f.Name.Name)
			}
		case *syntax.JobsDecl:
			for _, f := range d.Jobs {
				add("job", f.Name.Name)
			}
		case *syntax.RoutesDecl:
			add("routes")
			routes(d)
		}
	}
	return names
}

// TestALineThatIsBeingTypedHidesNothingElse puts the beginnings of each line of the schemas of the examples before the
// line, as when another one like it is being typed there: the outline keeps all that there was.
func TestALineThatIsBeingTypedHidesNothingElse(t *testing.T) {
	for app, files := range examples(t) {
		for name, text := range files {
			lines, all, wrong := strings.SplitAfter(text, "\n"), outlined(text), 0
			for i, line := range lines {
				typed := strings.TrimRight(line, "\n")
				begin := len(typed) - len(strings.TrimLeft(typed, " ")) + 1
				for end := begin; end < len(typed); end++ {
					if strings.ContainsAny(strings.TrimSpace(typed)[:1], "/}") || end > begin && isLetter(typed[end]) && isLetter(typed[end-1]) && isLetter(typed[end-2]) {
						continue // a comment, the end of a block, or the middle of a word
					}
					if strings.Count(typed[:end], "{") > strings.Count(typed[:end], "}") {
						break // editors close brackets
					}
					got := outlined(strings.Join(lines[:i], "") + typed[:end] + "\n" + strings.Join(lines[i:], ""))
					if lost := missing(all, got); len(lost) > 0 && wrong < 20 {
						wrong++
						t.Errorf("%s/%s: with %q before line %d, the outline lacks %q", app, name, typed[:end], i+1, lost[:min(len(lost), 4)])
					}
				}
			}
		}
	}
}

func isLetter(b byte) bool { return syntax.IsLetter(rune(b)) }

// missing are the elements of all that are not in some, counted.
func missing(all, some []string) (lost []string) {
	some = slices.Clone(some)
	for _, s := range all {
		if i := slices.Index(some, s); i >= 0 {
			some = slices.Delete(some, i, i+1)
		} else {
			lost = append(lost, s)
		}
	}
	return lost
}
