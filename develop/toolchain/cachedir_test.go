package toolchain_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/toolchaintest"
)

func TestACacheThatOtherUsersCanWriteToIsNotUsed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": "export const a = () => 1;\n"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // after the engine has started: interpreted, it evaluates for seconds
	for mode, used := range map[os.FileMode]bool{0o700: true, 0o777: false} {
		cache := t.TempDir()
		if err := os.Chmod(cache, mode); err != nil {
			t.Fatal(err)
		}
		if _, _, err := toolchain.Build(ctx, toolchain.Options{Dir: dir, Name: "n", CacheDir: cache}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if kept, err := os.ReadDir(cache); err != nil || used != (len(kept) > 0) {
			t.Errorf("with mode %o it holds %v, %v", mode, kept, err)
		}
	}
}
