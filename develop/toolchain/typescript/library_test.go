package typescript_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
)

// libraryHandlers compare the module with the engine: what runs in a build is the engine's own code.
const libraryHandlers = `import { text } from "@runner/sdk";
import { result } from "../%s";

const first = %d;
const engine = Array.from({ length: %d }, (_, i) => result(first + i));

export function compare() {
  let differing = "";
  for (let i = 0; i < engine.length; i++) {
    const have = result(first + i);
    if (have !== engine[i]) differing += (first + i) + "\n  module " + have + "\n  engine " + engine[i] + "\n";
  }
  return text(differing || "same");
}
export function all() {
  return text(engine.join("\n"));
}
`

// compareLibrary runs result(seed) of a file in a build, in a handler and in Node.js for so many seeds,
// and more with RUNNER_SOAK. Results that begin with "~" are not compared with Node.js, which does not run seeds
// whose comparable(seed) is false.
func compareLibrary(t *testing.T, file string, seeds int) {
	t.Helper()
	rounds := 1
	if os.Getenv("RUNNER_SOAK") != "" {
		rounds = 100
	}
	files := map[string]string{}
	for _, name := range []string{"values.mjs", file} {
		content, err := os.ReadFile(filepath.Join("testdata/library", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(content)
	}
	for round := range rounds {
		first := round * seeds
		t.Run(fmt.Sprint("seeds from ", first), func(t *testing.T) {
			files["handlers/library.ts"] = fmt.Sprintf(libraryHandlers, file, first, seeds)
			m := toolchaintest.Module(t, files)
			if a := toolchaintest.Ask(t, m, "compare", abi.Request{}); a.Status != 200 || a.Body != "same" {
				t.Errorf("%d %.3000s %s", a.Status, a.Body, a.Log)
			}
			if _, err := exec.LookPath("node"); err != nil {
				t.Log("not compared with Node.js, which is not installed")
				return
			}
			script := fmt.Sprintf(`import * as cases from "./testdata/library/%s";
console.log(Array.from({ length: %d }, (_, i) => (cases.comparable?.(%d + i) === false ? "" : cases.result(%[3]d + i))).join("\n"));`, file, seeds, first)
			node, err := exec.Command("node", "--input-type=module", "--eval", script).Output()
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Split(strings.TrimSuffix(string(node), "\n"), "\n")
			have := strings.Split(toolchaintest.Ask(t, m, "all", abi.Request{}).Body, "\n")
			if len(have) != seeds || len(want) != seeds {
				t.Fatalf("%d and %d results", len(have), len(want))
			}
			for i := range want {
				if want[i] != "" && have[i] != want[i] && !strings.HasPrefix(want[i], "~") && !strings.HasPrefix(have[i], "~") {
					t.Errorf("%d:\n  engine  %s\n  Node.js %s", first+i, have[i], want[i])
				}
			}
		})
	}
}

func TestOperatorsOfAModuleAreThoseOfTheEngine(t *testing.T) { compareLibrary(t, "numbers.mjs", 3000) }

func TestIterationInAModuleIsThatOfTheEngine(t *testing.T) { compareLibrary(t, "iterate.mjs", 3000) }
func TestTextsArraysAndObjectsOfAModuleAreThoseOfTheEngine(t *testing.T) {
	compareLibrary(t, "texts.mjs", 3000)
}

// usualHandlers do what has a fast path, and beside it what has none.
const usualHandlers = `import { text } from "@runner/sdk";
const whole = 3_000_000_019, half = 0.5;
const remainders = (n: number) => { let sum = 0; for (let i = 0; i < 2000; i++) sum += (n + i) % 65_537; return text(String(sum)); };
export const wholeRemainders = () => remainders(whole);
export const otherRemainders = () => remainders(whole + half);
const bits = (n: number) => { let sum = 0; for (let i = 0; i < 2000; i++) sum ^= (n + i) & 0xffff; return text(String(sum)); };
export const wordBits = () => bits(whole);
export const otherBits = () => bits(whole * 2 ** 40);
const loops = (of: Iterable<number>) => { let sum = 0; for (let i = 0; i < 2000; i++) for (const x of of) sum += x; return text(String(sum)); };
export const arrayLoops = () => loops([1, 2, 3, 4]);
export const otherLoops = () => loops(Object.assign([1, 2, 3, 4], { [Symbol.iterator]: Array.prototype.values }));
const matches = (e: RegExp) => { let sum = 0; for (let i = 0; i < 2000; i++) for (const m of "1a".matchAll(e)) sum += m.index; return text(String(sum)); };
export const plainMatches = () => matches(/(?<digit>\d)/g);
export const otherMatches = () => matches(Object.assign(/(?<digit>\d)/g, { more: 1 }));
const replaces = (expression: RegExp) => text(String("ab".repeat(1000).replace(expression, (c) => c + c).length));
export const usualReplace = () => replaces(/[ab]/g);
export const otherReplace = () => replaces(/(?<n>[ab])/g);
const joins = (n: number) => { let sum = 0; for (let i = 0; i < 2000; i++) sum += ` + "`${i + n}-${i + n}`" + `.length; return text(String(sum)); };
export const usualJoin = () => joins(0);
export const otherJoin = () => joins(half);
const fixes = (places: number) => { let sum = 0; for (let i = 0; i < 2000; i++) sum += (i / 8).toFixed(places).length; return text(String(sum)); };
export const usualFixed = () => fixes(2);
export const otherFixed = () => fixes(4);
const sorts = (all: number[]) => text(String(all.map((_, i) => (i * 7919) % 2000).concat(all).sort((a, b) => a - b).length));
export const usualSort = () => sorts(Array.from({ length: 2000 }, () => 1));
export const otherSort = () => sorts(Object.assign(Array.from({ length: 2000 }, () => 1), { length: 2001 }));
`

// Common values take the fast path: they take less fuel than others.
func TestCommonValuesTakeTheFastPath(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/usual.ts": usualHandlers})
	for _, row := range []struct {
		fast, slow string
	}{
		{"wholeRemainders", "otherRemainders"},
		{"wordBits", "otherBits"},
		{"arrayLoops", "otherLoops"},
		{"plainMatches", "otherMatches"},
		{"usualReplace", "otherReplace"},
		{"usualJoin", "otherJoin"},
		{"usualFixed", "otherFixed"},
		{"usualSort", "otherSort"},
	} {
		fuel := func(handler string) float64 {
			call := toolchaintest.NewCall(t.Context(), &abi.Request{}, slog.DiscardHandler)
			usage, err := m.Measure(call, handler)
			if err != nil || call.Response.Status != 200 {
				t.Fatal(handler, err, call.Response.Status)
			}
			return float64(usage.Fuel)
		}
		const operations, each = 2000, 8 // units of fuel
		if more := fuel(row.slow) - fuel(row.fast); more < operations*each {
			t.Errorf("%s takes %.0f units of fuel more than %s", row.slow, more, row.fast)
		}
	}
}

// fullHandlers run each function without free memory, and again with it.
const fullHandlers = `import { text } from "@runner/sdk";
const key = (i: number) => "k" + i;
const names = Array.from({ length: 5000 }, (_, i) => key((i * 7919) % 5000)), numbers = names.map((_, i) => (i * 7919) % 5000);
const long = "a<b>".repeat(5000);
const work = [
  () => names.toSorted()[9],
  () => numbers.toSorted((a, b) => a - b)[9],
  () => long.replace(/[<>]/g, (c) => c + c).length,
  () => { let n = 0; for (let i = 0; i < 5000; i++) n += ` + "`${i}-${names[i]}-€`" + `.length; return n; },
  () => Array.from({ length: 5000 }, (_, i) => ({ a: i, b: key(i), c: [i] })).at(-1)!.b,
  () => Array.from({ length: 5000 }, (_, i) => (i / 8).toFixed(2)).join("").length,
];
export function full() {
  const before = work.map((f) => f());
  let failed = 0;
  for (let keep = 0; keep < 40; keep++) {
    const taken: Uint8Array[] = [];
    for (let size = 1 << 20; size >= 64; size >>= 1) {
      try {
        for (;;) taken.push(new Uint8Array(size));
      } catch {}
    }
    taken.length = Math.max(0, taken.length - keep);
    for (const f of work) {
      try {
        f();
      } catch {
        failed++;
      }
    }
  }
  const after = work.map((f) => f());
  return text((failed > 9 ? "failed" : failed) + (JSON.stringify(before) === JSON.stringify(after) ? " and then the same" : " differs"));
}
`

// What fails without memory throws, and frees what it had.
func TestFunctionsWithoutMemoryThrow(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/full.ts": fullHandlers})
	if a := toolchaintest.Ask(t, m, "full", abi.Request{}); a.Body != "failed and then the same" {
		t.Errorf("%d %q %s %v", a.Status, a.Body, a.Log, a.Err)
	}
}
