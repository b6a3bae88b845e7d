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
  said.push((await fetch("ORIGIN/echo", { signal: new AbortController().signal })).status);
  return ok(said);
}
export async function others() {
  const said = [];
  for (const init of [{ credentials: "include" }, { cache: "no-store" }, { keepalive: undefined }]) {
    said.push(await fetch("ORIGIN/echo", init as any).then((a) => a.status, (e) => e.name + ": " + e.message));
  }
  return ok(said);
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
	released := make(chan struct{})
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
		case r.URL.Path == "/never":
			<-r.Context().Done()
		case r.URL.Path == "/away":
			http.Redirect(w, r, "/echo", http.StatusFound)
		case r.URL.Path == "/release":
			close(released)
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
		{"aborted", `["abort","AbortError",true,"TimeoutError","why","AbortError","TypeError",418]`},
		{"others", `["TypeError: fetch: unknown option credentials: the options are method, headers, body, redirect, signal, timeout, publicOnly",` +
			`"TypeError: fetch: unknown option cache: the options are method, headers, body, redirect, signal, timeout, publicOnly",418]`},
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
		{"passedOnBytes", "200 content-type: application/octet-stream \xff\x00\x01", ""},
		{"passedOnRead", "500 handler_failed", "TypeError: the body was read before"},
		{"fetchedInside", "500 handler_failed", "TypeError: a Response cannot be a body: return it as it is, or its text() or json()"},
		{"fetchedDeep", "500 handler_failed", "TypeError: a Response cannot be part of a body: return it as it is, or its text() or json()"},
		{"uncaught", "500 handler_failed", " at uncaught (handlers/f.ts:"},
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
