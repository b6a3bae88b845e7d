package typescript_test

import (
	"encoding/json"
	"strings"
	"testing"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
)

// webFile has the handlers of the tests below. Each claim is a condition that must hold.
const webFile = `import { fetchHandler, ok, type RouteRequest } from "@runner/sdk";

async function fails(does: () => unknown): Promise<string> {
  try {
    await does();
  } catch (error) {
    return (error as Error).name;
  }
  return "";
}
const equal = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

export async function claims() {
  const request = new Request("https://a.example/x?y=1", { method: "post", headers: { "X-A": "1" }, body: "é\ud800" });
  const copy = request.clone();
  const bytes = Uint8Array.of(0, 255, 13, 10);
  const form = new FormData();
  form.append("a", "1");
  form.append("a", "2\n3");
  form.append('na"me', new File([bytes, "x"], 'fi"le.bin', { type: "Image/PNG" }));
  form.set("b", new Blob(["text"], { type: "text/plain" }), "b.txt");
  const sent = new Response(form);
  const type = sent.headers.get("content-type")!;
  const back = await new Request("http://a/", { method: "PUT", headers: { "content-type": type }, body: await sent.bytes() }).formData();
  const file = back.get('na"me') as File;
  const made = new Response("text", { status: 201, statusText: "made", headers: new Headers({ "x-b": "2" }) });
  const again = new Response(made.body, made);
  const streamed = new Response("one");
  const reader = streamed.body!.getReader();
  const first = await reader.read();
  const pieces: Uint8Array[] = [];
  for await (const piece of new Blob(["ab", "c"]).stream()) pieces.push(piece);
  return ok({
    request: equal([request.method, request.url, request.headers.get("x-a"), request.headers.get("content-type")], ["POST", "https://a.example/x?y=1", "1", "text/plain;charset=UTF-8"]),
    requestText: (await request.text()) === "é\ufffd" && request.bodyUsed && !copy.bodyUsed && (await copy.text()) === "é\ufffd",
    requestTwice: (await fails(() => request.text())) === "TypeError" && (await fails(() => request.clone())) === "TypeError",
    requestOfRequest: new Request(new Request("http://a/b", { headers: { c: "d" } }), { method: "DELETE" }).headers.get("c") === "d",
    requestMethod: new Request("http://a/", { method: "patch" }).method === "patch",
    requestRefused: equal(await Promise.all([() => new Request("/x"), () => new Request("http://a/", { body: "x" }), () => new Request("http://a/", { signal: 1 as any })].map(fails)), ["TypeError", "TypeError", "TypeError"]),
    responseOf: equal([made.status, made.statusText, made.ok, made.url, made.type, made.redirected], [201, "made", true, "", "default", false]),
    responseAgain: again.status === 201 && again.headers.get("x-b") === "2" && (await again.text()) === "text" && made.bodyUsed,
    responseRelative: equal(["orders", "./a b?ü", "?x=1"].map((to) => Response.redirect(to).headers.get("location")), ["orders", "./a%20b?%C3%BC", "?x=1"]),
    responseStatics: equal([Response.redirect("https://b.example/c", 308).headers.get("location"), Response.error().status, Response.error().type], ["https://b.example/c", 0, "error"]),
    responseRefused: equal(await Promise.all([() => new Response("", { status: 204 }), () => new Response(null, { status: 600 }), () => Response.json(undefined), () => Response.redirect("/x", 200 as 302), () => new Response({} as any)].map(fails)),
      ["TypeError", "RangeError", "TypeError", "RangeError", "TypeError"]),
    responseNull: new Response().body === null && (await new Response().text()) === "" && !new Response(null).bodyUsed,
    responseForm: equal([...(await new Response("a=1&b=%C3%A9+x", { headers: { "content-type": "application/x-www-form-urlencoded" } }).formData())], [["a", "1"], ["b", "é x"]]),
    responseParams: (await new Response(new URLSearchParams({ a: "b c" })).text()) === "a=b+c",
    json: equal(await Response.json({ a: [1] }).json(), { a: [1] }) && Response.json(1).headers.get("content-type") === "application/json",
    form: equal([...form.keys()], ["a", "a", 'na"me', "b"]) && form.getAll("a").length === 2 && form.get("none") === null,
    formBack: equal(back.getAll("a"), ["1", "2\r\n3"]) && (back.get("b") as File).name === "b.txt" && [...back].length === 4,
    formFile: equal([file.name, file.type, [...await file.bytes()]], ['fi"le.bin', "image/png", [0, 255, 13, 10, 120]]),
    formSet: (form.set("a", "3"), equal([...form.keys()], ["a", 'na"me', "b"])),
    formEmpty: [...(await new Response(new FormData()).formData())].length === 0,
    blob: (await new Blob(["aé", bytes.buffer]).arrayBuffer()).byteLength === 7 && (await new Blob(["hello"]).slice(1, 3).text()) === "el" && new Blob(["a"]).slice(-1).size === 1,
    blobOf: (await new Response(new Blob(["x"], { type: "a/b" })).blob()).type === "a/b",
    streamed: !first.done && new TextDecoder().decode(first.value) === "one" && (await reader.read()).done && streamed.bodyUsed,
    pieces: equal(pieces.map((piece) => [...piece]), [[97, 98, 99]]),
    buffer: (await new Response(new Uint8Array([1, 2, 3]).subarray(1)).arrayBuffer()).byteLength === 2,
    classes: request instanceof Request && made instanceof Response && new File([], "a") instanceof Blob && String(new FormData()) === "[object FormData]",
  });
}

export async function form(req: RouteRequest) {
  return ok([...(await req.formData())].map(([name, value]) => (typeof value === "string" ? [name, value] : [name, value.name, value.type, value.size])));
}
export const rawText = (req: RouteRequest) => {
  const raw = req.rawBody;
  return ok([
    "" + raw, JSON.parse(raw as unknown as string), raw.toString("utf8"), raw.toString("hex", 0, 2), raw.toString("base64"), raw.toString("base64url", 5),
    raw.toString("latin1", 6, 8), raw instanceof Uint8Array, raw.slice(0, 2).toString(), raw.constructor === Uint8Array, new TextDecoder().decode(raw) === String(raw),
  ]);
};
export const rawEncoding = (req: RouteRequest) => ok(req.rawBody.toString("utf7" as "utf8"));
export const answer = async () => new Response("é", { status: 201, headers: [["x-a", "1"], ["set-cookie", "a=1"], ["set-cookie", "b=2"], ["content-length", "9"], ["connection", "close"]] });
export const answerHeaders = (req: RouteRequest) => new Response("", { headers: { "x-a": "caf\u00e9", "x-b": req.headers["x-a"]! } });
export const answerNoByte = () => new Response("", { headers: { "x-a": "\u20ac" } });
export const answerBytes = () => new Response(Uint8Array.of(255));
export const answerNone = () => new Response(null, { status: 204 });
export const answerJSON = () => Response.json("text");
export const answerThrown = () => { throw new Response("no", { status: 403 }); };
export const answerTwice = async () => { const response = new Response("a"); await response.text(); return response; };
export const answerInside = () => ok({ response: new Response("a") });
export const blobInside = () => ok({ blob: new Blob(["a"]) });

let later = "";
export const worker = fetchHandler(async (request, _env, context) => {
  context.waitUntil(Promise.resolve().then(() => (later = "done")));
  context.waitUntil(Promise.reject(new Error("too late")));
  return new Response([request.method, request.url, request.headers.get("x-a"), request.headers.get("x-b"), await request.text()].join(" "));
});
export const after = () => ok(later);
`

// webApp is the module of webFile.
func webApp(t *testing.T) func(handler string, request abi.Request) toolchaintest.Answer {
	t.Helper()
	m := toolchaintest.Module(t, map[string]string{"handlers/web.ts": webFile})
	return func(handler string, request abi.Request) toolchaintest.Answer {
		t.Helper()
		return toolchaintest.Ask(t, m, handler, request)
	}
}

// claimsHold checks an answer that is an object of conditions, of which there are at
// least so many.
func claimsHold(t *testing.T, got toolchaintest.Answer, least int) {
	t.Helper()
	var claims map[string]bool
	if err := json.Unmarshal([]byte(got.Body), &claims); err != nil || len(claims) < least {
		t.Fatalf("answers %d %s (%v)\n%s", got.Status, got.Body, got.Err, got.Log)
	}
	for claim, holds := range claims {
		if !holds {
			t.Errorf("%s does not hold", claim)
		}
	}
}

func TestRequestsAndResponsesAreAsTheFetchStandardHasThem(t *testing.T) {
	ask := webApp(t)
	claimsHold(t, ask("claims", abi.Request{}), 25)
	for _, row := range []struct {
		handler string
		status  int
		body    string
		more    string // in the headers or in the log
	}{
		{"answer", 201, "é", "content-type: text/plain;charset=UTF-8\nset-cookie: a=1\nset-cookie: b=2\nx-a: 1\n"},
		{"answerHeaders", 200, "", "x-a: caf\xe9\nx-b: caf\xe9\n"},
		{"answerNoByte", 500, "", `the value of x-a has the character "€": a header can only have characters up to U+00FF`},
		{"answerBytes", 200, "\xff", "content-type: application/octet-stream\n"},
		{"answerNone", 204, "", ""},
		{"answerJSON", 200, `"text"`, "content-type: application/json\n"},
		{"answerThrown", 403, "no", "content-type: text/plain;charset=UTF-8\n"},
		{"answerTwice", 500, "", "TypeError: the body was read before"},
		{"answerInside", 500, "", "cannot be part of a body"},
		{"blobInside", 500, "", "a Blob cannot be part of a body: await its bytes() or text()"},
	} {
		request := abi.Request{Headers: []abi.Pair{{Name: []byte("x-a"), Value: []byte("caf\xe9")}}}
		if got := ask(row.handler, request); got.Status != row.status || got.Body != row.body || !strings.Contains(got.Headers+got.Log, row.more) {
			t.Errorf("%s answers %d %q, want %d %q with %q\n%s%s", row.handler, got.Status, got.Body, row.status, row.body, row.more, got.Headers, got.Log)
		}
	}
}

func TestARawBodyIsTextAsABufferOfNodeIs(t *testing.T) {
	ask := webApp(t)
	body := []byte("{\"a\":\"\u00e9\"}") // é is at 6
	want := `["{\"a\":\"é\"}",{"a":"é"},"{\"a\":\"é\"}","7b22","eyJhIjoiw6kifQ==","IsOpIn0","Ã©",true,"123,34",true,true]`
	if got := ask("rawText", abi.Request{Body: body}); got.Status != 200 || got.Body != want {
		t.Errorf("answers %d %s, want %s\n%s", got.Status, got.Body, want, got.Log)
	}
	if got := ask("rawEncoding", abi.Request{Body: body}); got.Status != 500 || !strings.Contains(got.Log, "utf7 is not known: use utf8, hex") {
		t.Errorf("answers %d %s\n%s", got.Status, got.Body, got.Log)
	}
}

func TestAFormIsReadOrRefused(t *testing.T) {
	ask := webApp(t)
	part := func(head, body string) string {
		return "--b\r\nContent-Disposition: form-data; " + head + "\r\n\r\n" + body + "\r\n"
	}
	const multipart = `multipart/form-data; charset=utf-8; boundary="b"`
	for _, row := range []struct {
		contentType, body string
		status            int
		want              string
	}{
		{"application/x-www-form-urlencoded", "a=1&a=%32&c=+", 200, `[["a","1"],["a","2"],["c"," "]]`},
		{"application/x-www-form-urlencoded", "", 200, `[]`},
		{multipart, part(`name="a"`, "1\r\n--x\r\n") + part(`name=c`, "") + "--b--\r\n", 200, `[["a","1\r\n--x\r\n"],["c",""]]`},
		{multipart, "preamble\r\n" + part(`name="a%22\"b"; filename="f.bin"`+"\r\nContent-Type: image/png", "\xff\x00\r\n-") + "--b--", 200, `[["a\"\"b","f.bin","image/png",5]]`},
		{multipart, part(`name="a\"; filename="C:\\b"`, "") + part(`name="\"; x"`, "") + "--b--", 200, `[["a\\","C:\\\\b","text/plain",0],["\\",""]]`},
		{multipart, part(`name="a"; filename=""`, "") + "--b--", 200, `[["a","","text/plain",0]]`},
		{multipart, "--b--", 200, `[]`},
		{multipart, "", 400, "the body is not a form with the boundary of its content type"},
		{multipart, part(`name="a"`, "1"), 400, "the body is not a form with the boundary of its content type"},
		{multipart, part(`nome="a"`, "1") + "--b--", 400, "the body is not a form with the boundary of its content type"},
		{"multipart/form-data", "--b--", 400, "the content type multipart/form-data has no boundary"},
		{"application/json", "{}", 400, `the content type is "application/json", and a form is multipart/form-data or application/x-www-form-urlencoded`},
		{"", "a=1", 400, "the content type is missing, and a form is multipart/form-data or application/x-www-form-urlencoded"},
	} {
		request := abi.Request{Method: []byte("POST"), Path: []byte("/"), Body: []byte(row.body)}
		if row.contentType != "" {
			request.Headers = []abi.Pair{{Name: []byte("content-type"), Value: []byte(row.contentType)}}
		}
		if got := ask("form", request); got.Status != row.status || got.Body+got.Detail != row.want {
			t.Errorf("%s with %q answers %d %s, want %d %s\n%s", row.contentType, row.body, got.Status, got.Body+got.Detail, row.status, row.want, got.Log)
		}
	}
}

func TestAFunctionFromRequestToResponseIsAHandler(t *testing.T) {
	ask := webApp(t)
	got := ask("worker", abi.Request{
		Method: []byte("POST"), Path: []byte("/a/%C3%A9"), Body: []byte("body"),
		RawQuery: []byte("q='%C3%A4%20b+c&flag&&q=%26"),
		Headers:  []abi.Pair{{Name: []byte("host"), Value: []byte("app.example")}, {Name: []byte("x-a"), Value: []byte("caf\xe9")}, {Name: []byte("x-b"), Value: []byte("é")}},
	})
	if want := "POST http://app.example/a/%C3%A9?q='%C3%A4%20b+c&flag&&q=%26 café Ã© body"; got.Status != 200 || got.Body != want {
		t.Errorf("answers %d %s, want %s\n%s", got.Status, got.Body, want, got.Log)
	}
	if !strings.Contains(got.Log, "waitUntil: Error: too late") {
		t.Errorf("the log is\n%s", got.Log)
	}
}
