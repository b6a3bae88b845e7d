package tests

import (
	"os"
	"strings"
	"sync"
	"testing"

	"runner.example/build"
	"runner.example/sdk/rust/rusttest"
)

// links is the example in Rust, built where it lies and served, with a token of its
// editors. A first build compiles all crates and may take minutes, so it is not one of
// the command, which tests end after one.
func links(t *testing.T) (s *server, token string) {
	t.Helper()
	rusttest.Setenv(t)
	example := &app{t: t, dir: "../plugins/examples/links"}
	if _, _, err := build.Build(t.Context(), build.Options{Dir: example.dir, Name: "links"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(example.path("links.schema"))
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile(example.path("build/links.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	a := newApp(t, strings.Replace(string(text), "rateLimit: 300/minute by ip", "rateLimit: none", 1), "")
	a.write("build/links.wasm", string(module))
	return a.serve(), a.token("editor")
}

func TestTheHandlersInRustPassTheirOwnTests(t *testing.T) {
	rusttest.Test(t, "../plugins/examples/links/handlers/links")
}

func TestAnAppInRustServes(t *testing.T) {
	s, token := links(t)
	made := s.answers(201, `\{"id":"[0-9a-z]{26}","slug":"[2-9a-z]{8}","target":"https://example\.com/a","note":null,"clicks":0,"createdAt":"[^"]+","expiresAt":null\}`,
		"POST", "/v1/links", `{"target":"https://example.com/a"}`, token)
	at := made.header.Get("Location")
	if got := s.do("GET", at, ""); got.status != 302 || got.header.Get("Location") != "https://example.com/a" || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s answers %d %v", at, got.status, got.header)
	}
	own := strings.Replace(at, "/go/", "/v1/links/", 1)
	s.answers(200, `\{.*"clicks":1.*\}`, "GET", own, "", token)
	s.answers(201, `\{.*"slug":"tea".*"expiresAt":"2\d{3}-.*Z"\}`, "POST", "/v1/links", `{"target":"https://example.com/b","slug":"tea","days":2}`, token)
	s.answers(409, `.*"detail":"this slug is taken".*`, "POST", "/v1/links", `{"target":"https://example.com/c","slug":"tea"}`, token)
	s.answers(400, `.*"code":"invalid_input".*`, "POST", "/v1/links", `{"target":"no url"}`, token)
	s.answers(200, `\{"rows":\[\{.*"slug":"tea".*\},\{.*\}\],"nextCursor":null\}`, "GET", "/v1/links", "", token)
	s.answers(204, "", "DELETE", own, "", token)
	s.answers(404, `.*"detail":"no such link".*`, "DELETE", own, "", token)
	s.answers(404, `.*`, "GET", own, "", token)
	if got := s.do("GET", at, ""); got.status != 404 {
		t.Errorf("%s answers %d when it is gone", at, got.status)
	}
}

func TestNoClickOnALinkInRustIsLost(t *testing.T) {
	s, token := links(t)
	s.answers(201, `.*`, "POST", "/v1/links", `{"target":"https://example.com","slug":"busy"}`, token)
	const visitors, times = 2, 10
	var wg sync.WaitGroup
	for range visitors {
		wg.Go(func() {
			for range times {
				for s.do("GET", "/go/busy", "").status == 409 { // five runs were not enough: the visitor tries again
				}
			}
		})
	}
	wg.Wait()
	s.answers(200, `\{.*"clicks":20.*\}`, "GET", "/v1/links/busy", "", token)
}
