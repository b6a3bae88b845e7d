package languageserver

import (
	"context"
	"fmt"
	"slices"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
)

// refuse is an answer that the editor shows to its user.
func refuse(format string, args ...any) error {
	return jsonrpc2.Errorf(jsonrpc2.Code(protocol.LSPErrorCodesRequestFailed), format, args...)
}

// renamable returns why a name cannot be changed, nil if it can.
func renamable(r ref) error {
	if (r.kind == kindField || r.kind == kindParam) && r.name == "id" {
		return refuse("the field id cannot be renamed: every entity has it")
	}
	if r.kind == kindModule {
		return refuse("a module has the name of its file in build/: rename its source in handlers/")
	}
	return nil
}

// PrepareRename implements protocol.Server.
func (s *Server) PrepareRename(_ context.Context, params *protocol.PrepareRenameParams) (protocol.PrepareRenameResult, error) {
	_, r, ok := s.atPosition(params.TextDocumentPositionParams)
	if !ok {
		return nil, refuse("cannot rename this: place the cursor on the name of a declaration, such as an entity, a field or a scope")
	}
	if err := renamable(r); err != nil {
		return nil, err
	}
	return &protocol.PrepareRenamePlaceholder{Range: r.file.of(r.span), Placeholder: r.name}, nil
}

// Rename implements protocol.Server: it changes a name in all schema files, and in the sources in TypeScript and
// Python those of entities, enums, types and handlers. If rows may have the old name, it asks whether to keep
// them with @was.
func (s *Server) Rename(ctx context.Context, params *protocol.RenameParams) (*protocol.WorkspaceEdit, error) {
	snap, r, ok := s.atPosition(params.TextDocumentPositionParams)
	if !ok {
		return nil, refuse("cannot rename this: place the cursor on the name of a declaration, such as an entity, a field or a scope")
	}
	if err := s.checkName(snap, r, params.NewName); err != nil {
		return nil, err
	}
	changes := s.renameEdits(snap, r, params.NewName)
	was := s.wasEdit(snap, r)
	if was == nil || s.opt.HasRows == nil || !s.opt.HasRows(snap.dir) {
		return &protocol.WorkspaceEdit{Changes: changes}, nil
	}
	a := s.apps[snap.dir]
	before := a.changes
	keep, err := s.ask(ctx, fmt.Sprintf("Rows may have the name %s. Keep them under the new name with @was(%q)?", r.name, r.name))
	switch {
	case err != nil:
		return nil, err
	case before != a.changes:
		return nil, protocol.ErrContentModified
	case keep:
		changes[was.file.uri()] = append(changes[was.file.uri()], was.edit)
	}
	return &protocol.WorkspaceEdit{Changes: changes}, nil
}

// checkName refuses a new name that is not valid or taken.
func (s *Server) checkName(snap *snapshot, r ref, name string) error {
	if err := renamable(r); err != nil {
		return err
	}
	x, capital := snap.index, name != "" && name[0] >= 'A' && name[0] <= 'Z'
	_, named := x.named(name)
	isType := slices.Contains([]kind{kindEntity, kindEnum, kindType}, r.kind)
	switch {
	case !syntax.IsName(name):
		return refuse("%q is not a name: a name has letters, digits and _, and does not begin with a digit", name)
	case isType && !capital:
		return refuse("the name of an %s begins with a capital letter: %q", r.kind, name)
	case r.kind == kindField && capital:
		return refuse("the name of a field begins with a lower-case letter: %q", name)
	case name != r.name && (isType && named || x.declared[symbol{r.kind, r.owner, name}] != nil):
		return refuse("%s %q is already declared", r.kind, name)
	}
	return nil
}

// renameEdits are the edits of all files.
func (s *Server) renameEdits(snap *snapshot, r ref, name string) map[uri.URI][]protocol.TextEdit {
	changes := map[uri.URI][]protocol.TextEdit{}
	add := func(t *text, edits ...protocol.TextEdit) {
		for _, e := range edits {
			if !slices.Contains(changes[t.uri()], e) {
				changes[t.uri()] = append(changes[t.uri()], e)
			}
		}
	}
	for _, place := range snap.index.places(r.symbol) {
		add(place.file.text, protocol.TextEdit{Range: place.file.of(place.span), NewText: name})
	}
	switch r.kind {
	case kindEntity, kindEnum, kindType:
		for _, path := range scriptFiles(snap.dir) {
			if t := s.read(path); t != nil {
				add(t, renamed(t, r.name, name)...)
			}
		}
	case kindHandler:
		for _, src := range s.sourcesOf(snap.dir) {
			for _, h := range src.handlers {
				if h.name == r.name && (isScript(src.path) || isPython(src.path)) {
					add(src.text, src.edit(h.start, h.end, name))
				}
			}
		}
	}
	return changes
}

// fileEdit is an edit of a file.
type fileEdit struct {
	file *file
	edit protocol.TextEdit
}

// wasEdit returns the edit that adds @was with the old name; nil if rows do not have the name, or an older one.
func (s *Server) wasEdit(snap *snapshot, r ref) *fileEdit {
	d := snap.index.declared[r.symbol]
	if d == nil {
		return nil
	}
	var attrs []*syntax.FieldAttr
	at := d.span
	switch node := d.node.(type) {
	case *syntax.EntityDecl:
		attrs = node.NameAttrs
	case *syntax.FieldDecl:
		if r.kind != kindField || !snap.index.isEntity(r.owner) || node.Attr("inverse") != nil {
			return nil
		}
		attrs, at = node.Attrs, node.Loc
	case *enumValue:
		attrs, at = node.enum.Attrs[node.n], d.whole
	default:
		return nil
	}
	if syntax.FindAttr(attrs, "was") != nil {
		return nil
	}
	if len(attrs) > 0 {
		at = diag.Span{End: attrs[len(attrs)-1].Loc.End}
	}
	return &fileEdit{d.file, d.file.edit(at.End.Offset, at.End.Offset, fmt.Sprintf(" @was(%q)", r.name))}
}

const (
	keepRows  = "Add @was"
	onlyNames = "Rename without @was"
)

// ask asks the user whether rows are kept. Other messages are handled meanwhile.
func (s *Server) ask(ctx context.Context, question string) (keep bool, err error) {
	s.mu.Unlock()
	defer s.mu.Lock()
	jsonrpc2.Async(ctx)
	answer, err := s.client.ShowMessageRequest(ctx, &protocol.ShowMessageRequestParams{
		Type: protocol.MessageTypeInfo, Message: question,
		Actions: []protocol.MessageActionItem{{Title: keepRows}, {Title: onlyNames}},
	})
	switch {
	case err != nil:
		return false, err
	case answer == nil || answer.Title == "":
		return false, refuse("nothing was renamed: no answer was chosen")
	}
	return answer.Title == keepRows, nil
}
