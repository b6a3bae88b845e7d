package sessions_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"runner.example/tests/harness"
)

// A page without inline code runs under its content policy, in Chromium, and stays the page of each path of its own.
func TestAPageOfAssetsRunsInABrowser(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, `
assets("/", dir: "public", spa: "index.html", headers: { "Content-Security-Policy": "default-src 'self'; base-uri 'none'" })
`, "", "echo")
	a.Write("public/index.html", `<!doctype html><title>page</title><link rel="stylesheet" href="/style.css">
<p id="path"></p><p id="inline">none</p><script>document.querySelector("#inline").textContent = "inline code ran"</script>
<script type="module" src="/app-7HW4QZ2K.js"></script>`)
	a.Write("public/style.css", "#path { color: rgb(1, 2, 3) }")
	a.Write("public/app-7HW4QZ2K.js", `
const missing = await fetch("/missing.js");
const again = await fetch("/style.css", { cache: "reload" });
const p = document.querySelector("#path");
p.textContent = location.pathname + " " + missing.status + " " + again.headers.get("content-type");
p.dataset.done = "yes";
`)
	s := a.Serve()
	b := browser(t)
	for _, path := range []string{"/", "/orders/7"} {
		b.open(s.URL + path)
		if got, want := b.text("#path[data-done]"), path+" 404 text/css; charset=utf-8"; got != want {
			t.Errorf("the page says %q, want %q", got, want)
		}
		if got := b.text("#inline"); got != "none" {
			t.Errorf("under its policy: %s", got)
		}
		if color := in(b, chromedp.Evaluate[string](`getComputedStyle(document.querySelector("#path")).color`)); color != "rgb(1, 2, 3)" {
			t.Errorf("the style is %s", color)
		}
	}
}
