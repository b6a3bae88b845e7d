package languages_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"runner.example/develop/toolchain"
	"runner.example/sdk/rust/rusttest"
	"runner.example/tests/harness"
)

// links serves the Rust example and returns a token of its editors. The example is built in
// its own directory and in this process: a first build compiles all crates, which may take
// longer than tests wait for a command.
func links(t *testing.T) (s *harness.Server, token string) {
	t.Helper()
	rusttest.Setenv(t)
	example := &harness.App{T: t, Dir: harness.RepoFile("plugins/examples/links")}
	if _, _, err := toolchain.Build(t.Context(), toolchain.Options{Dir: example.Dir, Name: "links"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(example.Path("links.schema"))
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile(example.Path("build/links.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	a := harness.NewApp(t, strings.Replace(string(text), "rateLimit: 300/minute by ip", "rateLimit: none", 1), "")
	a.Write("build/links.wasm", string(module))
	return a.Serve(), a.Token("editor")
}

func TestTheHandlersInRustPassTheirOwnTests(t *testing.T) {
	rusttest.Test(t, harness.RepoFile("plugins/examples/links/handlers/links"))
}

func TestAnAppInRustServes(t *testing.T) {
	s, token := links(t)
	made := s.Matches(201, `\{"id":"[0-9a-z]{26}","slug":"[2-9a-z]{8}","target":"https://example\.com/a","note":null,"clicks":0,"createdAt":"[^"]+","expiresAt":null\}`,
		"POST", "/v1/links", `{"target":"https://example.com/a"}`, token)
	at := made.Header.Get("Location")
	if got := s.Do("GET", at, ""); got.Status != 302 || got.Header.Get("Location") != "https://example.com/a" || got.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s answers %d %v", at, got.Status, got.Header)
	}
	own := strings.Replace(at, "/go/", "/v1/links/", 1)
	s.Matches(200, `\{.*"clicks":1.*\}`, "GET", own, "", token)
	s.Matches(201, `\{.*"slug":"tea".*"expiresAt":"2\d{3}-.*Z"\}`, "POST", "/v1/links", `{"target":"https://example.com/b","slug":"tea","days":2}`, token)
	s.Matches(409, `.*"detail":"this slug is taken".*`, "POST", "/v1/links", `{"target":"https://example.com/c","slug":"tea"}`, token)
	s.Matches(400, `.*"code":"invalid_input".*`, "POST", "/v1/links", `{"target":"no url"}`, token)
	s.Matches(200, `\{"rows":\[\{.*"slug":"tea".*\},\{.*\}\],"nextCursor":null\}`, "GET", "/v1/links", "", token)
	s.Matches(204, "", "DELETE", own, "", token)
	s.Matches(404, `.*"detail":"no such link".*`, "DELETE", own, "", token)
	s.Matches(404, `.*`, "GET", own, "", token)
	if got := s.Do("GET", at, ""); got.Status != 404 {
		t.Errorf("%s answers %d after it was deleted", at, got.Status)
	}
}

func TestNoClickOnALinkInRustIsLost(t *testing.T) {
	s, token := links(t)
	s.Matches(201, `.*`, "POST", "/v1/links", `{"target":"https://example.com","slug":"busy"}`, token)
	const visitors, times = 2, 10
	var wg sync.WaitGroup
	for range visitors {
		wg.Go(func() {
			for range times {
				for s.Do("GET", "/go/busy", "").Status == 409 { // after five conflicts the visitor tries again
				}
			}
		})
	}
	wg.Wait()
	s.Matches(200, `\{.*"clicks":20.*\}`, "GET", "/v1/links/busy", "", token)
}
