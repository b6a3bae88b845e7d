package symbols

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"runner.example/internal/sourcemap"
)

// mapping is a segment of a source map: the code from offset on comes from this line of the source.
type mapping struct {
	offset       uint32
	source       int32 // -1: unknown
	line, column uint32
}

// The limits of a source map.
const (
	maxSourceMapBytes = 16 << 20
	maxMappings       = 1 << 20
)

// inlineMap returns the source map in the content of a section sourceMappingURL: a u32 size and a URL, which must
// be a data URL. Other URLs are not fetched.
func inlineMap(section []byte) (text []byte, ok bool) {
	r := reader{data: section}
	rest, ok := bytes.CutPrefix(r.bytes(r.uleb()), []byte("data:"))
	kind, data, found := strings.Cut(string(rest), ",")
	if !ok || !found {
		return nil, false
	}
	data, err := url.PathUnescape(data)
	if err == nil && strings.HasSuffix(kind, ";base64") {
		text, err = base64.StdEncoding.DecodeString(data)
		return text, err == nil
	}
	return []byte(data), err == nil
}

// readSourceMap reads a source map of the module: its columns are offsets in the module's file.
func (t *Table) readSourceMap(text []byte) error {
	if len(text) > maxSourceMapBytes {
		return fmt.Errorf("cannot be used: the source map has %d bytes, and may have %d", len(text), maxSourceMapBytes)
	}
	var m sourcemap.Map
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("cannot be used: the source map is damaged: %w", err)
	}
	t.sourceMap, t.sources = nil, m.Sources
	for i, source := range m.Sources {
		if m.SourceRoot != "" && !path.IsAbs(source) {
			t.sources[i] = strings.TrimSuffix(m.SourceRoot, "/") + "/" + source
		}
	}
	for s := range m.Segments() {
		if s.GeneratedLine > 0 || len(t.sourceMap) == maxMappings {
			break
		}
		if s.GeneratedColumn >= 0 && s.GeneratedColumn < len(t.module) {
			t.sourceMap = append(t.sourceMap, mapping{
				uint32(s.GeneratedColumn), int32(s.Source), uint32(s.Line + 1), uint32(s.Column + 1),
			})
		}
	}
	slices.SortStableFunc(t.sourceMap, func(a, b mapping) int { return cmp.Compare(a.offset, b.offset) })
	return nil
}

// mapped returns the file, line and column of an instruction, as the source map has them.
func (t *Table) mapped(offset int64) (Frame, bool) {
	i, _ := slices.BinarySearchFunc(t.sourceMap, offset+1, func(m mapping, o int64) int {
		return cmp.Compare(int64(m.offset), o)
	})
	if i == 0 {
		return Frame{}, false
	}
	m := t.sourceMap[i-1]
	if m.source < 0 || int64(m.offset) < t.bodyStart(offset) {
		return Frame{}, false
	}
	return Frame{File: display(t.sources[m.source]), Line: int(m.line), Column: int(m.column)}, true
}

// bodyStart returns the offset of the body of the function that contains the instruction. The code section has a u32
// count of bodies, each a u32 size and its bytes.
func (t *Table) bodyStart(offset int64) int64 {
	r := reader{data: t.module[t.code.Body:t.code.End]}
	r.uleb()
	for len(r.data) > 0 {
		size := r.uleb()
		start := int64(t.code.End - len(r.data))
		if r.skip(size); offset < start+int64(size) {
			return start
		}
	}
	return offset
}
