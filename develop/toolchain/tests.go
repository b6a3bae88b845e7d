package toolchain

import (
	"context"

	"runner.example/develop/toolchain/typescript"
)

// BuildTests builds one module of the test files of an app, which are paths in its directory. If the files have errors, the
// error is a *DiagnosticsError. log receives the lines that the files log while they are evaluated.
func BuildTests(ctx context.Context, dir string, files []string, log func(string)) (wasm []byte, warnings *DiagnosticsError, err error) {
	built, found, err := typescript.BuildTests(ctx, typescript.Options{Dir: dir, Files: files, CacheDir: EngineCache(), Log: log})
	if err != nil {
		return nil, nil, err
	}
	diagnostics := &DiagnosticsError{List: found, Sources: sources(dir, found)}
	switch {
	case found.HasErrors():
		return nil, nil, diagnostics
	case len(found) > 0:
		return built.Wasm, diagnostics, nil
	}
	return built.Wasm, nil, nil
}
