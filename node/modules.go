package node

import (
	"context"
	"crypto/sha256"
	"fmt"

	"runner.example/internal/fault"
	"runner.example/release"
	"runner.example/runtime"
)

// ModuleReader returns a function that reads the file of a module by its SHA-256, and its debug file, for the
// places of failures: from the stored releases, else from the app directory dir, as runner dev serves it. If only
// the debug file cannot be read, the error is beside the module. The function may be called by any goroutine.
func ModuleReader(ctx context.Context, releases *release.Releases, dir string) func(sum [sha256.Size]byte) (module, debug []byte, err error) {
	return func(sum [sha256.Size]byte) (module, debug []byte, err error) {
		module, debug, err = releases.Module(ctx, sum)
		if fault.CodeOf(err) != fault.NotFound {
			return module, debug, err
		}
		modules, err := runtime.ReadModules(dir)
		for _, m := range modules {
			if sha256.Sum256(m.Wasm) == sum {
				return m.Wasm, m.Debug, m.DebugErr
			}
		}
		if err == nil {
			err = fmt.Errorf("no release and no file in build/ has the module with the SHA-256 %x", sum)
		}
		return nil, nil, err
	}
}
