package typescript_test

import (
	"encoding/json"
	"testing"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
)

// urlPatternFile has claims about URLPattern: conditions that must hold.
const urlPatternFile = `import { ok } from "@runner/sdk";

const book = new URLPattern({ pathname: "/books/:id(\\d+){.:form}?" }); // at build time

const equal = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
function fails(does: () => unknown): string {
  try {
    does();
  } catch (error) {
    return (error as Error).name + ": " + (error as Error).message;
  }
  return "";
}
const parts = (pattern: URLPattern) => [pattern.protocol, pattern.username, pattern.password, pattern.hostname, pattern.port, pattern.pathname, pattern.search, pattern.hash].join(" ");
const path = (pattern: string, pathname: string) => new URLPattern({ pathname: pattern }).exec({ pathname })?.pathname.groups;

export function claims() {
  const found = book.exec("https://example.com/books/12.pdf?x#y");
  const based = new URLPattern("a/:name\\?a=*#h", "https://user@example.com:8080/x/y/z");
  const any = Object.keys(URLPattern.prototype);
  return ok({
    groups: equal(found?.pathname, { input: "/books/12.pdf", groups: { id: "12", form: "pdf" } }) && equal(found?.inputs, ["https://example.com/books/12.pdf?x#y"]) && equal(found?.search.groups, { 0: "x" }),
    optional: equal(path("/books/:id(\\d+){.:form}?", "/books/1"), { id: "1" }) && path("/books/:id(\\d+)", "/books/a") === undefined,
    test: book.test({ pathname: "/books/1" }) && !book.test("https://example.com/books/") && book.test("books/1", "https://example.com") && !book.test("books/1") && !book.test({ baseURL: "not a URL" }),
    segments: equal(path("/a/:b/*", "/a/x/y/z"), { 0: "y/z", b: "x" }) && path("/:a", "/x/y") === undefined && equal(path("/:a+", "/x/y"), { a: "x/y" }) && equal(path("/:a*", ""), {}),
    repeated: equal(path("/{a:b-}+", "/ax-ay-"), { b: "x-ay" }),
    constructorString: parts(new URLPattern("https://:sub.example.com/a?b=:c#d")) === "https * * :sub.example.com  /a b=:c d",
    shortString: parts(new URLPattern("https://example.com")) === "https * * example.com  * * *" && parts(new URLPattern("data\\:text/*")) === "data * *   text/* * *",
    credentials: parts(new URLPattern("https://me\\:secret@example.com:*/")) === "https me secret example.com * / * *",
    base: parts(based) === "https * * example.com 8080 /x/y/a/:name a=* h",
    address: new URLPattern({ hostname: "[\\:\\:AB]" }).hostname === "[\\:\\:ab]" && new URLPattern("http://[\\:\\:1]:80/").test("http://[::1]/"),
    canonical: parts(new URLPattern({ protocol: "HTTPS", hostname: "Bücher.example", port: "443", pathname: "/ä/./b/../c", search: "?ü", hash: "#'" })) === "https * * xn--bcher-kva.example 443 /%C3%A4/c %C3%BC '",
    defaultPort: new URLPattern({ protocol: "https", port: "443" }).port === "" && new URLPattern({ protocol: "http{s}?", port: "443" }).port === "443",
    case: new URLPattern({ pathname: "/Ab" }, { ignoreCase: true }).test({ pathname: "/aB" }) && !new URLPattern({ pathname: "/Ab" }).test({ pathname: "/aB" }) && new URLPattern("/Ab", "https://a", { ignoreCase: true }).test("https://a/aB"),
    custom: book.hasRegExpGroups && !new URLPattern({ pathname: "/:a/*" }).hasRegExpGroups && new URLPattern({ hostname: "(a--b|[c-d]&&e)" }).test({ hostname: "a--b" }),
    normal: new URLPattern({ pathname: "{/:a}{b}" }).pathname === "{/:a}b" && new URLPattern({ pathname: "/(.*)" }).pathname === "/*" && new URLPattern({ pathname: "/:a([^\\/]+?)" }).pathname === "/:a",
    url: new URLPattern(new URL("https://example.com/a")).test("https://example.com/a?b=1") === false && new URLPattern({ ...{ pathname: "/a" } }).test(new URL("https://example.com/a?b=1")),
    groupNames: Object.hasOwn(path("/:__proto__", "/x")!, "__proto__") && equal(path("/:ü", "/x"), { "ü": "x" }),
    refused: [() => new URLPattern("/a"), () => new URLPattern({}, "https://a"), () => new URLPattern({ pathname: "(" }), () => new URLPattern({ pathname: "/:a/:a" }), () => new URLPattern({ pathname: "{a" }), () => new URLPattern({ pathname: "([)" }),
      () => new URLPattern({ pathname: "(é)" }), () => new URLPattern({ port: "65536" }), () => new URLPattern({ protocol: "a b" }), () => new URLPattern({ hostname: "a b" }), () => new URLPattern({ baseURL: "x" }), () => new URLPattern("https://[\\:g]"),
      () => book.test({}, "https://a"), () => Object.getOwnPropertyDescriptor(URLPattern.prototype, "hash")!.get!.call({})].every((does) => fails(does).startsWith("TypeError: ")),
    message: fails(() => new URLPattern({ pathname: "/:" })) === 'TypeError: URLPattern: "/:" is not a valid pattern: no name follows a colon; write \\\\: for the character',
    members: any.includes("exec") && any.includes("hasRegExpGroups") && String(book) === "[object URLPattern]" && URLPattern.length === 0,
  });
}
`

func TestURLPatternsMatchAsTheStandardSays(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/urlpattern.ts": urlPatternFile})
	a := toolchaintest.Ask(t, m, "claims", abi.Request{})
	var claims map[string]bool
	if err := json.Unmarshal([]byte(a.Body), &claims); err != nil || len(claims) != 20 {
		t.Fatalf("%d %s %d, %v", a.Status, a.Body, len(claims), a.Log)
	}
	for name, holds := range claims {
		if !holds {
			t.Errorf("%s does not hold", name)
		}
	}
}
