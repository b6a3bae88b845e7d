package symbols

import (
	"encoding/json"
	"fmt"
	"strings"

	"runner.example/internal/sourcemap"
	"runner.example/internal/wasm"
)

// Split moves debug information from a module to a debug file. The module keeps its names, and its code stays
// where it is. debug is nil if there is nothing to move. Equal modules make equal files.
func Split(module []byte) (stripped, debug []byte, err error) {
	sections, err := wasm.Sections(module)
	if err != nil {
		return nil, nil, err
	}
	t := &Table{module: module}
	stripped = append(make([]byte, 0, len(module)), module[:min(len(module), 8)]...)
	for _, s := range sections {
		switch {
		case s.IsCode():
			t.code = s
			stripped = append(stripped, module[s.Start:s.End]...)
		case !s.IsDebug():
			stripped = append(stripped, module[s.Start:s.End]...)
		case isUsed(s.Name):
			debug = wasm.AppendCustom(debug, s.Name, module[s.Body:s.End])
		}
	}
	if debug != nil {
		debug = wasm.AppendCustom(debug, codeDigest, t.digest())
	}
	return stripped, debug, nil
}

// SplitSourceMap makes the debug file of a module from its source map, and removes the place of the map from the
// module. Only the mappings and the names of sources are kept; rename changes those. The module must not have
// debug information before its code.
func SplitSourceMap(module, sourceMap []byte, rename func(source string) string) (stripped, debug []byte, err error) {
	if stripped, _, err = Split(module); err != nil {
		return nil, nil, err
	}
	var m sourcemap.Map
	if err := json.Unmarshal(sourceMap, &m); err != nil {
		return nil, nil, fmt.Errorf("read the source map: %w", err)
	}
	for i, source := range m.Sources {
		m.Sources[i] = rename(source)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return nil, nil, fmt.Errorf("write the source map: %w", err)
	}
	t := &Table{module: module}
	if err := t.findCode(); err != nil {
		return nil, nil, err
	}
	url := "data:application/json," + strings.NewReplacer("%", "%25", "#", "%23").Replace(string(text))
	debug = wasm.AppendCustom(nil, "sourceMappingURL", appendSized(nil, url))
	return stripped, wasm.AppendCustom(debug, codeDigest, t.digest()), nil
}
