package typescript_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
)

// fetchFile has the handlers of the tests below; ORIGIN is the server's origin.
const fetchFile = `import { ok, HostError } from "@runner/sdk";

export async function one() {
  const answer = await fetch("ORIGIN/echo?q=ä", { method: "post", headers: { "X-A": "1" }, body: "hé" });
  const again = answer.clone();
  return ok([answer.ok, answer.status, answer.url, answer.headers.get("X-Saw"), await answer.json(), answer.bodyUsed,
    (await again.bytes()).length, await answer.text().catch((e) => e.name)]);
}
export async function bytes() {
  const answer = await fetch(new URL("ORIGIN/binary"), { method: "PUT", body: Uint8Array.of(0, 255) });
  const form = await fetch("ORIGIN/echo", { method: "POST", body: new URLSearchParams({ a: "b c" }) });
  return ok([[...new Uint8Array(await answer.arrayBuffer())], await form.json()]);
}
export async function together() {
  const all = await Promise.all(["a", "b", "c"].map(async (name) => (await fetch("ORIGIN/meet/" + name)).text()));
  return ok(all);
}
export async function timed() {
  const order: string[] = [];
  const slow = fetch("ORIGIN/held").then((a) => a.text()).then((text) => order.push(text));
  await new Promise((done) => setTimeout(done, 5));
  order.push("timer");
  await fetch("ORIGIN/release");
  await slow;
  return ok(order);
}
export async function refused() {
  const codes = [];
  for (const [url, init] of [["https://elsewhere.example/", {}], ["ORIGIN/held", { timeout: 0.01 }], ["ORIGIN/echo", { headers: { host: "x" } }]] as [string, object][]) {
    codes.push(await fetch(url, init).catch((e) => (e instanceof HostError ? e.code : String(e))));
  }
  codes.push(await fetch("no url").catch((e) => e.name), await fetch("ORIGIN/echo", { method: "POST", body: {} as any }).catch((e) => e.name));
  return ok(codes);
}
export async function redirected() {
  const kept = await fetch("ORIGIN/away", { redirect: "manual" });
  const followed = await fetch("ORIGIN/away", { redirect: "follow" });
  return ok([kept.status, kept.headers.get("location"), kept.redirected, followed.status, followed.redirected, followed.url === "ORIGIN/echo",
    await fetch("ORIGIN/away", { redirect: "error" }).catch((e) => e.code), await fetch("ORIGIN/away", { redirect: "x" as any }).catch((e) => e.name)]);
}
export async function aborted() {
  const said: unknown[] = [];
  const controller = new AbortController();
  controller.signal.addEventListener("abort", (event) => said.push(event.type));
  const slow = fetch("ORIGIN/never", { signal: controller.signal });
  setTimeout(() => controller.abort(), 5);
  said.push(await slow.catch((e) => e.name), controller.signal.aborted);
  said.push(await fetch("ORIGIN/never", { signal: AbortSignal.timeout(5) }).catch((e) => e.name));
  said.push(await fetch("ORIGIN/never", { signal: AbortSignal.abort("why") }).catch((e) => e));
  said.push(await fetch("ORIGIN/never", { signal: AbortSignal.any([new AbortController().signal, controller.signal]) }).catch((e) => e.name));
  said.push(await fetch("ORIGIN/never", { signal: {} as any }).catch((e) => e.name));
  const late = new AbortController();
  const answer = await fetch("ORIGIN/echo", { signal: late.signal });
  late.abort("late");
  said.push(answer.status, await answer.clone().text().catch((e) => e));
  return ok(said);
}
export async function others() { // options that do not matter to a server are checked, and unknown ones ignored
  const said = [];
  for (const init of [{ credentials: "include" }, { cache: "no-store", duplex: "half" }, { retries: 3 }, { mode: "none" }, { method: "TRACE" }, { window: {} }]) {
    said.push(await fetch("ORIGIN/echo", init as any).then((a) => a.status, (e) => e.name));
  }
  return ok(said);
}
export async function failed() { // a failure is a TypeError, and has the code of the host
  const error = await fetch("https://elsewhere.example/").catch((e) => e);
  return ok([error instanceof TypeError, error instanceof HostError, error.name, error.code, error.op, error.message.startsWith("fetch: "), new TypeError() instanceof HostError]);
}
export async function data() {
  const answer = await fetch("data:text/plain;charset=utf-8;base64,w6k%3D#x");
  const other = await fetch("data:,a%20b");
  return ok([answer.status, answer.url, answer.headers.get("content-type"), await answer.text(), other.headers.get("content-type"), await other.text(),
    await fetch("data:;base64,?").catch((e) => e.name), await fetch("data:text/html").catch((e) => e.name)]);
}
export async function bodiless() {
  const head = await fetch("ORIGIN/echo", { method: "HEAD" }), none = await fetch("ORIGIN/none");
  return ok([head.body, await head.text(), none.status, none.body, head.bodyUsed]);
}
export async function immutable() {
  const answer = await fetch("ORIGIN/echo#part");
  const refused = (() => { try { answer.headers.set("x-a", "1"); } catch (e) { return (e as Error).name; } })();
  const copy = new Response(answer.body, answer);
  copy.headers.set("x-a", "1");
  return ok([refused, copy.headers.get("x-a"), copy.status, answer.url === "ORIGIN/echo"]);
}
export async function many() {
  const all = await Promise.allSettled(Array.from({ length: 100 }, (_, i) => fetch("ORIGIN/echo?" + i).then((a) => a.status)));
  return ok([all.filter((a) => a.status === "fulfilled").length, [...new Set(all.map((a) => (a as any).reason?.message))]]);
}
export async function queued() { // what waits for the others is not sent after an abort, and not counted
  const stop = new AbortController();
  const stopped = Array.from({ length: 40 }, (_, i) => fetch("ORIGIN/echo?" + i, { signal: stop.signal }).catch((e) => e.name));
  stop.abort();
  const all = await Promise.allSettled(Array.from({ length: 34 }, (_, i) => fetch("ORIGIN/echo?" + i)));
  return ok([all.filter((a) => a.status === "fulfilled").length, [...new Set(await Promise.all(stopped))]]);
}
// The server sends "one", and " two" for "ORIGIN/more".
const more = () => fetch("ORIGIN/more");
export async function parts() {
  const answer = await fetch("ORIGIN/parts");
  const reader = answer.body!.getReader();
  const text = ({ value }: { value?: Uint8Array }) => new TextDecoder().decode(value);
  const said: unknown[] = [answer.status, text(await reader.read())];
  await more();
  return ok([...said, text(await reader.read()), (await reader.read()).done, answer.bodyUsed]);
}
export async function wholes() {
  const said = [];
  for (const how of ["text", "json", "bytes", "blob", "clone"] as const) {
    const answer = await fetch(how === "json" ? "ORIGIN/parts?json" : "ORIGIN/parts");
    const again = how === "clone" ? answer.clone() : undefined;
    const read = how === "clone" ? answer.text() : answer[how]();
    await more();
    const whole = await read;
    said.push(whole instanceof Blob ? [whole.type, await whole.text()] : whole instanceof Uint8Array ? whole.length : whole, answer.bodyUsed);
    if (again) said.push(await again.text());
  }
  return ok(said);
}
export async function cutOff() {
  const said = [];
  for (const how of ["text", "stream"]) {
    const answer = await fetch("ORIGIN/parts?cut");
    const read = how === "text" ? answer.text() : Array.fromAsync(answer.body!);
    await more();
    const error = await read.catch((e) => e);
    said.push(error instanceof TypeError, error instanceof HostError, error.code, error.message.endsWith("gave no answer"));
  }
  return ok(said);
}
export async function paused() {
  const answer = await fetch("ORIGIN/parts", { timeout: 0.2 } as any);
  const said = await answer.text().catch((e) => [e.name, e.code]);
  await fetch("ORIGIN/left");
  return ok(said);
}
export async function partsAborted() {
  const said = [];
  for (const how of ["read", "reading", "text"]) {
    const stop = new AbortController();
    const answer = await fetch("ORIGIN/parts", { signal: stop.signal });
    const reader = how === "text" ? undefined : answer.body!.getReader();
    if (how === "reading") await reader!.read();
    const read = reader ? (how === "read" ? undefined : reader.read()) : answer.text();
    setTimeout(() => stop.abort("why"), 1);
    said.push(await (read ?? new Promise((done) => setTimeout(done, 2)).then(() => reader!.read())).catch((e) => e));
    await fetch("ORIGIN/left");
  }
  return ok(said);
}
export async function partsCancelled() {
  const answer = await fetch("ORIGIN/parts");
  for await (const chunk of answer.body!) {
    await (chunk.length === 3 && answer.bodyUsed);
    break;
  }
  await fetch("ORIGIN/left");
  const other = await fetch("ORIGIN/parts");
  await other.body!.cancel();
  await fetch("ORIGIN/left");
  return ok([answer.bodyUsed, await answer.text().catch((e) => e.name)]);
}
export async function partsPassedOn() {
  const answer = await fetch("ORIGIN/parts");
  setTimeout(more, 1);
  return new Response(answer.body, { status: 201, headers: { "content-type": "text/event-stream" } });
}
export async function uncaught() { await fetch("https://elsewhere.example/"); }
export const passedOn = () => fetch("ORIGIN/echo", { method: "POST", body: "a" });
export const passedOnBytes = async () => await fetch("ORIGIN/binary");
export const passedOnRead = async () => {
  const answer = await fetch("ORIGIN/binary");
  await answer.bytes();
  return answer;
};
export const fetchedInside = async () => ok(await fetch("ORIGIN/echo"));
export const fetchedDeep = async () => ok({ answer: await fetch("ORIGIN/echo") });
`

func TestHandlersFetch(t *testing.T) {
	var meeting sync.WaitGroup
	meeting.Add(3)
	released, more, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch body, _ := io.ReadAll(r.Body); {
		case strings.HasPrefix(r.URL.Path, "/meet/"): // answers only after all requests have arrived
			meeting.Done()
			meeting.Wait()
			fmt.Fprint(w, r.URL.Path)
		case r.URL.Path == "/held":
			select {
			case <-released:
				fmt.Fprint(w, "held")
			case <-r.Context().Done():
			}
		case r.URL.Path == "/parts":
			one, two := "one", " two"
			if r.URL.RawQuery == "json" {
				one, two = `[1,`, `2]`
			}
			fmt.Fprint(w, one)
			w.(http.Flusher).Flush()
			select {
			case <-more:
				if r.URL.RawQuery == "cut" {
					panic(http.ErrAbortHandler)
				}
				fmt.Fprint(w, two)
			case <-r.Context().Done():
				left <- struct{}{}
			}
		case r.URL.Path == "/more":
			more <- struct{}{}
		case r.URL.Path == "/left": // its client has left "/parts"
			<-left
		case r.URL.Path == "/never":
			<-r.Context().Done()
		case r.URL.Path == "/away":
			http.Redirect(w, r, "/echo", http.StatusFound)
		case r.URL.Path == "/release":
			close(released)
		case r.URL.Path == "/none":
			w.WriteHeader(http.StatusNoContent)
		case r.URL.Path == "/binary":
			_, _ = w.Write(append([]byte{0xff, 0, 1}, body...))
		default:
			w.Header().Set("X-Saw", fmt.Sprintf("%s %s %s", r.Method, r.Header.Get("X-A"), r.URL.RawQuery))
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, "[%q,%q]", body, r.Header.Get("Content-Type"))
		}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	origin, host := toolchaintest.Reaching(t, server)

	m := toolchaintest.Module(t, map[string]string{"handlers/f.ts": strings.ReplaceAll(fetchFile, "ORIGIN", origin)})
	run := func(t *testing.T, handler string) (abi.Response, string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var reported bytes.Buffer
		call := &hostabi.Call{Input: hostabi.Input{
			Context: ctx, Host: host(slog.New(slog.NewTextHandler(&reported, nil))),
			Request: &abi.Request{Method: []byte("GET"), Path: []byte("/")}, Caller: caller.Caller{Kind: caller.Anonymous}, Attempt: 1,
		}}
		if err := m.Run(call, handler); err != nil {
			t.Fatal(err)
		}
		return call.Response, reported.String() + toolchaintest.Reports(call)
	}
	for _, row := range []struct{ handler, want string }{
		{"one", `[false,418,"` + origin + `/echo?q=%C3%A4","POST 1 q=%C3%A4",["hé","text/plain;charset=UTF-8"],true,34,"TypeError"]`},
		{"bytes", `[[255,0,1,0,255],["a=b+c","application/x-www-form-urlencoded;charset=UTF-8"]]`},
		{"together", `["/meet/a","/meet/b","/meet/c"]`},
		{"refused", `["denied","deadline","denied","TypeError","TypeError"]`},
		{"timed", `["timer","held"]`},
		{"redirected", `[302,"/echo",false,418,true,true,"unavailable","TypeError"]`},
		{"aborted", `["abort","AbortError",true,"TimeoutError","why","AbortError","TypeError",418,"late"]`},
		{"others", `[418,418,418,"TypeError","TypeError","TypeError"]`},
		{"failed", `[true,true,"TypeError","denied","fetch",true,false]`},
		{"data", `[200,"data:text/plain;charset=utf-8;base64,w6k%3D","text/plain;charset=utf-8","é","text/plain;charset=US-ASCII","a b","TypeError","TypeError"]`},
		{"bodiless", `[null,"",204,null,false]`},
		{"immutable", `["TypeError","1",418,true]`},
		{"parts", `[200,"one"," two",true,true]`},
		{"wholes", `["one two",true,[1,2],true,7,true,["text/plain;charset=utf-8","one two"],true,"one two",true,"one two"]`},
		{"cutOff", `[true,true,"unavailable",true,true,true,"unavailable",true]`},
		{"paused", `["TypeError","deadline"]`},
		{"partsAborted", `["why","why","why"]`},
		{"partsCancelled", `[true,"TypeError"]`},
		{"queued", `[34,["AbortError"]]`},
		{"many", `[50,[null,"fetch: a request may fetch at most 50 times"]]`},
	} {
		t.Run(row.handler, func(t *testing.T) {
			response, _ := run(t, row.handler)
			if got := string(response.Body) + response.Code; got != row.want {
				t.Errorf("got %s\nwant %s", got, row.want)
			}
		})
	}
	// A fetched response is returned. A failure is logged with its place, and not shown to
	// the client.
	for _, row := range []struct{ handler, want, log string }{
		{"passedOn", `418 content-type: text/plain; charset=utf-8 ["a","text/plain;charset=UTF-8"]`, ""},
		{"partsPassedOn", "201 content-type: text/event-stream one two", ""},
		{"passedOnBytes", "200 content-type: application/octet-stream \xff\x00\x01", ""},
		{"passedOnRead", "500 handler_failed", "TypeError: the body was read before"},
		{"fetchedInside", "500 handler_failed", "TypeError: a Response cannot be a body: return it as it is, or its text() or json()"},
		{"fetchedDeep", "500 handler_failed", "TypeError: a Response cannot be part of a body: return it as it is, or its text() or json()"},
		{"uncaught", "500 handler_failed", "exception: denied: fetch: https://elsewhere.example is not declared (add it to `outbound { allow: […] }` in the schema)\n    at uncaught (handlers/f.ts:"},
	} {
		t.Run(row.handler, func(t *testing.T) {
			response, reported := run(t, row.handler)
			got := fmt.Sprint(response.Status)
			for _, h := range response.Headers {
				got += fmt.Sprintf(" %s: %s", h.Name, h.Value)
			}
			if got += " " + string(response.Body) + response.Code + response.Detail; got != row.want || !strings.Contains(reported, row.log) || row.log == "" && reported != "" {
				t.Errorf("got %s\nwant %s\nand the log is %s", got, row.want, reported)
			}
		})
	}
}
