package typescript_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
)

// regexpHandlers compare the module's regular expressions with those of the engine: what runs in a
// build is the engine's own.
const regexpHandlers = `import { text } from "@runner/sdk";
import { make, result } from "../cases.mjs";

const first = %d;
const engine = Array.from({ length: %d }, (_, i) => result(first + i));

export function compare() {
  let differing = "";
  engine.forEach((want, i) => {
    const have = result(first + i);
    if (have !== want) differing += (first + i) + ": " + make(first + i)?.join(" ") + "\n  module " + have + "\n  engine " + want + "\n";
  });
  return text(differing || "same");
}
export function all() {
  return text(engine.join("\n"));
}
`

func TestRegularExpressionsMatchAsInTheEngine(t *testing.T) {
	rounds, count := 1, 3000
	if os.Getenv("RUNNER_SOAK") != "" {
		rounds = 40
	}
	for round := range rounds {
		t.Run(fmt.Sprint("seeds from ", round*count), func(t *testing.T) { compareRegexps(t, round*count, count) })
	}
}

func compareRegexps(t *testing.T, first, count int) {
	cases, err := os.ReadFile("testdata/regexp/cases.mjs")
	if err != nil {
		t.Fatal(err)
	}
	m := toolchaintest.Module(t, map[string]string{"cases.mjs": string(cases), "handlers/regexp.ts": fmt.Sprintf(regexpHandlers, first, count)})
	if a := toolchaintest.Ask(t, m, "compare", abi.Request{}); a.Status != 200 || a.Body != "same" {
		t.Errorf("%d %.3000s %s", a.Status, a.Body, a.Log)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Log("not compared with Node.js, which is not installed")
		return
	}
	script := fmt.Sprintf(`import { result } from "./testdata/regexp/cases.mjs";
console.log(Array.from({ length: %d }, (_, i) => result(%d + i)).join("\n"));`, count, first)
	node, err := exec.Command("node", "--input-type=module", "--eval", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(node), "\n"), "\n")
	have := strings.Split(toolchaintest.Ask(t, m, "all", abi.Request{}).Body, "\n")
	if len(have) != count || len(want) != count {
		t.Fatalf("%d and %d results", len(have), len(want))
	}
	for i := range want {
		if have[i] != want[i] {
			t.Errorf("%d:\n  engine  %s\n  Node.js %s", first+i, have[i], want[i])
		}
	}
}
