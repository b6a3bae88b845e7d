package typescript_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
)

// regexpHandlers compare the module's regular expressions with those of the engine: what runs in a
// build is the engine's own.
const regexpHandlers = `import { text } from "@runner/sdk";
import { changeCount, make, result, resultOfChange } from "../cases.mjs";

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

const changed = Array.from({ length: changeCount }, (_, i) => resultOfChange(i));

export function changes() {
  return text(changed.map((want, i) => (resultOfChange(i) === want ? "" : i + "\n  module " + resultOfChange(i) + "\n  engine " + want + "\n")).join("") || "same");
}
`

func TestRegularExpressionsMatchAsInTheEngine(t *testing.T) {
	rounds, count := 6, 500
	if testing.Short() {
		rounds = 1
	}
	if os.Getenv("RUNNER_SOAK") != "" {
		rounds = 240
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
	if a := toolchaintest.Ask(t, m, "changes", abi.Request{}); a.Status != 200 || a.Body != "same" {
		t.Errorf("expressions whose class is changed: %d %.3000s %s", a.Status, a.Body, a.Log)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Log("not compared with Node.js, which is not installed")
		return
	}
	script := fmt.Sprintf(`import { comparable, result } from "./testdata/regexp/cases.mjs";
console.log(Array.from({ length: %d }, (_, i) => (comparable(%d + i) ? result(%[2]d + i) : "")).join("\n"));`, count, first)
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
		if want[i] != "" && have[i] != want[i] {
			t.Errorf("%d:\n  engine  %s\n  Node.js %s", first+i, have[i], want[i])
		}
	}
}

// catastrophicHandlers search a text of so many characters for an expression that took exponential time elsewhere.
const catastrophicHandlers = `import { text, type RouteRequest } from "@runner/sdk";
import { catastrophic } from "../catastrophic.mjs";
export function search(req: RouteRequest) {
  const [expression, make] = (catastrophic as Record<string, [RegExp, (n: number) => string]>)[req.headers.name];
  return text(String(make(Number(req.headers.n)).search(expression)));
}
`

// The fuel of a search grows as the text, except for expressions whose work cannot be noted.
func TestCatastrophicExpressionsTakeLittleTime(t *testing.T) {
	file, err := os.ReadFile("testdata/regexp/catastrophic.mjs")
	if err != nil {
		t.Fatal(err)
	}
	m := toolchaintest.Module(t, map[string]string{"catastrophic.mjs": string(file), "handlers/search.ts": catastrophicHandlers})
	search := func(name string, n int, cpu time.Duration) (uint64, error) {
		call := toolchaintest.NewCall(t.Context(), &abi.Request{Headers: []abi.Pair{{Name: []byte("name"), Value: []byte(name)}, {Name: []byte("n"), Value: fmt.Append(nil, n)}}}, slog.DiscardHandler)
		call.Host = hostabi.NewHost(hostabi.Host{Logger: call.Host.Logger, Limits: hostabi.Limits{CPU: cpu}})
		usage, err := m.Measure(call, "search")
		if err == nil && call.Response.Status != 200 {
			t.Errorf("%s: %d %s", name, call.Response.Status, toolchaintest.Reports(call))
		}
		return uint64(usage.Fuel), err
	}
	for _, name := range []string{
		"nested", "equal alternatives", "overlapping alternatives", "nested, may be empty", "counted group", "OWASP e-mail", "OWASP Java class",
		"Stack Overflow 2016", "Cloudflare 2019", "moment, time spans", "marked, brackets", "ansi-regex CVE-2021-3807",
		"ua-parser-js CVE-2022-25927", "color-string CVE-2021-29060", "trim-newlines",
	} {
		const n = 20_000
		one, err := search(name, n, time.Minute)
		two, twoErr := search(name, 2*n, time.Minute)
		if err != nil || twoErr != nil || two > one*5/2 {
			t.Errorf("%s: %d units of fuel for %d characters, %d for %d: %v, %v", name, one, n, two, 2*n, err, twoErr)
		}
	}
	for _, name := range []string{"back reference", "in a lookahead", "two counted groups"} {
		if _, err := search(name, 300, 20*time.Millisecond); fault.CodeOf(err) != fault.HandlerTimeout {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A search that needs more memory than the handler has throws the engine's error, and frees what it had.
func TestASearchThatNeedsTooMuchMemoryThrows(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/full.ts": `import { text } from "@runner/sdk";
export function full() {
  const long = "ab".repeat(1 << 20), errors: string[] = [];
  for (let i = 0; i < 3; i++) {
    try {
      errors.push(String(/^(?:(a)|(b))*$/.test(long)));
    } catch (error) {
      errors.push(String(error));
    }
  }
  errors.push(String(/^(?:a|b)*$/.test(long)), long.replace(/ab/g, "").length + "");
  return text(errors.join("\n"));
}
`})
	const refused = "InternalError: out of memory in regexp execution\n"
	if a := toolchaintest.Ask(t, m, "full", abi.Request{}); a.Body != strings.Repeat(refused, 3)+"true\n0" {
		t.Errorf("%d %q %s", a.Status, a.Body, a.Log)
	}
}

// Results of matches that need more memory than the handler has throw the engine's error.
func TestMatchesThatNeedTooMuchMemoryThrow(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/full.ts": `import { text } from "@runner/sdk";
const named = /(?<a>.)(?<b>..)(?<c>.)/g, ways: (() => unknown)[] = [
  () => { named.lastIndex = 0; return named.exec("abcd"); },
  () => [..."abcdabcd".matchAll(named)],
  () => { const [a, ...b] = [named, 1, 2]; return [a, b]; },
  () => "abcdabcd".match(/(?<a>.)(.)/),
];
export function full() {
  const errors = new Set<string>();
  for (let round = 0; round < 40; round++) {
    const kept: unknown[] = [];
    try {
      for (let size = 1 << 20; size > 8 << (round >> 2); ) {
        try {
          kept.push(new Uint8Array(size));
        } catch {
          size >>= 1;
        }
      }
      for (;;) kept.push(ways[round % ways.length]());
    } catch (error) {
      kept.length = 0;
      // There may be no memory for the error (null), or for its message.
      if (error && !String(error).endsWith("Invalid error message")) errors.add(String(error));
    }
  }
  named.lastIndex = 0;
  return text([...errors].join() + JSON.stringify([..."abcd".matchAll(named)].map((m) => m.groups)));
}
`})
	if a := toolchaintest.Ask(t, m, "full", abi.Request{}); a.Body != `InternalError: out of memory[{"a":"a","b":"bc","c":"d"}]` {
		t.Errorf("%d %q %s", a.Status, a.Body, a.Log)
	}
}
