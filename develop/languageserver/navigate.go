package languageserver

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"go.lsp.dev/protocol"

	"runner.example/internal/diag"
)

// atPosition returns the name at a place of a schema file.
func (s *Server) atPosition(p protocol.TextDocumentPositionParams) (*snapshot, ref, bool) {
	snap, f := s.located(p.TextDocument)
	if f == nil {
		return snap, ref{}, false
	}
	r, ok := snap.index.at(f, f.offset(p.Position))
	return snap, r, ok
}

func (f *file) location(s diag.Span) protocol.Location {
	return protocol.Location{URI: f.uri(), Range: f.of(s)}
}

// Definition implements protocol.Server. From a source of handlers it leads to the routes, functions and jobs of
// the handler.
func (s *Server) Definition(_ context.Context, params *protocol.DefinitionParams) (protocol.DefinitionResult, error) {
	snap, r, ok := s.atPosition(params.TextDocumentPositionParams)
	switch {
	case ok && r.kind == kindHandler:
		return s.handlerPlaces(snap, r.name), nil
	case ok:
		if d := snap.index.declared[r.symbol]; d != nil {
			return protocol.LocationSlice{d.file.location(d.span)}, nil
		}
	case snap != nil && snap.file(pathOf(params.TextDocument.URI)) == nil:
		return s.endpointPlaces(snap, pathOf(params.TextDocument.URI), params.Position), nil
	}
	return nil, nil
}

// handlerPlaces are the places of a handler in the sources; if there are none, those in functions and jobs.
func (s *Server) handlerPlaces(snap *snapshot, name string) (places protocol.LocationSlice) {
	for _, src := range s.sourcesOf(snap.dir) {
		for _, h := range src.handlers {
			if src.isNamed(h, name) {
				places = append(places, protocol.Location{URI: src.uri(), Range: src.between(h.start, h.end)})
			}
		}
	}
	if len(places) > 0 {
		return places
	}
	if d := snap.index.declared[symbol{kind: kindHandler, name: name}]; d != nil {
		places = append(places, d.file.location(d.span))
	}
	return places
}

// endpointPlaces are the routes, functions and jobs of the handler that the line of a source declares.
func (s *Server) endpointPlaces(snap *snapshot, path string, at protocol.Position) (places protocol.LocationSlice) {
	src, ok := s.sourceAt(path)
	if !ok {
		return nil
	}
	offset := src.offset(at)
	for _, h := range src.handlers {
		if offset < h.first || offset > h.last {
			continue
		}
		for _, e := range snap.index.endpoints {
			if src.isNamed(h, e.handler.Name) {
				places = append(places, e.file.location(e.handler.Loc))
			}
		}
	}
	return places
}

// References implements protocol.Server.
func (s *Server) References(_ context.Context, params *protocol.ReferenceParams) ([]protocol.Location, error) {
	snap, r, ok := s.atPosition(params.TextDocumentPositionParams)
	if !ok {
		return nil, nil
	}
	var places []protocol.Location
	for _, place := range snap.index.places(r.symbol) {
		if params.Context.IncludeDeclaration || !place.declares || r.kind == kindHandler {
			places = append(places, place.file.location(place.span))
		}
	}
	if r.kind == kindHandler && params.Context.IncludeDeclaration {
		for _, place := range s.handlerPlaces(snap, r.name) {
			if isSchema(pathOf(place.URI)) {
				continue
			}
			places = append(places, place)
		}
	}
	return unique(places), nil
}

// unique sorts places and removes those that are there twice: a name in a grant on two entities means a field of
// both.
func unique(places []protocol.Location) []protocol.Location {
	slices.SortFunc(places, func(a, b protocol.Location) int {
		return cmp.Or(strings.Compare(string(a.URI), string(b.URI)), compareRanges(a.Range, b.Range))
	})
	return slices.Compact(places)
}

func compareRanges(a, b protocol.Range) int {
	return cmp.Or(cmp.Compare(a.Start.Line, b.Start.Line), cmp.Compare(a.Start.Character, b.Start.Character))
}

// DocumentHighlight implements protocol.Server.
func (s *Server) DocumentHighlight(_ context.Context, params *protocol.DocumentHighlightParams) ([]protocol.DocumentHighlight, error) {
	snap, r, ok := s.atPosition(params.TextDocumentPositionParams)
	if !ok {
		return nil, nil
	}
	var marks []protocol.DocumentHighlight
	for _, place := range snap.index.places(r.symbol) {
		if place.file != r.file {
			continue
		}
		mark := protocol.DocumentHighlight{Range: place.file.of(place.span), Kind: protocol.DocumentHighlightKindRead}
		if place.declares {
			mark.Kind = protocol.DocumentHighlightKindWrite
		}
		marks = append(marks, mark)
	}
	return marks, nil
}
