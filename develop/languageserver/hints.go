package languageserver

import (
	"context"
	"slices"
	"strings"

	"go.lsp.dev/protocol"

	"runner.example/schema"
	"runner.example/schema/syntax"
)

// InlayHint implements protocol.Server: after each route and function, the auth mode and the limit that it has
// from its groups.
func (s *Server) InlayHint(_ context.Context, params *protocol.InlayHintParams) ([]protocol.InlayHint, error) {
	snap, f := s.located(params.TextDocument)
	if f == nil {
		return nil, nil
	}
	yes, hints := true, []protocol.InlayHint{}
	for _, e := range snap.index.endpoints {
		line := e.whole.End.Line - 1
		if e.file != f || line < int(params.Range.Start.Line) || line > int(params.Range.End.Line) {
			continue
		}
		if label := e.fromGroups(); label != "" {
			hints = append(hints, protocol.InlayHint{Position: f.at(e.end), Label: protocol.String(label), PaddingLeft: &yes})
		}
	}
	return hints, nil
}

// tokenTypes are the types of semantic tokens, by their index.
var tokenTypes = []protocol.SemanticTokenTypes{
	protocol.SemanticTokenTypesKeyword, protocol.SemanticTokenTypesString, protocol.SemanticTokenTypesNumber,
	protocol.SemanticTokenTypesOperator, protocol.SemanticTokenTypesComment, protocol.SemanticTokenTypesDecorator,
	protocol.SemanticTokenTypesClass, protocol.SemanticTokenTypesEnum, protocol.SemanticTokenTypesStruct,
	protocol.SemanticTokenTypesProperty, protocol.SemanticTokenTypesEnumMember, protocol.SemanticTokenTypesParameter,
	protocol.SemanticTokenTypesVariable, protocol.SemanticTokenTypesFunction, protocol.SemanticTokenTypesType,
	protocol.SemanticTokenTypesNamespace,
}

// The modifiers of semantic tokens, as bits.
const (
	modifierDeclaration = 1 << iota
	modifierLibrary
)

func legend() protocol.SemanticTokensLegend {
	l := protocol.SemanticTokensLegend{TokenModifiers: []string{
		string(protocol.SemanticTokenModifiersDeclaration), string(protocol.SemanticTokenModifiersDefaultLibrary),
	}}
	for _, t := range tokenTypes {
		l.TokenTypes = append(l.TokenTypes, string(t))
	}
	return l
}

// colored is a token with its type.
type colored struct {
	start, end, modifiers int
	kind                  protocol.SemanticTokenTypes
}

// SemanticTokensFull implements protocol.Server.
func (s *Server) SemanticTokensFull(_ context.Context, params *protocol.SemanticTokensParams) (*protocol.SemanticTokens, error) {
	snap, f := s.located(params.TextDocument)
	if f == nil {
		return nil, nil
	}
	return &protocol.SemanticTokens{Data: f.encode(snap.colors(f))}, nil
}

// colors returns the tokens and comments of a file in order.
func (s *snapshot) colors(f *file) (all []colored) {
	refs, comments := s.index.refs[f], f.tree.Comments
	for _, t := range f.tree.Tokens {
		for len(comments) > 0 && comments[0].Loc.Start.Offset < t.Loc.Start.Offset {
			all = f.addComment(all, comments[0])
			comments = comments[1:]
		}
		for len(refs) > 0 && refs[0].span.Start.Offset < t.Loc.Start.Offset {
			refs = refs[1:]
		}
		c := colored{start: t.Loc.Start.Offset, end: t.Loc.End.Offset, kind: tokenType(t.Text)}
		if len(refs) > 0 && refs[0].span.Start.Offset < t.Loc.End.Offset {
			c.kind = refType(refs[0].kind)
			if refs[0].declares {
				c.modifiers |= modifierDeclaration
			}
		} else if c.kind == protocol.SemanticTokenTypesKeyword && slices.Contains(schema.BuiltinTypes, t.Text) {
			c.kind, c.modifiers = protocol.SemanticTokenTypesType, modifierLibrary
		}
		if c.kind != "" {
			all = append(all, c)
		}
	}
	for _, comment := range comments {
		all = f.addComment(all, comment)
	}
	return all
}

// addComment adds a comment line by line: a token has one line.
func (f *file) addComment(all []colored, c syntax.Comment) []colored {
	start := c.Loc.Start.Offset
	for line := range strings.Lines(f.slice(c.Loc)) {
		end := start + len(strings.TrimSuffix(line, "\n"))
		all = append(all, colored{start: start, end: end, kind: protocol.SemanticTokenTypesComment})
		start += len(line)
	}
	return all
}

// tokenType is the type of a token that is not a name.
func tokenType(text string) protocol.SemanticTokenTypes {
	switch first := text[0]; {
	case first == '"':
		return protocol.SemanticTokenTypesString
	case first >= '0' && first <= '9':
		return protocol.SemanticTokenTypesNumber
	case first == '@':
		return protocol.SemanticTokenTypesDecorator
	case first == '/':
		return protocol.SemanticTokenTypesString // a path
	case syntax.IsLetter(rune(first)):
		return protocol.SemanticTokenTypesKeyword
	case strings.ContainsAny(text, "=<>!&|-"):
		return protocol.SemanticTokenTypesOperator
	}
	return ""
}

func refType(k kind) protocol.SemanticTokenTypes {
	switch k {
	case kindEntity:
		return protocol.SemanticTokenTypesClass
	case kindEnum:
		return protocol.SemanticTokenTypesEnum
	case kindType:
		return protocol.SemanticTokenTypesStruct
	case kindField:
		return protocol.SemanticTokenTypesProperty
	case kindValue, kindRole:
		return protocol.SemanticTokenTypesEnumMember
	case kindParam:
		return protocol.SemanticTokenTypesParameter
	case kindHandler:
		return protocol.SemanticTokenTypesFunction
	case kindModule, kindAppName:
		return protocol.SemanticTokenTypesNamespace
	}
	return protocol.SemanticTokenTypesVariable
}

// encode returns tokens as the protocol sends them: each one relative to the one before it.
func (f *file) encode(all []colored) []uint32 {
	data := make([]uint32, 0, 5*len(all))
	var last protocol.Position
	for _, c := range all {
		at := f.at(c.start)
		delta := at
		if delta.Line -= last.Line; delta.Line == 0 {
			delta.Character -= last.Character
		}
		length := place(0, f.units(f.src[c.start:c.end])).Character
		index := slices.Index(tokenTypes, c.kind)
		data = append(data, delta.Line, delta.Character, length, uint32(index), uint32(c.modifiers)) //nolint:gosec // small numbers
		last = at
	}
	return data
}
