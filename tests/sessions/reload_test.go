package sessions_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"runner.example/tests/harness"
)

const reloadSchema = harness.DevSchema + `
assets("/", dir: "public", headers: { "Content-Security-Policy": "default-src 'self'" })
`

const reloadPage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>One</title></head>
<body><p id="text">one</p><script src="page.js"></script></body></html>
`

// waitFor waits until a condition in the page is true. It survives reloads of the page, which abort the evaluation.
func waitFor(s *harness.Server, b *tab, condition string) {
	b.t.Helper()
	s.WaitUntil(condition, func() bool {
		holds, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](condition))
		return err == nil && holds
	})
}

func TestAPageReloadsAfterASave(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, reloadSchema, "[build]\ncommand = \"cp web/page.js public/page.js\"\n")
	a.Write("handlers/hello.ts", harness.HelloSource("one"))
	a.Write("public/index.html", reloadPage)
	a.Write("web/page.js", "document.title = 'script one';\n")
	s := a.Start("dev")
	s.WaitForOutput(`serving \d+ routes`)
	b := browser(t)
	b.open(s.URL + "/")
	waitFor(s, b, `document.title === "script one"`)
	if html := s.Get("/", "").Body; !strings.Contains(html, "/_dev/reload.js") {
		t.Errorf("the page has no reload script:\n%s", html)
	}
	if script := s.Get("/page.js", "").Body; script != "document.title = 'script one';\n" {
		t.Errorf("another file has changed: %q", script)
	}

	a.Write("public/index.html", strings.Replace(reloadPage, ">one<", ">two<", 1))
	waitFor(s, b, `document.querySelector("#text").textContent === "two"`)
	a.Write("web/page.js", "document.title = 'script two';\n") // the build command writes the file of the page
	waitFor(s, b, `document.title === "script two"`)

	a.Write("runner.toml", "[front]\nbody = \"2mb\"\n") // restarts the server, without the command
	s.WaitForOutput(`the settings have changed(?s:.*)serving`)
	a.Write("public/page.js", "document.title = 'script three';\n")
	waitFor(s, b, `document.title === "script three"`)
	s.Stop() // does not wait for the page

	s = a.Serve()
	if html := s.Get("/", "").Body; html != strings.Replace(reloadPage, ">one<", ">two<", 1) {
		t.Errorf("runner serve has another page:\n%s", html)
	}
	if got := s.Get("/_dev/reload.js", ""); got.Status != 404 {
		t.Errorf("runner serve has the script: %d", got.Status)
	}
}
