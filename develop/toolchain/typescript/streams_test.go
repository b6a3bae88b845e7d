package typescript_test

import (
	"os"
	"path"
	"testing"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
	"runner.example/runtime/sandbox"
)

// The claims are those of the Streams Standard; section 8.4 and 8.5 of the Encoding Standard for texts.
func TestStreamsAreAsTheStandardHasThem(t *testing.T) {
	m := streamsApp(t)
	for _, row := range []struct {
		handler string
		claims  int
	}{
		{"defaultStreams", 16}, {"iteration", 9}, {"tees", 7}, {"byteStreams", 10}, {"atBuild", 2}, {"cost", 1},
		{"writableStreams", 9}, {"transforms", 6}, {"pipes", 11}, {"texts", 6}, {"transfers", 7},
	} {
		t.Run(row.handler, func(t *testing.T) {
			claimsHold(t, toolchaintest.Ask(t, m, row.handler, abi.Request{}), row.claims)
		})
	}
}

// streamsApp is the module of testdata/streams.
func streamsApp(t *testing.T) *sandbox.Module {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"readable.ts", "writable.ts", "lib/claims.ts"} {
		text, err := os.ReadFile(path.Join("testdata/streams/handlers", name))
		if err != nil {
			t.Fatal(err)
		}
		files["handlers/"+name] = string(text)
	}
	return toolchaintest.Module(t, files)
}
