package languages_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// thrown are handlers that throw. The line with the mark is that of the first frame.
const thrown = `import { ok, query, text, type RouteRequest } from "@runner/sdk";
const boom = (what: string) => new Error(what);
export const sync = () => { throw boom("sync"); };
export async function later() {
  await null;
  throw new TypeError("later", { cause: boom("why") }); // later
}
export async function microtask() {
  queueMicrotask(() => {
    throw new Error("in a microtask"); // microtask
  });
  await new Promise(() => {});
}
export function microtaskBehind() {
  queueMicrotask(() => {
    throw new Error("behind the answer"); // microtaskBehind
  });
  return ok(1);
}
export async function timer() {
  setTimeout(() => {
    throw new Error("in a timer"); // timer
  });
  await new Promise(() => {});
}
export function listener() {
  const target = new EventTarget();
  let heard = 0;
  target.addEventListener("x", () => {
    throw new Error("in a listener"); // listener
  });
  target.addEventListener("x", () => heard++);
  target.dispatchEvent(new Event("x"));
  return ok(heard);
}
export function abort() {
  const abort = new AbortController();
  let heard = 0;
  abort.signal.addEventListener("abort", () => {
    throw new Error("at an abort"); // abort
  });
  abort.signal.addEventListener("abort", () => heard++);
  abort.abort();
  return ok(heard);
}
export function rejection() {
  Promise.reject(new Error("nobody waits")); // rejection
  return ok(1);
}
export const getter = () => ({
  get a() {
    throw new Error("in a getter"); // getter
  },
});
export const toJSON = () => ok({
  toJSON() {
    throw new Error("in toJSON"); // toJSON
  },
});
export const toText = () => text({
  toString() {
    throw new Error("in toString"); // toText
  },
} as any);
export const proxy = () => ok(new Proxy({ a: 1 }, {
  get() {
    throw new Error("in a trap"); // proxy
  },
}));
export const thenable = () => ({
  then() {
    throw new Error("in then"); // thenable
  },
});
export const iterator = () => new Response("x", {
  headers: {
    *[Symbol.iterator]() {
      throw new Error("in an iterator"); // iterator
    },
  } as any,
});
export const nothing = () => { throw null; };
export const notDefined = () => { throw undefined; };
export const number = () => { throw 7; };
export const thing = () => { throw { why: "no reason" }; };
export const frozen = () => { throw Object.freeze(new Error("frozen")); };
export const odd = () => { throw Object.defineProperty(new Error("x"), "message", { get() { throw 1; } }); };
export function deep(): number {
  return 1 + deep(); // deep
}
export const misspelt = (req: any) => ok(req.query.get("x")); // misspelt
export const undefinedMember = (req: RouteRequest) => ok((req.query.none as any).length); // undefinedMember
export const all = () => Promise.any([Promise.reject(boom("one")), Promise.reject(boom("two"))]);
export const many = async () => {
  Promise.reject(new Error("beside it"));
  throw new Error("the reason"); // many
};
export async function caught(req: RouteRequest) {
  try {
    await query(req.query.entity as any).limit(1);
  } catch {}
  throw boom("of its own");
}
export const hoards = () => { const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1)); };
export const spins = () => { for (;;) Math.max(1); };
export const settles = () => new Promise(() => {});
`

// Whatever a script throws, and wherever, is one record with its message and its place.
func TestWhateverAScriptThrowsIsOneRecordWithItsPlace(t *testing.T) {
	rows := []struct {
		handler, kind, cause string // cause is a pattern
		status               int    // below 500: the record is an uncaught error
		frame                string // of the first frame; empty: any function
	}{
		{"sync", "exception", "Error: sync", 500, "boom"},
		{"later", "exception", `TypeError: later\\nbecause of Error: why at handlers/thrown\.ts:2:\d+`, 500, "later"},
		{"microtask", "exception", "Error: in a microtask", 500, ""},
		{"microtaskBehind", "exception", "Error: behind the answer", 200, ""},
		{"timer", "exception", "Error: in a timer", 500, ""},
		{"listener", "exception", "Error: in a listener", 200, ""},
		{"abort", "exception", "Error: at an abort", 200, ""},
		{"rejection", "unhandled rejection", "Error: nobody waits", 200, "rejection"},
		{"getter", "exception", "Error: in a getter", 500, ""},
		{"toJSON", "exception", "Error: in toJSON", 500, "toJSON"},
		{"toText", "exception", "Error: in toString", 500, "toString"},
		{"proxy", "exception", "Error: in a trap", 500, "get"},
		{"thenable", "exception", "Error: in then", 500, "then"},
		{"iterator", "exception", "Error: in an iterator", 500, ""},
		{"nothing", "exception", "thrown: null", 500, "-"},
		{"notDefined", "exception", "thrown: undefined", 500, "-"},
		{"number", "exception", "thrown: 7", 500, "-"},
		{"thing", "exception", `thrown: {"why":"no reason"}`, 500, "-"},
		{"frozen", "exception", "Error: frozen", 500, "frozen"},
		{"odd", "exception", "thrown: an error that cannot be described, because its getters throw", 500, "odd"},
		{"deep", "exception", "RangeError: Maximum call stack size exceeded", 500, "deep"},
		{"misspelt", "exception", `TypeError: req\.query\.get is not a function`, 500, "misspelt"},
		{"undefinedMember", "exception", `TypeError: Cannot read properties of undefined \(reading 'length'\)`, 500, "undefinedMember"},
		{"all", "exception", `AggregateError\\nwith Error: one at handlers/thrown\.ts:2:\d+\\nwith Error: two at handlers/thrown\.ts:2:\d+`, 500, "-"},
		{"many", "exception", "Error: the reason", 500, "many"},
		{"caught", "exception", "Error: of its own", 500, "boom"}, // and not the client's unknown entity
		{"settles", "exception", "the promise that the handler returned can never settle", 500, "-"},
		{"hoards", "memory limit", ".*", 500, "hoards"},
		{"spins", "CPU limit", ".*", 504, "spins"},
	}
	var routes strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&routes, "  GET /%s -> %[1]s (timeout: 60s)\n", row.handler)
	}
	a := harness.NewApp(t, "app thrown\nroutes(\"/\", auth: none, rateLimit: none) {\n"+routes.String()+"}\n",
		"[telemetry]\nformat = \"json\"\n[sandbox]\ncpu = \"2s\"\nmemory = \"16mb\"\n")
	a.Write("handlers/thrown.ts", thrown)
	a.Must("build")
	s := a.Serve()
	ids := map[string]string{}
	for _, row := range rows {
		got := s.Get("/"+row.handler+"?entity=Nothing", "")
		ids[row.handler] = got.Header.Get("X-Request-Id")
		if got.Status != row.status {
			t.Errorf("%s answers %d %s, want %d", row.handler, got.Status, got.Body, row.status)
		}
		if strings.HasSuffix(row.handler, "listener") && got.Body != "1" || row.handler == "abort" && got.Body != "1" {
			t.Errorf("%s answers %s: the second listener was not called", row.handler, got.Body)
		}
	}
	s.Stop() // then the log is complete
	type record struct {
		Level, Msg, RequestID, Route, Handler, Kind, Cause string
		Frames                                             []string
	}
	records := map[string][]record{}
	for line := range strings.Lines(s.Stderr.String()) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err == nil && (r.Level == "ERROR" || r.Level == "WARN") && r.RequestID != "" {
			records[r.RequestID] = append(records[r.RequestID], r)
		}
	}
	lines := strings.Split(thrown, "\n")
	for _, row := range rows {
		all := records[ids[row.handler]]
		message := "handler failed"
		if row.status < 500 {
			message = "uncaught error"
		}
		if row.handler == "many" && len(all) == 2 && all[0].Msg == "uncaught error" && all[0].Kind == "unhandled rejection" {
			all = all[1:]
		}
		if len(all) != 1 || all[0].Msg != message || all[0].Kind != row.kind || all[0].Handler != row.handler || all[0].Route != "/"+row.handler {
			t.Errorf("%s: the records are %+v, want one %q of the kind %q", row.handler, all, message, row.kind)
			continue
		}
		if r := all[0]; !regexp.MustCompile(`^(?:` + row.cause + `)$`).MatchString(r.Cause) {
			t.Errorf("%s: the cause is %q, want %s", row.handler, r.Cause, row.cause)
		}
		if row.frame == "-" {
			continue
		}
		line := 1 + slices.IndexFunc(lines, func(line string) bool { return strings.HasSuffix(line, "// "+row.handler) })
		if line == 0 {
			line = 1 + slices.IndexFunc(lines, func(line string) bool {
				return strings.HasPrefix(line, "export const "+row.handler+" ") || row.frame == "boom" && strings.HasPrefix(line, "const boom")
			})
		}
		want := regexp.MustCompile(fmt.Sprintf(`^(?:%s \()?handlers/thrown\.ts:%d:\d+\)?$`, row.frame, line))
		if row.frame == "" {
			want = regexp.MustCompile(fmt.Sprintf(`^(?:\S.* \()?handlers/thrown\.ts:%d:\d+\)?$`, line))
		}
		if frames := all[0].Frames; len(frames) == 0 || len(frames) > 32 || !want.MatchString(frames[0]) {
			t.Errorf("%s: the frames are %q, want the first to be as %s", row.handler, frames, want)
		}
	}
}
