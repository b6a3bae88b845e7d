package languageserver

import (
	"context"
	"strings"

	"go.lsp.dev/protocol"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
)

// DocumentSymbol implements protocol.Server.
func (s *Server) DocumentSymbol(_ context.Context, params *protocol.DocumentSymbolParams) (protocol.DocumentSymbolResult, error) {
	_, f := s.located(params.TextDocument)
	if f == nil {
		return nil, nil
	}
	o := outliner{f}
	all := protocol.DocumentSymbolSlice{}
	for _, d := range f.tree.Decls {
		all = append(all, o.decl(d))
	}
	return all, nil
}

// outliner makes the outline of a file.
type outliner struct{ *file }

func (o outliner) symbol(name string, k protocol.SymbolKind, whole, at diag.Span, detail string,
	children ...protocol.DocumentSymbol) protocol.DocumentSymbol {
	if name == "" {
		name = "?" // an empty name is an error for clients
	}
	d := protocol.DocumentSymbol{Name: name, Kind: k, Range: o.of(whole), SelectionRange: o.of(at), Children: children}
	if at.Start.Offset < whole.Start.Offset || at.End.Offset > whole.End.Offset {
		d.SelectionRange = d.Range
	}
	if detail != "" {
		d.Detail = &detail
	}
	return d
}

func (o outliner) decl(d syntax.Decl) protocol.DocumentSymbol {
	switch d := d.(type) {
	case *syntax.AppDecl:
		return o.symbol("app "+d.Name.Name, protocol.SymbolKindPackage, d.Loc, d.Name.Loc, "")
	case *syntax.SecretDecl:
		return o.symbol(d.Name.Name, protocol.SymbolKindKey, d.Loc, d.Name.Loc, "secret")
	case *syntax.VarDecl:
		return o.symbol(d.Name.Name, protocol.SymbolKindVariable, d.Loc, d.Name.Loc, "var: "+d.Type.Name)
	case *syntax.ModuleDecl:
		return o.symbol(d.Name.Name, protocol.SymbolKindModule, d.Loc, d.Name.Loc, "module")
	case *syntax.PythonDecl:
		return o.symbol("python", protocol.SymbolKindModule, d.Loc, d.Keyword, "")
	case *syntax.OutboundDecl:
		return o.symbol("outbound", protocol.SymbolKindNamespace, d.Loc, d.Keyword, "")
	case *syntax.AuthDecl:
		return o.symbol("auth", protocol.SymbolKindNamespace, d.Loc, d.Keyword, "")
	case *syntax.EnumDecl:
		var values []protocol.DocumentSymbol
		for _, v := range d.Values {
			values = append(values, o.symbol(v.Name, protocol.SymbolKindEnumMember, v.Loc, v.Loc, ""))
		}
		return o.symbol(d.Name.Name, protocol.SymbolKindEnum, d.Loc, d.Name.Loc, "enum", values...)
	case *syntax.TypeDecl:
		return o.symbol(d.Name.Name, protocol.SymbolKindStruct, d.Loc, d.Name.Loc, "type", o.fields(d.Fields)...)
	case *syntax.EntityDecl:
		return o.symbol(d.Name.Name, protocol.SymbolKindClass, d.Loc, d.Name.Loc, "entity", o.fields(d.Fields)...)
	case *syntax.APIKeysDecl:
		var scopes []protocol.DocumentSymbol
		for _, block := range d.Blocks {
			for _, scope := range block.Scopes {
				scopes = append(scopes, o.symbol(scope.Name.Name, protocol.SymbolKindKey, scope.Loc, scope.Name.Loc, "scope"))
			}
		}
		return o.symbol("apiKeys", protocol.SymbolKindNamespace, d.Loc, d.Keyword, "", scopes...)
	case *syntax.FunctionsDecl:
		return o.symbol("functions", protocol.SymbolKindNamespace, d.Loc, d.Keyword, "", o.functions(d.Functions)...)
	case *syntax.JobsDecl:
		return o.symbol("jobs", protocol.SymbolKindNamespace, d.Loc, d.Keyword, "", o.functions(d.Jobs)...)
	case *syntax.RoutesDecl:
		return o.group(d)
	case *syntax.AssetsDecl:
		return o.assets(d)
	}
	panic("BUG: unknown declaration")
}

func (o outliner) fields(fields []*syntax.FieldDecl) (all []protocol.DocumentSymbol) {
	for _, f := range fields {
		detail := ""
		if f.Type != nil {
			detail = o.slice(f.Type.Loc)
		}
		all = append(all, o.symbol(f.Name.Name, protocol.SymbolKindField, f.Loc, f.Name.Loc, detail))
	}
	return all
}

func (o outliner) functions(functions []*syntax.FunctionDecl) (all []protocol.DocumentSymbol) {
	for _, f := range functions {
		all = append(all, o.symbol(f.Name.Name, protocol.SymbolKindFunction, f.Loc, f.Name.Loc, ""))
	}
	return all
}

// targetOf is what answers a route, as it is written.
func targetOf(r *syntax.RouteDecl) string {
	if r.File != nil {
		return "file(" + r.File.Entity.Name + "." + r.File.Field.Name + ")"
	}
	return r.Handler.Name
}

func (o outliner) group(d *syntax.RoutesDecl) protocol.DocumentSymbol {
	name := "routes"
	if d.Prefix != nil {
		name += " " + d.Prefix.Raw
	}
	var items []protocol.DocumentSymbol
	for _, item := range d.Items {
		switch item := item.(type) {
		case *syntax.RoutesDecl:
			items = append(items, o.group(item))
		case *syntax.RouteDecl:
			items = append(items, o.symbol(item.Method.Name+" "+item.Path.Raw, protocol.SymbolKindMethod, item.Loc,
				item.Method.Loc.To(item.Path.Loc), targetOf(item)))
		case *syntax.AssetsDecl:
			items = append(items, o.assets(item))
		}
	}
	return o.symbol(name, protocol.SymbolKindNamespace, d.Loc, d.Keyword, "", items...)
}

func (o outliner) assets(d *syntax.AssetsDecl) protocol.DocumentSymbol {
	name := "assets"
	if d.Prefix != nil {
		name += " " + d.Prefix.Raw
	}
	return o.symbol(name, protocol.SymbolKindFile, d.Loc, d.Keyword, "")
}

// maxSymbols limits the answer to a search of the workspace.
const maxSymbols = 500

// Symbols implements protocol.Server: names and paths that contain the letters of the query in order.
func (s *Server) Symbols(_ context.Context, params *protocol.WorkspaceSymbolParams) (protocol.WorkspaceSymbolResult, error) {
	found := protocol.SymbolInformationSlice{}
	add := func(f *file, name string, k protocol.SymbolKind, span diag.Span, container string) {
		if len(found) == maxSymbols || !matches(name, params.Query) {
			return
		}
		info := protocol.SymbolInformation{
			BaseSymbolInformation: protocol.BaseSymbolInformation{Name: name, Kind: k}, Location: f.location(span),
		}
		if container != "" {
			info.ContainerName = &container
		}
		found = append(found, info)
	}
	for _, a := range s.apps {
		x := s.snapshotOf(a).index
		for _, d := range x.order {
			add(d.file, d.name, symbolKind(d.kind), d.span, d.owner)
		}
		for _, e := range x.endpoints {
			if e.what == "route" {
				add(e.file, e.title, protocol.SymbolKindMethod, e.whole, e.handler.Name)
			}
		}
	}
	return found, nil
}

// matches reports whether name has the letters of query in order, whatever their case.
func matches(name, query string) bool {
	rest := strings.ToLower(name)
	for _, r := range strings.ToLower(query) {
		i := strings.IndexRune(rest, r)
		if i < 0 {
			return false
		}
		rest = rest[i+len(string(r)):]
	}
	return true
}

func symbolKind(k kind) protocol.SymbolKind {
	switch k {
	case kindEntity:
		return protocol.SymbolKindClass
	case kindEnum:
		return protocol.SymbolKindEnum
	case kindType:
		return protocol.SymbolKindStruct
	case kindField, kindParam:
		return protocol.SymbolKindField
	case kindValue, kindRole:
		return protocol.SymbolKindEnumMember
	case kindScope, kindSecret:
		return protocol.SymbolKindKey
	case kindHandler:
		return protocol.SymbolKindFunction
	case kindModule:
		return protocol.SymbolKindModule
	case kindAppName:
		return protocol.SymbolKindPackage
	}
	return protocol.SymbolKindVariable
}

// FoldingRanges implements protocol.Server: brackets and comments of several lines.
func (s *Server) FoldingRanges(_ context.Context, params *protocol.FoldingRangeParams) ([]protocol.FoldingRange, error) {
	_, f := s.located(params.TextDocument)
	if f == nil {
		return nil, nil
	}
	folds := []protocol.FoldingRange{}
	add := func(first, last int, k protocol.FoldingRangeKind) {
		if last > first {
			folds = append(folds, protocol.FoldingRange{
				StartLine: place(first-1, 0).Line, EndLine: place(last-1, 0).Line, Kind: k,
			})
		}
	}
	var open []int
	for _, t := range f.tree.Tokens {
		switch t.Text {
		case "{", "(", "[":
			open = append(open, t.Loc.Start.Line)
		case "}", ")", "]":
			if len(open) > 0 {
				add(open[len(open)-1], t.Loc.Start.Line-1, "")
				open = open[:len(open)-1]
			}
		}
	}
	comments := f.tree.Comments
	for i := 0; i < len(comments); i++ {
		first := comments[i].Loc.Start.Line
		for i+1 < len(comments) && comments[i+1].OwnLine && comments[i+1].Loc.Start.Line == comments[i].Loc.End.Line+1 {
			i++
		}
		add(first, comments[i].Loc.End.Line, protocol.FoldingRangeKindComment)
	}
	return folds, nil
}
