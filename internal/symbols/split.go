package symbols

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"runner.example/internal/sourcemap"
	"runner.example/internal/wasm"
)

// Split moves DWARF from a module to a debug file. The module keeps its name section. debug is nil if there is
// nothing to move. The output depends only on the input.
func Split(module []byte) (stripped, debug []byte, err error) {
	t, sections, err := newTable(module)
	if err != nil {
		return nil, nil, err
	}
	stripped = append(make([]byte, 0, len(module)), module[:sections[0].Start]...)
	for _, s := range sections {
		if !s.IsDebug() {
			stripped = append(stripped, module[s.Start:s.End]...)
		} else if isUsed(s.Name) {
			debug = wasm.AppendCustom(debug, s.Name, module[s.Body:s.End])
		}
	}
	if debug != nil {
		debug = wasm.AppendCustom(debug, codeDigest, t.digest())
	}
	return stripped, debug, nil
}

// SplitSourceMap makes the debug file of a module from its source map, and removes the URL of the map from the
// module. rename returns the names of the sources in the debug file; the map's root is dropped. The section with
// the URL must be behind the code section, because the map has offsets in the file.
func SplitSourceMap(module, sourceMap []byte, rename func(source string) string) (stripped, debug []byte, err error) {
	t, _, err := newTable(module)
	if err == nil {
		stripped, _, err = Split(module)
	}
	if err != nil {
		return nil, nil, err
	}
	var m sourcemap.Map
	if err := json.Unmarshal(sourceMap, &m); err != nil {
		return nil, nil, fmt.Errorf("read the source map: %w", err)
	}
	for i, source := range m.Sources {
		m.Sources[i] = rename(source)
	}
	m.SourceRoot = ""
	text, err := json.Marshal(m) // without the contents of the sources
	if err != nil {
		return nil, nil, fmt.Errorf("write the source map: %w", err)
	}
	url := "data:application/json," + strings.NewReplacer("%", "%25", "#", "%23").Replace(string(text))
	section := append(binary.AppendUvarint(nil, uint64(len(url))), url...)
	return stripped, wasm.AppendCustom(wasm.AppendCustom(nil, sourceMapURL, section), codeDigest, t.digest()), nil
}
