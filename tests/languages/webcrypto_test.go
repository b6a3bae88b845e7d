package languages_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"runner.example/tests/harness"
)

// standard are the errors that the standard says where Node.js 20 has others.
var standard = map[string]string{
	"an HMAC key as spki":            "NotSupportedError",
	"bytes as a JWK":                 "TypeError",
	"export what is not extractable": "InvalidAccessError",
	"export HKDF":                    "NotSupportedError",
	"export HMAC as pkcs8":           "NotSupportedError",
	"wrap what is not extractable":   "InvalidAccessError",
	"wrap HKDF":                      "NotSupportedError",
}

// crypto.subtle in a handler and in Node.js give the same, with the same names of errors, and each
// understands the keys, signatures and ciphertexts of the other.
func TestCryptoSubtleIsThatOfNode(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(harness.Testdata("webcrypto"), "subtle.js"))
	if err != nil {
		t.Fatal(err)
	}
	a := harness.NewApp(t, packageSchema, "[sandbox]\ncpu = \"5m\"\nhost_calls = 100000\nmoved_bytes = \"100mb\"\n[runtime]\ntimeout = \"5m\"\nmax_timeout = \"5m\"\n[password]\nqueue_wait = \"1m\"\n")
	a.Write("handlers/run.js", string(source))
	a.Write("handlers/package.json", `{"type":"module"}`)
	a.Write("handlers/app.ts", `import { ok } from "@runner/sdk";
import { run } from "./run.js";
import peer from "./peer.json";
export const use = async () => ok(await run(peer));
`)
	type report struct {
		Made json.RawMessage
		Same map[string]any
	}
	parse := func(text []byte) (r report) {
		t.Helper()
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatalf("%v: %.500s", err, text)
		}
		return r
	}
	node := func(peer string) report {
		t.Helper()
		a.Write("handlers/peer.json", peer)
		command := exec.Command("node", "--input-type=module", "--eval", `import { run } from "./handlers/run.js"; import { readFileSync } from "node:fs";
const peer = JSON.parse(readFileSync("handlers/peer.json")); console.log(JSON.stringify(await run(peer)))`)
		command.Dir = a.Dir
		out, err := command.Output()
		if err != nil {
			t.Fatalf("node: %v", err)
		}
		return parse(out)
	}
	first := node("null")
	a.Write("handlers/peer.json", string(first.Made))
	a.Must("build")
	got := parse([]byte(a.Must("call", "use")))
	want := node(string(got.Made))
	if len(got.Same) != 4 || got.Same["checked"] == nil {
		t.Errorf("the report has %d parts", len(got.Same))
	}
	failures, _ := want.Same["failures"].(map[string]any)
	for call, name := range standard {
		if failures[call] == nil {
			t.Errorf("subtle.js has no call %q", call)
		}
		failures[call] = []any{name, true}
	}
	if diff := cmp.Diff(want.Same, got.Same); diff != "" {
		t.Errorf("the handler differs from Node.js (-node +handler):\n%s", diff)
	}
}
