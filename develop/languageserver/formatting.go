package languageserver

import (
	"bytes"
	"context"
	"strings"

	"go.lsp.dev/protocol"

	"runner.example/internal/diag"
	"runner.example/schema/format"
)

// Formatting implements protocol.Server. A document with syntax errors is not changed.
func (s *Server) Formatting(_ context.Context, params *protocol.DocumentFormattingParams) ([]protocol.TextEdit, error) {
	_, f := s.located(params.TextDocument)
	if f == nil {
		return nil, nil
	}
	formatted, list := format.Format(diag.Source{Name: f.name(), Text: f.src})
	if list.HasErrors() || bytes.Equal(formatted, f.src) {
		return nil, nil
	}
	return []protocol.TextEdit{f.replacement(string(formatted))}, nil
}

// replacement replaces the lines between those that both texts begin and end with.
func (t *text) replacement(with string) protocol.TextEdit {
	old := string(t.src)
	start, end := 0, 0
	for start < min(len(old), len(with)) && old[start] == with[start] {
		start++
	}
	start = strings.LastIndexByte(old[:start], '\n') + 1
	for end < min(len(old), len(with))-start && old[len(old)-1-end] == with[len(with)-1-end] {
		end++
	}
	if i := strings.IndexByte(old[len(old)-end:], '\n'); i >= 0 {
		end -= i + 1
	} else {
		end = 0
	}
	middle := with[start : len(with)-end]
	if t.crlf {
		middle = strings.ReplaceAll(middle, "\n", "\r\n")
	}
	return t.edit(start, len(old)-end, middle)
}
