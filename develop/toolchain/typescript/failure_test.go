package typescript_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
)

func testdata(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The engine says "not a function". The log says what is not, as V8 does, or else what the engine
// says: never something else.
func TestTheLogNamesWhatIsNotAFunction(t *testing.T) {
	source := testdata(t, "mistakes/handlers/mistakes.js")
	var v8 map[string]string
	if err := json.Unmarshal([]byte(testdata(t, "mistakes/v8.json")), &v8); err != nil || len(v8) < 80 {
		t.Fatal(len(v8), err)
	}
	m := toolchaintest.Module(t, map[string]string{"handlers/mistakes.js": source})
	lines := strings.Split(source, "\n")
	named := regexp.MustCompile(` is not (a function|a constructor|iterable)`)
	for name, want := range v8 {
		got := toolchaintest.Ask(t, m, name, abi.Request{})
		line := 2 + slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "export function "+name+"()") })
		at := strings.TrimSpace(lines[line-1])
		if !strings.HasPrefix(got.Log, "failed: exception: ") || strings.Count(got.Log, "failed: ")+strings.Count(got.Log, "uncaught: ") != 1 {
			t.Errorf("%s %s: the log is\n%s", name, at, got.Log)
			continue
		}
		message, _, _ := strings.Cut(strings.TrimPrefix(got.Log, "failed: exception: "), "\n")
		if message != want && (strings.HasPrefix(name, "exact") || named.MatchString(message) && !strings.HasSuffix(message, ": value is not iterable")) {
			t.Errorf("%s: %s\nsays %s\nwant %s", name, at, message, want)
		}
		if place := fmt.Sprintf("handlers/mistakes.js:%d:", line); !strings.Contains(got.Log, place) && strings.HasPrefix(name, "exact") {
			t.Errorf("%s: %s: the log has no %s\n%s", name, at, place, got.Log)
		}
	}
}

// The bundler gives a name that two files have to one of them with a number. A name that is not in
// the source is not shown.
func TestTheLogNamesNothingThatIsNotInTheSource(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{
		"handlers/a.ts":     "import { get as other } from \"./lib/b.ts\";\nconst get: any = {};\nexport const a = () => get.it();\nexport const b = () => other();\nexport const c = () => (get as any)\n  .it!<string>();\n",
		"handlers/lib/b.ts": "const get2: any = 5;\nexport const get: any = get2;\nexport const it: any = {};\n",
		"handlers/z.ts":     "import * as all from \"./lib/b.ts\";\nconst get: any = 1;\nexport const z = () => get();\nexport const y = () => all.it.x();\n",
	})
	for handler, want := range map[string]string{
		"a": "TypeError: get.it is not a function\n    at a (handlers/a.ts:3:28)\n",
		"b": "TypeError: not a function\n    at b (handlers/a.ts:4:24)\n",
		"c": "TypeError: get.it is not a function\n    at c (handlers/a.ts:6:4)\n",
		"y": "TypeError: not a function\n    at y (handlers/z.ts:4:31)\n",
		"z": "TypeError: get is not a function\n    at z (handlers/z.ts:3:24)\n",
	} {
		if got := toolchaintest.Ask(t, m, handler, abi.Request{}); !strings.Contains(got.Log, "failed: exception: "+want) {
			t.Errorf("%s: want %s\n%s", handler, want, got.Log)
		}
	}
}

// The names that the build shortens must not show: libraries test constructor.name.
func TestGlobalsHaveTheNamesAndLengthsOfNodes(t *testing.T) {
	var node, here map[string][2]any
	if err := json.Unmarshal([]byte(testdata(t, "globals/node.json")), &node); err != nil || len(node) < 1000 {
		t.Fatal(len(node), err)
	}
	m := toolchaintest.Module(t, map[string]string{
		"handlers/lib/walk.js": testdata(t, "globals/walk.js"),
		"handlers/a.js":        "import { list } from \"./lib/walk.js\";\nexport const globals = () => [Intl, list()][1];\n",
	})
	got := toolchaintest.Ask(t, m, "globals", abi.Request{})
	if err := json.Unmarshal([]byte(got.Body), &here); err != nil {
		t.Fatal(err, got.Status, got.Log)
	}
	// Where Node.js is not as the standard: Web IDL counts the required parameters.
	standard := map[string]string{
		"structuredClone": "structuredClone 1", "setTimeout": "setTimeout 1", "setInterval": "setInterval 1", "setImmediate": "setImmediate 1",
		"clearTimeout": "clearTimeout 0", "clearInterval": "clearInterval 0", "clearImmediate": "clearImmediate 0",
		"MessagePort.prototype.postMessage": "postMessage 1", "MessagePort.prototype.close": "close 0",
		"FormData": "FormData 0", "FormData.prototype.constructor": "FormData 0",
	}
	both := 0
	for path, ours := range here {
		theirs, ok := node[path]
		if !ok {
			continue
		}
		both++
		got, want := fmt.Sprint(ours[0], " ", ours[1]), fmt.Sprint(theirs[0], " ", theirs[1])
		if text, ok := standard[path]; ok {
			want = text
		}
		if got != want {
			t.Errorf("%s: name and length are %s, want %s", path, got, want)
		}
	}
	if both < 700 {
		t.Errorf("%d functions are in both", both)
	}
}

const stacks = `import { ok, query } from "@runner/sdk";
const deep = (n: number): Error => n ? deep(n - 1) : new RangeError("far");
class Mine extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "Mine";
  }
}
class Captured extends Error {
  constructor(message: string) {
    super(message);
    (Error as any).captureStackTrace(this, Captured);
  }
}
export const plain = () => ok(new Error("a").stack);
export const nested = () => ok(deep(1).stack);
export const subclass = () => ok(new Mine("b", { cause: new Error("c") }).stack);
export const captured = () => ok(new Captured("d").stack);
export const aggregate = () => ok(new AggregateError([new Error("e")], "f").stack);
export const platform = () => ok(new DOMException("g", "AbortError").stack);
export const noMessage = () => ok(new TypeError().stack);
export function engine() {
  try {
    (null as any).x;
  } catch (error) {
    return ok((error as Error).stack);
  }
}
export function native() {
  try {
    [1].map(5 as any);
  } catch (error) {
    return ok((error as Error).stack);
  }
}
export async function later() {
  await null;
  const fail = async () => {
    await null;
    throw new Error("h");
  };
  return ok(await fail().catch((error) => error.stack));
}
export function object() {
  const at: any = { name: "It", message: "is" };
  (Error as any).captureStackTrace(at);
  return ok(at.stack);
}
export function changed() {
  const error = new Error("i");
  error.message = "j"; // before the stack is read for the first time: as in V8
  const first = error.stack;
  error.message = "k";
  const same = error.stack === first;
  error.stack = "my own";
  const frozen = Object.freeze(new Error("l"));
  return ok([first!.split("\n")[0], same, error.stack, frozen.stack === frozen.stack, Object.keys(new Error("m")), JSON.stringify(error),
    Object.getOwnPropertyDescriptor(new Error("n"), "stack")?.enumerable ?? false]);
}
export function prepared() {
  const made = Error as any;
  made.prepareStackTrace = (_: Error, sites: any[]) => sites[0];
  const site: any = new Error("o").stack;
  made.prepareStackTrace = undefined;
  return ok([site.getFunctionName(), site.getFileName(), site.getLineNumber(), site.getColumnNumber()]);
}
export const host = () => query("Nothing").get().catch((error) => ok(error.stack));
`

func TestAStackIsAsInNodeWithThePlacesOfTheSource(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/stacks.ts": stacks})
	line := func(text string) int {
		return 1 + slices.IndexFunc(strings.Split(stacks, "\n"), func(line string) bool { return strings.Contains(line, text) })
	}
	at := func(function, text string) string {
		return fmt.Sprintf("\n    at %s (handlers/stacks.ts:%d:)", function, line(text))
	}
	column := regexp.MustCompile(`(:\d+:)\d+\)`)
	for handler, want := range map[string]string{
		"plain":     "Error: a" + at("plain", "const plain"),
		"nested":    "RangeError: far" + at("deep", "const deep") + at("deep", "const deep") + at("nested", "const nested"),
		"subclass":  "Mine: b" + at("Mine", "super(message, options)") + at("subclass", "const subclass"),
		"captured":  "Error: d" + at("captured", "const captured"),
		"aggregate": "AggregateError: f" + at("aggregate", "const aggregate"),
		"platform":  "AbortError: g" + at("platform", "const platform"),
		"noMessage": "TypeError" + at("noMessage", "const noMessage"),
		"engine":    "TypeError: cannot read property 'x' of null" + at("engine", "(null as any).x"),
		"native":    "TypeError: not a function\n    at map (<anonymous>)" + at("native", "[1].map(5"),
		"later":     "Error: h" + at("fail", "new Error(\"h\")"),
		"object":    "It: is" + at("object", "captureStackTrace(at)"),
	} {
		var stack string
		got := toolchaintest.Ask(t, m, handler, abi.Request{})
		if err := json.Unmarshal([]byte(got.Body), &stack); err != nil || column.ReplaceAllString(stack, "$1)") != want {
			t.Errorf("%s: the stack is\n%s\nwant\n%s\n%s", handler, stack, want, got.Log)
		}
	}
	if got := toolchaintest.Ask(t, m, "changed", abi.Request{}); got.Body != `["Error: j",true,"my own",true,[],"{}",false]` {
		t.Errorf("changed: %s\n%s", got.Body, got.Log)
	}
	if got := toolchaintest.Ask(t, m, "prepared", abi.Request{}); got.Body != fmt.Sprintf(`["prepared","handlers/stacks.ts",%d,25]`, line("new Error(\"o\")")) {
		t.Errorf("prepared: %s\n%s", got.Body, got.Log)
	}
}

const streamFailures = `const text = () => new ReadableStream({ start(c) { c.enqueue("text"); c.close(); } });
const brace = () => new ReadableStream({ start(c) { c.enqueue(Uint8Array.of(123)); c.close(); } });
const wrong = () => ReadableStream.from([Uint8Array.of(255)]);
const form = { headers: { "content-type": "multipart/form-data; boundary=x" } };
export const chunk = async () => await new Response(text()).text();
export const json = async () => await new Response(brace()).json();
export const formData = async () => await new Response(brace(), form).formData();
export const read = async () => await wrong().pipeThrough(new TextDecoderStream("utf-8", { fatal: true })).getReader().read();
export const loop = async () => { for await (const _ of wrong().pipeThrough(new TextDecoderStream("utf-8", { fatal: true }))); };
export const noBytes = async () => await text().pipeThrough(new TextDecoderStream() as any).getReader().read();
export const gunzip = async () => await wrong().pipeThrough(new DecompressionStream("gzip")).getReader().read();
export const gunzipEnd = async () => await ReadableStream.from([]).pipeThrough(new DecompressionStream("gzip")).getReader().read();
export const clone = async () => { const from = ReadableStream.from([() => 1]); await structuredClone(from, { transfer: [from as any] }).getReader().read(); };
export const fetched = async () => await fetch("http://localhost", { method: "POST", body: text(), duplex: "half" } as any);
export const timeout = async () => { const signal = AbortSignal.timeout(1); await new Promise((_, failed) => signal.addEventListener("abort", () => failed(signal.reason))); };
export const now = () => structuredClone([{ deep: () => 1 }]);
export const deeper = () => structuredClone([[[[[[[[[[[[[[[[() => 1]]]]]]]]]]]]]]]]);
export const own = async () => { const error = new Error("mine"); await ReadableStream.from([1]).pipeThrough(new TransformStream({ transform() { throw error; } })).getReader().read().catch((same) => { throw same === error ? error : "another"; }); };
`

// What fails in a job of the runtime has no frame of a handler. Its place is that of the await, and not a place of the SDK.
func TestWhatFailsInAStreamHasThePlaceWhereItIsAwaited(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/failures.ts": streamFailures})
	for i, text := range strings.Split(streamFailures, "\n") {
		name, isHandler := strings.CutPrefix(text, "export const ")
		if !isHandler {
			continue
		}
		name, _, _ = strings.Cut(name, " ")
		got := toolchaintest.Ask(t, m, name, abi.Request{})
		if place := fmt.Sprintf("(handlers/failures.ts:%d:", i+1); !strings.HasPrefix(got.Log, "failed: exception: ") || !strings.Contains(got.Log, "at "+name+" "+place) {
			t.Errorf("%s: the log is\n%s", name, got.Log)
		}
	}
}
