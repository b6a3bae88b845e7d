package typescript_test

import (
	"strings"
	"testing"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
)

// domFile has the handlers of the tests below. Each claim is a condition that must hold.
const domFile = `import { ok } from "@runner/sdk";

const fails = (does: () => unknown): string => {
  try {
    does();
  } catch (error: any) {
    return error instanceof DOMException || error instanceof TypeError || error instanceof RangeError ? error.name : "another error";
  }
  return "";
};
const equal = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
const later = (milliseconds = 1) => new Promise((done) => setTimeout(done, milliseconds));

export function exceptions() {
  const error = new DOMException("m", "DataCloneError");
  const quota = new QuotaExceededError("q", { quota: 1, requested: 2 });
  const thrown = (() => { try { atob("?"); } catch (e: any) { return e; } })();
  const copy: any = structuredClone({ error, quota });
  class Mine extends DOMException {}
  return ok({
    shape: equal([Object.keys(error), error.name, error.message, error.code, String(error), Object.prototype.toString.call(error)], [[], "DataCloneError", "m", 25, "DataCloneError: m", "[object DOMException]"]),
    chain: Object.getPrototypeOf(DOMException) === Function.prototype && Object.getPrototypeOf(DOMException.prototype) === Error.prototype && error instanceof Error,
    constants: DOMException.INDEX_SIZE_ERR === 1 && (DOMException.prototype as any).DATA_CLONE_ERR === 25,
    codes: equal(["SyntaxError", "TimeoutError", "OperationError", "toString"].map((name) => new DOMException("", name).code), [12, 23, 0, 0]),
    brand: fails(() => DOMException.prototype.message) === "TypeError",
    engine: thrown instanceof DOMException && thrown.name === "InvalidCharacterError" && thrown.code === 5,
    stack: error.stack!.startsWith("DataCloneError: m\n    at exceptions (handlers/dom.ts:"),
    subclass: new Mine("a", "AbortError") instanceof Mine && new Mine("a", "AbortError").code === 20,
    quota: equal([quota.code, quota.quota, quota.requested, new QuotaExceededError().quota], [22, 1, 2, null]) && quota instanceof DOMException,
    quotaRefused: equal([() => new QuotaExceededError("", { quota: -1 }), () => new QuotaExceededError("", { quota: 2, requested: 1 }), () => new QuotaExceededError("", { quota: NaN })].map(fails), ["RangeError", "RangeError", "TypeError"]),
    cloned: copy.error instanceof DOMException && copy.error !== error && copy.error.code === 25 && copy.quota instanceof QuotaExceededError && copy.quota.requested === 2,
  });
}

export async function events() {
  const target = new EventTarget();
  const seen: unknown[] = [];
  const event = new Event("a", { cancelable: true, bubbles: true });
  const own = { handleEvent(this: unknown, e: Event) { seen.push(this === own, e.target === target, e.eventPhase, e.composedPath().length); } };
  target.addEventListener("a", own);
  target.addEventListener("a", own); // once is enough
  target.addEventListener("a", () => seen.push("capture"), true);
  target.addEventListener("a", (e) => { e.preventDefault(); seen.push(e.defaultPrevented); }, { passive: true });
  target.addEventListener("a", () => seen.push("once"), { once: true });
  const first = target.dispatchEvent(event);
  target.addEventListener("a", (e) => { e.returnValue = false; e.stopImmediatePropagation(); });
  target.addEventListener("a", () => seen.push("never"));
  const second = target.dispatchEvent(event);
  const control = new AbortController();
  target.addEventListener("b", () => seen.push("signal"), { signal: control.signal });
  control.abort();
  target.dispatchEvent(new Event("b"));
  let nested = "";
  target.addEventListener("c", (e) => (nested = fails(() => target.dispatchEvent(e))));
  target.dispatchEvent(new Event("c"));
  let global: unknown[] = [];
  globalThis.addEventListener("mine", (e) => (global = [e.target === globalThis, e.isTrusted]));
  dispatchEvent(new CustomEvent("mine", { detail: 1 }));
  const trusted = Object.getOwnPropertyDescriptor(event, "isTrusted")!;
  return ok({
    order: equal(seen, ["capture", true, true, 2, 1, false, "once", "capture", true, true, 2, 1, false]),
    results: first === true && second === false && event.defaultPrevented && event.eventPhase === 0 && event.currentTarget === null,
    nested: nested === "InvalidStateError",
    global: equal(global, [true, false]),
    trusted: trusted.configurable === false && trusted.get === Object.getOwnPropertyDescriptor(new Event("b"), "isTrusted")!.get,
    time: event.timeStamp > 0 && event.timeStamp <= performance.now(),
    refused: equal([() => new (Event as any)(), () => target.addEventListener("a", 1 as any), () => target.addEventListener("a", () => 1, { signal: null as any }), () => (target as any).dispatchEvent({}), () => EventTarget.prototype.addEventListener.call({}, "a", null)].map(fails), Array(5).fill("TypeError")),
    handler: (() => {
      const { signal } = new AbortController();
      const does = () => {};
      signal.onabort = does;
      const had = signal.onabort === does;
      signal.onabort = 1 as any;
      return had && signal.onabort === null;
    })(),
  });
}

export async function signals() {
  const order: string[] = [];
  const control = new AbortController();
  const { signal } = control;
  const followers = [AbortSignal.any([signal]), AbortSignal.any([AbortSignal.any([signal]), new AbortController().signal])];
  followers.forEach((one, i) => one.addEventListener("abort", () => order.push("follower " + i)));
  signal.onabort = (e) => order.push(e.type + " " + e.isTrusted);
  control.abort("why");
  control.abort("again");
  const timed = AbortSignal.timeout(1);
  await later(10);
  return ok({
    order: equal(order, ["abort true", "follower 0", "follower 1"]),
    reasons: equal([signal.reason, ...followers.map((one) => one.reason)], ["why", "why", "why"]),
    unlike: AbortSignal.any([AbortSignal.abort(1), AbortSignal.abort(2)]).reason === 1 && !AbortSignal.any([]).aborted,
    timed: timed.aborted && timed.reason instanceof DOMException && timed.reason.name === "TimeoutError" && fails(() => timed.throwIfAborted()) === "TimeoutError",
    standard: AbortSignal.abort().reason.code === 20 && new AbortController().signal.reason === undefined,
    refused: equal([() => new (AbortSignal as any)(), () => AbortSignal.timeout(-1), () => AbortSignal.any([{}] as any)].map(fails), ["TypeError", "TypeError", "TypeError"]),
  });
}

export async function messages() {
  const { port1, port2 } = new MessageChannel();
  const bytes = new ArrayBuffer(4);
  const inner = new MessageChannel();
  const got = new Promise<MessageEvent>((done) => (port2.onmessage = done));
  port1.postMessage({ bytes, port: inner.port2 }, [bytes, inner.port2]);
  const event = await got;
  const through = new Promise<MessageEvent>((done) => (event.ports[0].onmessage = done));
  inner.port1.postMessage("through");
  const closed = new Promise((done) => (port2.onclose = done));
  port1.close();
  return ok({
    data: event.data.bytes.byteLength === 4 && bytes.byteLength === 0 && event.data.port === event.ports[0] && event.isTrusted,
    through: (await through).data === "through",
    closed: ((await closed) as Event).type === "close",
    refused: equal([() => port2.postMessage(1, [port2]), () => port1.postMessage(() => 1), () => structuredClone(port2), () => port1.postMessage(1, [inner.port2]),
      () => structuredClone({ get a() { return structuredClone(inner.port1, { transfer: [inner.port1] }); } }, { transfer: [inner.port1] })].map(fails), Array(5).fill("DataCloneError")),
  });
}

export async function reports() {
  const seen: string[] = [];
  addEventListener("error", (e) => { seen.push(e.message, e.error.message, e.filename); e.preventDefault(); });
  addEventListener("unhandledrejection", (e) => { seen.push(String(e.reason)); e.preventDefault(); });
  reportError(new RangeError("reported"));
  setTimeout(() => { throw new Error("timer"); });
  queueMicrotask(() => { throw new Error("job"); });
  addEventListener("rejectionhandled", (e: PromiseRejectionEvent) => seen.push("handled " + e.reason));
  const rejected = Promise.reject("rejected");
  await later(10);
  rejected.catch(() => {});
  await later(10);
  return ok(seen);
}
export async function unreported() {
  addEventListener("error", () => {}); // prevents nothing
  reportError(new Error("only logged"));
  return ok("fine");
}

export function timing() {
  const mark = performance.mark("m", { startTime: 5, detail: { a: 1 } });
  const measure = performance.measure("x", { start: "m", end: 12 });
  const entries = performance.getEntries().map((e) => [e.name, e.entryType, e.startTime, e.duration]);
  performance.clearMarks();
  return ok({
    clock: performance.now() > 0 && Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 1000 && performance instanceof EventTarget,
    entries: equal(entries, [["m", "mark", 5, 0], ["x", "measure", 5, 7]]) && mark.detail.a === 1 && measure.detail === null,
    cleared: equal(performance.getEntriesByType("mark"), []) && performance.getEntriesByName("x").length === 1,
    refused: equal([() => performance.measure("y", "none"), () => performance.mark("n", { startTime: -1 }), () => performance.measure("y", { start: 1 }, "x"), () => new (Performance as any)()].map(fails), ["SyntaxError", "TypeError", "TypeError", "TypeError"]),
    agent: navigator.userAgent === "runner",
    console: Object.prototype.toString.call(console) === "[object console]" && Object.getOwnPropertyNames(Object.getPrototypeOf(console)).length === 0,
  });
}
export async function observed() {
  const names: string[] = [];
  const observer = new PerformanceObserver((list, self) => { names.push(...list.getEntries().map((e) => e.name)); self.disconnect(); });
  performance.mark("before");
  observer.observe({ type: "mark", buffered: true });
  performance.mark("after");
  await later(5);
  performance.mark("disconnected");
  await later(5);
  return ok(names);
}

export function clones() {
  const buffer = new (ArrayBuffer as any)(8, { maxByteLength: 16 });
  const tracking = structuredClone(new Uint8Array(buffer));
  (tracking.buffer as any).resize(12);
  const sparse: any = [1, , 3];
  sparse.name = "s";
  const error: any = new RangeError("r", { cause: [1] });
  error.extra = 1;
  const at = /x/g;
  at.lastIndex = 3;
  class Point { x = 1; get y() { return 2; } }
  const copy: any = structuredClone({ sparse, error, at, big: Object(5n), point: new Point(), file: new File(["abc"], "a.txt", { type: "a/b", lastModified: 7 }), ["__proto__x"]: 1 });
  const odd = Object.defineProperty({}, "__proto__", { value: 1, enumerable: true });
  const short = new Uint8Array(buffer, 4);
  Object.defineProperty(Object.prototype, "extra", { set() { throw new Error("it is called"); }, configurable: true });
  const own = structuredClone(Object.defineProperty({}, "extra", { value: 1, enumerable: true }));
  delete (Object.prototype as any).extra;
  buffer.resize(2);
  return ok({
    tracking: tracking.length === 12,
    sparse: copy.sparse.length === 3 && !(1 in copy.sparse) && copy.sparse.name === "s",
    error: copy.error instanceof RangeError && copy.error.message === "r" && copy.error.cause[0] === 1 && copy.error.extra === undefined && copy.error.stack === error.stack,
    at: copy.at.lastIndex === 0 && copy.at.flags === "g",
    big: typeof copy.big === "object" && copy.big.valueOf() === 5n,
    point: !(copy.point instanceof Point) && equal(copy.point, { x: 1 }),
    file: copy.file instanceof File && copy.file.name === "a.txt" && copy.file.size === 3 && copy.file.lastModified === 7,
    odd: Object.hasOwn(structuredClone(odd), "__proto__") && Object.hasOwn(own, "extra"),
    refused: equal([() => {}, Symbol(), new Event("a"), Promise.resolve(), new WeakMap(), [].values(), short, new URL("http://a")].map((value) => fails(() => structuredClone(value))), Array(8).fill("DataCloneError")),
    twice: fails(() => structuredClone(1, { transfer: [buffer, buffer] })) === "DataCloneError" && !buffer.detached,
    nothing: fails(() => (structuredClone as any)()) === "TypeError",
  });
}

export function urls() {
  const params = new URLSearchParams("a=1&b=2");
  const seen: string[] = [];
  for (const [name] of params) {
    seen.push(name);
    if (name === "a") params.delete("a"); // the list is live
  }
  const iterator = params.entries();
  return ok({
    live: equal(seen, ["a"]) || equal(seen, ["a", "c"]),
    iterator: String(iterator) === "[object URLSearchParams Iterator]" && equal(Object.keys(Object.getPrototypeOf(iterator)), ["next"]) && params[Symbol.iterator] === params.entries,
    enumerable: Object.keys(URL.prototype).includes("href") && Object.keys(URL).includes("parse"),
    few: equal([() => (params as any).append("a"), () => new (URL as any)(), () => (URL as any).canParse(), () => new URL(Symbol() as any)].map(fails), Array(4).fill("TypeError")),
    record: fails(() => new URLSearchParams({ [Symbol()]: 1 } as any)) === "TypeError" && String(new URLSearchParams({ a: "1" })) === "a=1",
  });
}

export async function timers() {
  const seen: string[] = [];
  setTimeout(() => seen.push("wraps"), 2 ** 32);
  clearTimeout({} as any);
  clearTimeout(undefined);
  await later(10);
  return ok({ wraps: equal(seen, ["wraps"]), text: fails(() => setTimeout("1" as any)) === "TypeError" });
}
`

// domApp is the module of domFile.
func domApp(t *testing.T) func(handler string) toolchaintest.Answer {
	t.Helper()
	m := toolchaintest.Module(t, map[string]string{"handlers/dom.ts": domFile})
	return func(handler string) toolchaintest.Answer {
		t.Helper()
		return toolchaintest.Ask(t, m, handler, abi.Request{})
	}
}

func TestThePlatformsInterfacesAreAsTheStandardsHaveThem(t *testing.T) {
	ask := domApp(t)
	for handler, least := range map[string]int{
		"exceptions": 11, "events": 8, "signals": 6, "messages": 4, "timing": 6, "clones": 11, "urls": 5, "timers": 2,
	} {
		t.Run(handler, func(t *testing.T) { claimsHold(t, ask(handler), least) })
	}
	if got := ask("observed"); got.Body != `["before","after"]` {
		t.Errorf("an observer was given %d %s\n%s", got.Status, got.Body, got.Log)
	}
}

func TestListenersOfTheGlobalHearOfUncaughtErrors(t *testing.T) {
	ask := domApp(t)
	got := ask("reports")
	for _, want := range []string{`"Uncaught RangeError: reported","reported","handlers/dom.ts"`, `"timer"`, `"job"`, `"rejected"`, `"handled rejected"`} {
		if got.Status != 200 || !strings.Contains(got.Body, want) {
			t.Errorf("the listeners got %d %s, want %s", got.Status, got.Body, want)
		}
	}
	if got.Log != "" {
		t.Errorf("what was handled is logged: %s", got.Log)
	}
	if got := ask("unreported"); got.Body != `"fine"` || !strings.Contains(got.Log, "only logged") {
		t.Errorf("answers %d %s, and logs %s", got.Status, got.Body, got.Log)
	}
}

// A part is in a module only if the handlers' script mentions it.
func TestPartsOfThePlatformAreInModulesThatNameThem(t *testing.T) {
	for source, want := range map[string]string{
		"performance.now()":                     "undefined undefined undefined",
		"performance.mark(\"a\")":               "undefined undefined function",
		"new MessageChannel()":                  "function undefined undefined",
		"(0, globalThis).reportError":           "undefined function undefined",
		"addEventListener(\"error\", () => {})": "undefined function undefined",
	} {
		m := toolchaintest.Module(t, map[string]string{"handlers/a.ts": "import { ok } from \"@runner/sdk\";\nexport function a() {\n  " + source +
			";\n  const at = globalThis as any;\n  return ok([[\"MessageP\", \"ort\"], [\"Error\", \"Event\"], [\"Performance\", \"Mark\"]].map((name) => typeof at[name.join(\"\")]).join(\" \"));\n}\n"})
		if got := toolchaintest.Ask(t, m, "a", abi.Request{}); got.Body != `"`+want+`"` {
			t.Errorf("%s: there are %s, want %s\n%s", source, got.Body, want, got.Log)
		}
	}
}
