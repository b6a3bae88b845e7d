package node

import (
	"context"
	"crypto/sha256"

	"runner.example/internal/fault"
	"runner.example/node/release"
	"runner.example/runtime"
)

// readModule reads the file of a module by its SHA-256, and its debug file, which may be nil. It searches the stored
// releases, then the app directory dir, which runner dev serves without storing it. If only the debug file cannot be
// read, it returns the module and the error.
func readModule(ctx context.Context, releases *release.Releases, dir string,
	sum [sha256.Size]byte) (module, debug []byte, err error) {
	module, debug, err = releases.Module(ctx, sum)
	if fault.CodeOf(err) != fault.NotFound {
		return module, debug, err
	}
	modules, unread := runtime.ReadModules(dir)
	for _, m := range modules {
		if sha256.Sum256(m.Wasm) == sum {
			return m.Wasm, m.Debug, m.DebugErr
		}
	}
	if unread != nil {
		err = unread
	}
	return nil, nil, err
}
