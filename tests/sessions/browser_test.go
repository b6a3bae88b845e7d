package sessions_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"runner.example/tests/harness"
)

// web is a reverse proxy in front of the runner, with TLS and the files of a page. The
// browser sees it as https://tracker.example. For any other host it serves another page.
type web struct {
	port string

	mu   sync.Mutex
	seen []string // requests of browsers to the runner, with the status of the response
}

var apiPath = regexp.MustCompile(`^/(api|_call|signup|signin|signout)(/|$)`)

// newWeb serves a directory and the server's app as tracker.example.
func newWeb(t *testing.T, s *harness.Server, directory string) *web {
	t.Helper()
	to, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	w := &web{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: func(r *http.Response) error {
			_, err := r.Request.Cookie("__Host-sid")
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen = append(w.seen, fmt.Sprintf("%s %s %s, session %v: %d", r.Request.Header.Get("Sec-Fetch-Site"), r.Request.Method, r.Request.URL.Path, err == nil, r.StatusCode))
			return nil
		},
	}
	files := http.FileServer(http.Dir(directory))
	front := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(r.Host, ":")
		switch {
		case name != "tracker.example":
			out.Header().Set("Content-Type", "text/html")
			fmt.Fprint(out, "<!doctype html><title>Another page</title>")
		case apiPath.MatchString(r.URL.Path):
			proxy.ServeHTTP(out, r)
		default:
			files.ServeHTTP(out, r)
		}
	}))
	t.Cleanup(front.Close)
	at, err := url.Parse(front.URL)
	if err != nil {
		t.Fatal(err)
	}
	w.port = at.Port()
	return w
}

func (w *web) url(host, path string) string { return "https://" + host + ":" + w.port + path }

// asked returns the requests since the last call.
func (w *web) asked() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := strings.Join(w.seen, "\n")
	w.seen = nil
	return all
}

// browser starts a headless Chromium that ends with the test. It resolves every host to
// this machine, so it contacts no other.
func browser(t *testing.T) *tab {
	t.Helper()
	path, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		t.Fatal("chromium-headless-shell is missing: tools/setup.sh installs it")
	}
	// Chromium's processes may still write there after it ends, so the directory is removed
	// with the others at the end of all tests.
	dir, err := os.MkdirTemp(harness.Scratch, "browser-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*harness.BuildTimeout)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(dir), chromedp.WSURLReadTimeout(harness.Timeout),
		chromedp.Flag("ignore-certificate-errors", true), chromedp.Flag("host-resolver-rules", "MAP * 127.0.0.1"),
	)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return &tab{t, ctx}
}

// tab is a tab of a browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// in runs an action in the tab.
func in[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	result, err := chromedp.Run(b.ctx, func(ctx context.Context, to *chromedp.Target) (T, error) {
		ctx, cancel := context.WithTimeout(ctx, harness.Timeout)
		defer cancel()
		return action(ctx, to)
	})
	if err != nil {
		b.t.Fatalf("in the browser: %v", err)
	}
	return result
}

func (b *tab) open(url string) { b.t.Helper(); in(b, chromedp.Navigate(url)) }

// leave runs a script that opens another page, waits until the tab shows that, and returns its status:
// while one navigation waits for its answer, another one aborts it or is aborted.
func (b *tab) leave(script string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, harness.Timeout)
	defer cancel()
	page, err := chromedp.RunResponse(ctx, chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := chromedp.Evaluate[string](script)(ctx, to)
		return err
	}))
	if err != nil {
		b.t.Fatalf("in the browser: %v", err)
	}
	return fmt.Sprint(page.Status)
}

func (b *tab) click(selector string) { b.t.Helper(); in(b, chromedp.Click(chromedp.CSS(selector))) }

func (b *tab) fill(selector, text string) {
	b.t.Helper()
	in(b, chromedp.SendKeys(chromedp.CSS(selector), text))
}

func (b *tab) text(selector string) string {
	b.t.Helper()
	return in(b, chromedp.Text(chromedp.CSS(selector)))
}

// said waits for the page's message about a subject, and returns it.
func (b *tab) said(of string) string { b.t.Helper(); return b.text(`#said[data-of="` + of + `"]`) }

func TestABrowserSignsInCreatesAKeyAndIsRefusedFromOtherOrigins(t *testing.T) {
	t.Parallel()
	a := harness.ExampleApp(t, "tracker")
	for _, file := range []string{"index.html", "page.ts"} {
		a.Write("web/"+file, harness.MustRead(t, "testdata/browser/"+file))
	}
	a.Write("web/tsconfig.json", harness.ClientConfig)
	a.Must("generate", "client", "--out", "web/client.ts")
	if wrong := harness.CompileTypeScript(t, a.Path("web")); wrong != "" {
		t.Fatal(wrong)
	}
	a.Write("web/out/index.html", harness.MustRead(t, "testdata/browser/index.html"))
	s := a.Serve()
	w := newWeb(t, s, a.Path("web/out"))
	b := browser(t)
	home := w.url("tracker.example", "/")

	b.open(home)
	if said := b.said("keys"); said != "401 missing_credentials" {
		t.Errorf("before signing up: %s", said)
	}
	for name, value := range map[string]string{"slug": "acme", "org": "Acme", "email": "ada@example.com", "name": "Ada"} {
		b.fill("#signup [name="+name+"]", value)
	}
	b.click("#signup button")
	if said := b.said("signup"); !regexp.MustCompile(`^signed up as [0-9a-z]{26}$`).MatchString(said) {
		t.Fatalf("signing up: %s\n%s", said, w.asked())
	}
	cookies := in(b, func(ctx context.Context, to *chromedp.Target) ([]*network.Cookie, error) {
		got, err := cdp.Call(ctx, to, network.GetCookies, network.GetCookiesParams{})
		return got.Cookies, err
	})
	if readable := in(b, chromedp.Evaluate[string]("document.cookie")); len(cookies) != 1 || readable != "" {
		t.Fatalf("the browser has %d cookies, of which scripts see %q", len(cookies), readable)
	}
	if c := cookies[0]; c.Name != "__Host-sid" || c.Domain != "tracker.example" || c.Path != "/" || !c.Secure || !c.HTTPOnly || c.SameSite != network.CookieSameSiteLax {
		t.Errorf("the session's cookie: %s of %s%s, secure %v, http only %v, same site %s", c.Name, c.Domain, c.Path, c.Secure, c.HTTPOnly, c.SameSite)
	}

	w.asked()
	b.fill("#key [name=name]", "reports")
	b.click("#key button")
	token := b.said("key")
	if asked := w.asked(); asked != "same-origin POST /_call/createKey, session true: 200" {
		t.Fatalf("the browser requested\n%s\nand the page shows %s", asked, harness.TokenForm.ReplaceAllString(token, "TOKEN"))
	}
	s.Want(200, nil, "GET", "/api/v1/tasks", "", "X-API-Key: "+token)
	b.open(home)
	if said, keys := b.said("keys"), b.text("#keys"); said != "1 keys" || !strings.HasPrefix(keys, "reports ") || strings.Contains(keys, token) {
		t.Errorf("the page shows %s: %s", said, harness.TokenForm.ReplaceAllString(keys, "TOKEN"))
	}

	t.Run("pages of other origins", func(t *testing.T) {
		call := w.url("tracker.example", "/_call/createKey")
		const body = `{"name":"stolen","scope":"tasks_read"}`
		fetches := func(script string) func() string { // returns what the page can read
			return func() string { t.Helper(); return in(b, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise)) }
		}
		send := func(how string) func() string {
			return fetches(fmt.Sprintf(`fetch(%q, {method: "POST", credentials: "include", body: %q, %s}).then(r => r.type, e => e.name)`, call, body, how))
		}
		read := fetches(fmt.Sprintf(`fetch(%q, {credentials: "include"}).then(r => r.text(), e => e.name)`, w.url("tracker.example", "/api/projects")))
		form := func() string {
			t.Helper()
			return b.leave(fmt.Sprintf(`document.body.innerHTML = '<form method="post" enctype="text/plain" action="%s"></form>', document.forms[0].submit(), ""`, call))
		}
		for _, row := range []struct {
			name, host    string
			does          func() string
			learns, asked string
		}{
			{"a neighbour posts", "evil.tracker.example", send(`mode: "no-cors"`), "opaque", "same-site POST /_call/createKey, session true: 403"},
			{"a neighbour posts JSON", "evil.tracker.example", send(`headers: {"content-type": "application/json"}`), "TypeError", "same-site OPTIONS /_call/createKey, session false: 204"},
			{"a neighbour sends a form", "evil.tracker.example", form, "403", "same-site POST /_call/createKey, session true: 403"},
			{"a neighbour reads", "evil.tracker.example", read, "TypeError", "same-site GET /api/projects, session true: 200"},
			{"a stranger posts", "evil.test", send(`mode: "no-cors"`), "opaque", "cross-site POST /_call/createKey, session false: 401"},
			{"a stranger posts JSON", "evil.test", send(`headers: {"content-type": "application/json"}`), "TypeError", "cross-site OPTIONS /_call/createKey, session false: 204"},
			{"a stranger sends a form", "evil.test", form, "401", "cross-site POST /_call/createKey, session false: 401"},
			{"a stranger reads", "evil.test", read, "TypeError", "cross-site GET /api/projects, session false: 401"},
		} {
			b.open(w.url(row.host, "/"))
			w.asked()
			learnt, asked := row.does(), w.asked()
			if learnt != row.learns || asked != row.asked {
				t.Errorf("%s: the page reads %s after requests\n%s\nwant %s and\n%s", row.name, learnt, asked, row.learns, row.asked)
			}
		}
		b.open(home)
		if said := b.said("keys"); said != "1 keys" {
			t.Errorf("then there are %s", said)
		}
	})

	b.click("#signout button")
	if said := b.said("signout"); said != "signed out" {
		t.Errorf("signing out: %s", said)
	}
	w.asked()
	b.open(home)
	if said, asked := b.said("keys"), w.asked(); said != "401 missing_credentials" || asked != "same-origin POST /_call/listKeys, session false: 401" {
		t.Errorf("after signing out: %s\n%s", said, asked)
	}

	link := mailerOf(s)("acme", "ada@example.com")
	b.open(w.url("tracker.example", "/?by=mail#"+link))
	if said, asked := b.said("keys"), w.asked(); said != "401 missing_credentials" || strings.Contains(asked, "signin") {
		t.Errorf("a link that was opened: %s\n%s", said, asked)
	}
	b.click("#signin button")
	if said, asked := b.said("signin"), w.asked(); said != "signed in" || asked != "same-origin POST /signin, session false: 200" {
		t.Errorf("signing in again: %s\n%s", said, asked)
	}
	if at := in(b, chromedp.Evaluate[string]("location.href")); strings.Contains(at, link) {
		t.Error("the link stays in the browser's history")
	}
	b.open(home)
	if said := b.said("keys"); said != "1 keys" {
		t.Errorf("signed in again: %s", said)
	}
}

// A session cookie needs https. Chromium accepts it over http on loopback, which counts as
// a secure context.
func TestABrowserKeepsSessionsOverHTTPOnlyOnLoopback(t *testing.T) {
	t.Parallel()
	a := harness.ExampleApp(t, "tracker")
	s := a.Serve()
	b := browser(t)
	for i, row := range []struct{ host, statuses string }{
		{"127.0.0.1", "201 200"}, {"localhost", "201 200"}, {"tracker.example", "201 401"},
	} {
		b.open(strings.Replace(s.URL, "127.0.0.1", row.host, 1) + "/api/v1/health")
		got := in(b, chromedp.Evaluate[string](fmt.Sprintf(`(async () => {
			const body = JSON.stringify({ slug: "org-%[1]d", org: "Org", email: "ada%[1]d@example.com", name: "Ada" });
			const signup = await fetch("/signup", { method: "POST", body });
			const keys = await fetch("/_call/listKeys", { method: "POST" });
			return signup.status + " " + keys.status;
		})()`, i), chromedp.EvalAwaitPromise))
		if got != row.statuses {
			t.Errorf("on http://%s: %s, want %s", row.host, got, row.statuses)
		}
	}
}
