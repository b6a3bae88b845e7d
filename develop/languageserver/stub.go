package languageserver

import (
	"path/filepath"
	"regexp"
	"strings"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"
)

// stubs offers the handler of the route, function or job at an offset, if no source has it.
func (s *Server) stubs(snap *snapshot, f *file, offset int) (all []protocol.CommandOrCodeAction) {
	for _, e := range snap.index.endpoints {
		if e.file != f || e.handler.Name == "" || offset < e.whole.Start.Offset || offset > e.whole.End.Offset {
			continue
		}
		sources := s.sourcesOf(snap.dir)
		if !hasHandler(sources, e.handler.Name) {
			all = append(all, s.stub(snap, e, sources))
		}
	}
	return all
}

func hasHandler(sources []source, name string) bool {
	for _, src := range sources {
		for _, h := range src.handlers {
			if src.isNamed(h, name) {
				return true
			}
		}
	}
	return false
}

// stub creates the handler in TypeScript: in the file with the handler of the nearest route before it, or of the
// first route that has one, or else in a new file.
func (s *Server) stub(snap *snapshot, e *endpoint, sources []source) *protocol.CodeAction {
	kind := protocol.CodeActionKindQuickFix
	action := &protocol.CodeAction{Kind: &kind}
	if src := stubSource(snap, e, sources); src != nil {
		text := "\n" + stubText(e)
		if n := len(src.src); n > 0 && src.src[n-1] != '\n' {
			text = "\n" + text
		}
		edits := []protocol.TextEdit{src.edit(len(src.src), len(src.src), text)}
		if missing := missingImports(src.src); missing != "" {
			edits = append([]protocol.TextEdit{src.edit(0, 0, missing)}, edits...)
		}
		action.Title = "Create the handler " + e.handler.Name + " in " + relative(snap.dir, src.path)
		action.Edit = &protocol.WorkspaceEdit{Changes: map[uri.URI][]protocol.TextEdit{src.uri(): edits}}
		return action
	}
	name := strings.TrimSuffix(e.file.name(), ".schema") + ".ts"
	path := uri.File(filepath.Join(snap.dir, "handlers", name))
	edit := protocol.TextEdit{NewText: missingImports(nil) + "\n" + stubText(e)}
	action.Title = "Create the handler " + e.handler.Name + " in handlers/" + name
	if !s.creates {
		action.Edit = &protocol.WorkspaceEdit{Changes: map[uri.URI][]protocol.TextEdit{path: {edit}}}
		return action
	}
	keep := true
	action.Edit = &protocol.WorkspaceEdit{DocumentChanges: []protocol.DocumentChange{
		&protocol.CreateFile{Kind: "create", URI: path, Options: &protocol.CreateFileOptions{IgnoreIfExists: &keep}},
		&protocol.TextDocumentEdit{
			TextDocument: protocol.OptionalVersionedTextDocumentIdentifier{TextDocumentIdentifier: protocol.TextDocumentIdentifier{URI: path}},
			Edits:        []protocol.TextDocumentEditElement{&edit},
		},
	}}
	return action
}

// stubSource returns the source that the stub belongs into; nil if there is none in TypeScript.
func stubSource(snap *snapshot, e *endpoint, sources []source) (found *source) {
	places := map[string]*source{}
	for i, src := range sources {
		if filepath.Ext(src.path) != ".ts" || filepath.Dir(src.path) != filepath.Join(snap.dir, "handlers") {
			continue
		}
		for _, h := range src.handlers {
			places[h.name] = &sources[i]
		}
	}
	before := true
	for _, other := range snap.index.endpoints {
		if other == e {
			before = false
		}
		if src := places[other.handler.Name]; src != nil && (before || found == nil) {
			found = src
		}
	}
	return found
}

func stubText(e *endpoint) string {
	title := e.title
	if e.what != "route" {
		title = "The " + e.what + " " + e.handler.Name
	}
	return "/** " + strings.ReplaceAll(title, "*/", "* /") + " */\nexport async function " + e.handler.Name +
		"(req: RouteRequest) {\n  return ok({ path: req.path });\n}\n"
}

var sdkImport = regexp.MustCompile(`import\s+(?:type\s+)?\{([^}]*)\}\s*from\s*["']@runner/sdk["']`)

// missingImports returns the line that imports what a stub needs and src does not import, or "".
func missingImports(src []byte) string {
	imported := ""
	for _, m := range sdkImport.FindAllSubmatch(src, -1) {
		imported += string(m[1]) + ","
	}
	var names []string
	for _, name := range []string{"ok", "RouteRequest"} {
		if regexp.MustCompile(`\b` + name + `\b`).MatchString(imported) {
			continue
		}
		if name == "RouteRequest" {
			name = "type " + name
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	return "import { " + strings.Join(names, ", ") + " } from \"@runner/sdk\";\n"
}
