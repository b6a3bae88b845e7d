package typescript_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
	"runner.example/runtime/sandbox"
)

// urlFile has the handlers of the tests below. All but claims answer the cases that fail.
const urlFile = `import { ok, type RouteRequest } from "@runner/sdk";

const early = new URL("https://bücher.example");
const parts = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"] as const;
const equal = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
const fails = (does: () => unknown) => {
  try {
    does();
  } catch (error) {
    return (error as Error).message;
  }
};

export function parsed(req: RouteRequest) {
  return ok(req.body<any[]>().flatMap((test) => {
    const [input, base] = [test.input, test.base ?? undefined];
    const url = URL.parse(input, base);
    const same = test.failure ? url === null && fails(() => new URL(input, base)) !== undefined
      : url !== null && parts.every((part) => !(part in test) || test[part] === url[part]) && new URL(url).href === url.href;
    return same && URL.canParse(input, base) === (url !== null) ? [] : [{ test, got: url && parts.map((part) => url[part]) }];
  }));
}
export function set(req: RouteRequest) {
  return ok(req.body<any[]>().flatMap((test) => {
    const url = new URL(test.href) as any;
    url[test.part] = test.new_value;
    const got = Object.fromEntries(Object.keys(test.expected).map((name) => [name, url[name]]));
    return equal(got, test.expected) ? [] : [{ test, got }];
  }));
}
export function toASCII(req: RouteRequest) {
  return ok(req.body<any[]>().flatMap((test) => {
    const got = URL.parse("https://" + test.input + "/x")?.host ?? null;
    const url = new URL("https://x/");
    url.hostname = test.input;
    return got === test.output && url.hostname === (test.output ?? "x") ? [] : [{ test, got, hostname: url.hostname }];
  }));
}
export function params(req: RouteRequest) {
  return ok(req.body<any[]>().flatMap((test) => {
    const got = [...new URLSearchParams(test.input)];
    return equal(got, test.output) ? [] : [{ test, got }];
  }));
}

export function claims() {
  const sorted = (query: string) => {
    const url = new URL("?" + query, "https://example/");
    url.searchParams.sort();
    return [...new URLSearchParams(url.search)].map((pair) => pair.join("="));
  };
  const made = (init: any) => String(new URLSearchParams(init));
  const walked = (search: string, does: (params: URLSearchParams, name: string, url: URL) => void) => {
    const url = new URL("http://a.b/c?" + search);
    const seen: string[] = [];
    for (const pair of url.searchParams) {
      does(url.searchParams, pair[0], url);
      seen.push(pair.join(""));
    }
    return [seen.join(), url.search];
  };
  const url = new URL("http://example.org/file??a=b,c&c=d");
  const { searchParams } = url;
  const steps = [String(searchParams)];
  searchParams.append("i", " j ");
  steps.push(url.search);
  searchParams.set("?a", "x");
  steps.push(url.href);
  url.search = "?e=f";
  steps.push(String(searchParams));
  url.href = "http://example.org/?g";
  steps.push(String(searchParams), String(url.searchParams === searchParams));
  const removed = new URL("http://example.com/?a");
  removed.searchParams.delete("a");
  const values = new URLSearchParams("a=b&a=d&c&e&");
  values.delete("a", "b");
  values.delete("e", undefined);
  return ok({
    early: early.href === "https://xn--bcher-kva.example/",
    later: new URL("http://☃.example/").host === "xn--n3h.example" && new URL("http://xn--n3h.example").host === "xn--n3h.example",
    refused: equal([fails(() => new URL("/x")), fails(() => new URL("http://a b/")), fails(() => new URL("x", "y")), fails(() => (new URL("a:b").href = "c"))], [
      'URL: "/x" is not a valid URL', 'URL: "http://a b/" is not a valid URL', 'URL: "x" is not a valid URL relative to "y"', 'URL: "c" is not a valid URL']),
    long: URL.canParse("http://" + "ü".repeat(500) + "/") && !URL.canParse("http://" + "ü".repeat(600) + "/"),
    wellFormed: new URL("http://a/\ud800?\udc00").href === "http://a/%EF%BF%BD?%EF%BF%BD",
    tags: equal([String(Object.prototype.toString.call(url)), Object.prototype.toString.call(searchParams)], ["[object URL]", "[object URLSearchParams]"]),
    json: JSON.stringify({ url }) === '{"url":"http://example.org/?g"}',
    steps: equal(steps, ["%3Fa=b%2Cc&c=d", "?%3Fa=b%2Cc&c=d&i=+j+", "http://example.org/file?%3Fa=x&c=d&i=+j+", "e=f", "g=", "true"]),
    removed: removed.href === "http://example.com/" && values.toString() === "a=d&c=",
    sorted: equal(["\uFFFD=x&\uFFFC&\uFFFD=a", "ﬃ&🌈", "z=z&a=a&z=y&a=b&z=x", "bbb&bb&aaa&aa=x&aa=y", "z=z&=f&=t"].map((query) => sorted(query).join()),
      ["\uFFFC=,\uFFFD=x,\uFFFD=a", "🌈=,ﬃ=", "a=a,a=b,z=z,z=y,z=x", "aa=x,aa=y,aaa=,bb=,bbb=", "=f,=t,z=z"]),
    made: equal([undefined, null, "?a=b", {}, [["a", "b"], new Set(["c", 1])], { "\ud835x": 1, xx: 2, "\ud83dx": 3 }, new URLSearchParams("a=b"), Object.assign(() => {}, { a: 1 })].map(made),
      ["", "null=", "a=b", "", "a=b&c=1", "%EF%BF%BDx=3&xx=2", "a=b", "a=1"]),
    notMade: [[["a"]], [["a", "b", "c"]], ["ab"], [1], { [Symbol.iterator]: 1 }].every((init) => fails(() => made(init)) !== undefined),
    form: String(new URLSearchParams([["a b", "*-._~!'()"], ["", "\0💩\r\n+=&%"]])) === "a+b=*-._%7E%21%27%28%29&=%00%F0%9F%92%A9%0D%0A%2B%3D%26%25",
    has: searchParams.has("g") && searchParams.has("g", "") && !searchParams.has("g", "x") && searchParams.has("g", undefined) && searchParams.size === 1 && searchParams.get("h") === null,
    walked: equal([
      walked("a=1&b=2&c=3", (_params, _name, url) => (url.search = "x=1&y=2&z=3")),
      walked("a=0&b=1&c=2", (params, name) => name === "a" && params.delete("b")),
      walked("a=0&b=1&c=2", (params, name) => params.delete(name)),
    ], [["a1,y2,z3", "?x=1&y=2&z=3"], ["a0,c2", "?a=0&c=2"], ["a0,c2", "?b=1"]]),
    lists: equal([[...values.keys()], [...values.values()], [...values.entries()], values.getAll("a")], [["a", "c"], ["d", ""], [["a", "d"], ["c", ""]], ["d"]]),
  });
}
`

// urlModule builds urlFile.
func urlModule(t *testing.T) *sandbox.Module {
	t.Helper()
	return toolchaintest.Module(t, map[string]string{"handlers/url.ts": urlFile})
}

// urlTests returns the cases of a file of web-platform-tests. Those in testdata/url are
// later than the fetched ones, and replace those of the same key.
func urlTests(t *testing.T, name string, key func(test map[string]any) string) (all []map[string]any) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a script of bash fetches the tests")
	}
	fetched, err := exec.Command("../../../tools/fetch-urltests.sh").Output()
	if err != nil {
		t.Fatalf("tools/fetch-urltests.sh: %v", err)
	}
	places := map[string]int{}
	for _, dir := range []string{strings.TrimSpace(string(fetched)), "testdata/url"} {
		for _, test := range readURLTests(t, filepath.Join(dir, name)) {
			if at, ok := places[key(test)]; ok && dir == "testdata/url" {
				all[at] = test
				continue
			}
			places[key(test)] = len(all)
			all = append(all, test)
		}
	}
	return all
}

// readURLTests reads a list of cases and comments, or cases by the part of a URL that they
// set.
func readURLTests(t *testing.T, path string) (tests []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []any
	byPart := map[string][]any{}
	if json.Unmarshal(text, &list) != nil {
		if err := json.Unmarshal(text, &byPart); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	for part, cases := range byPart {
		for _, one := range cases {
			if test, ok := one.(map[string]any); ok {
				test["part"] = part
				list = append(list, test)
			}
		}
	}
	for _, one := range list {
		if test, ok := one.(map[string]any); ok { // otherwise a comment
			tests = append(tests, test)
		}
	}
	return tests
}

func TestURLsAreAsWebPlatformTestsHaveThem(t *testing.T) {
	members := func(names ...string) func(map[string]any) string {
		return func(test map[string]any) string {
			var values []any
			for _, name := range names {
				values = append(values, test[name])
			}
			return fmt.Sprintf("%q", values)
		}
	}
	m := urlModule(t)
	for _, row := range []struct {
		handler string
		tests   []map[string]any
		least   int    // how many there are, so that none gets lost
		refused string // the input of a case that fails
	}{
		{"parsed", urlTests(t, "urltestdata.json", members("input", "base")), 864, ""},
		{"set", urlTests(t, "setters_tests.json", members("part", "href", "new_value")), 248, ""},
		{"toASCII", urlTests(t, "toascii.json", members("input")), 43, "1.\u064a"}, // RFC 5893, 2: a label with a digit first is not for a domain in two directions
		{"params", readURLTests(t, "testdata/url/urlencoded-parser-data.json"), 35, ""},
	} {
		t.Run(row.handler, func(t *testing.T) {
			body, err := json.Marshal(row.tests)
			if err != nil {
				t.Fatal(err)
			}
			got := toolchaintest.Ask(t, m, row.handler, abi.Request{Body: body})
			var failed []json.RawMessage
			if err := json.Unmarshal([]byte(got.Body), &failed); err != nil || got.Status != 200 {
				t.Fatalf("answers %d %q (%v)\n%s", got.Status, got.Body, got.Err, got.Log)
			}
			if len(row.tests) < row.least {
				t.Errorf("only %d cases", len(row.tests))
			}
			for _, f := range failed {
				if row.refused == "" || !strings.Contains(string(f), `"`+row.refused+`"`) {
					t.Errorf("%s", f)
				}
			}
		})
	}
}

func TestURLsAndTheirParameters(t *testing.T) {
	claimsHold(t, toolchaintest.Ask(t, urlModule(t), "claims", abi.Request{}), 15)
}
