package toolchain

import (
	"fmt"
	"path/filepath"

	"runner.example/develop/toolchain/typescript"
)

// BundlePage bundles the file entry and its imports, a script or a style sheet for browsers, and writes the result to out.
// Both paths are relative to dir. written has the paths of all files that it has written, each of them atomically. If the
// sources have errors, the error is a *DiagnosticsError, and nothing is written.
func BundlePage(dir, entry, out string) (written []string, warnings *DiagnosticsError, err error) {
	files, found, err := typescript.BundlePage(dir, entry, out)
	if err != nil {
		return nil, nil, fmt.Errorf("bundle %s: %w", entry, err)
	}
	diagnostics := &DiagnosticsError{List: found, Sources: sources(dir, found)}
	if found.HasErrors() {
		return nil, nil, diagnostics
	}
	for _, f := range files {
		if err := replaceFile(f.Path, f.Content); err != nil {
			return nil, nil, fmt.Errorf("write the bundle: %w", err)
		}
		name, err := filepath.Rel(dir, f.Path)
		if err != nil {
			name = f.Path
		}
		written = append(written, filepath.ToSlash(name))
	}
	if len(found) == 0 {
		diagnostics = nil
	}
	return written, diagnostics, nil
}
