package languages_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const mountedSchema = `app mounted
outbound { allow: ["<service>"] }
auth { session cookie { } }
routes("/", auth: none, rateLimit: none) {
  ANY /open/*    -> mounted (cors: ["https://page.example"], body: 4mb)
  ANY /small/*   -> mounted (body: 1kb)
  ANY /mine/*    -> mounted (auth: session)
  ANY /limited/* -> mounted (rateLimit: 3/day by ip)
  GET /limits/:what -> limits
  GET /count     -> count
  GET /together  -> together
}
`

// mountedApp is an app below routes with settings, which may send requests to the service.
func mountedApp(t *testing.T, service string) *harness.App {
	t.Helper()
	return pythonApp(t, "mounted", strings.ReplaceAll(mountedSchema, "<service>", service), "[outbound]\nallow_private = true\n",
		append([]string{"requests", "urllib3", "chardet", "certifi", "idna", "six.py"}, flaskPackages...)...)
}

// The settings of a route hold for all paths of an application below it.
func TestTheSettingsOfARouteHoldForAnApplicationInPython(t *testing.T) {
	t.Parallel()
	a := mountedApp(t, "https://service.example")
	cookie := "Cookie: " + a.Session("ada").Cookie
	s := a.Serve()
	t.Run("cors", func(t *testing.T) {
		for _, path := range []string{"/open/", "/open/a/b"} {
			for origin, allowed := range map[string]string{"https://page.example": "https://page.example", "https://evil.example": ""} {
				got := s.Do("GET", path, "", "Origin: "+origin)
				if got.Status != 200 || got.Header.Get("Access-Control-Allow-Origin") != allowed {
					t.Errorf("GET %s from %s: %+v", path, origin, got)
				}
				preflight := s.Do("OPTIONS", path, "", "Origin: "+origin, "Access-Control-Request-Method: DELETE")
				if preflight.Header.Get("Access-Control-Allow-Origin") != allowed || preflight.Status != 204 {
					t.Errorf("a preflight of %s from %s: %+v", path, origin, preflight)
				}
			}
		}
	})
	t.Run("csrf", func(t *testing.T) {
		for origin, want := range map[string]int{s.URL: 200, "https://evil.example": 403} {
			if got := s.Do("POST", "/mine/a/b", "", cookie, "Origin: "+origin); got.Status != want {
				t.Errorf("a form of %s: %+v", origin, got)
			}
		}
		s.Want(401, nil, "GET", "/mine/a", "")
		s.Matches(200, `\{"method":"GET","rest":"a"\}\n`, "GET", "/limited/a", "", "")
	})
	t.Run("rates", func(t *testing.T) { // one request was above
		for i, path := range []string{"/limited/", "/limited/b/c", "/limited/d"} {
			got := s.Do("GET", path, "")
			if want := []int{200, 200, 429}[i]; got.Status != want || got.Header.Get("RateLimit-Policy") == "" {
				t.Errorf("GET %s: %+v, want %d", path, got, want)
			}
		}
	})
	t.Run("upload", func(t *testing.T) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		body, kind, want := randomUpload(t, rand.New(rand.NewPCG(seed, 2)), []int{0, 1, 700_000, 2_000_000})
		if got := s.Do("POST", "/open/upload", body, kind); got.Status != 200 || got.Body != want+"\n" {
			t.Errorf("an upload: %d %s, want %s", got.Status, got.Body, want)
		}
		body, kind, _ = randomUpload(t, rand.New(rand.NewPCG(seed, 3)), []int{1 << 10})
		if got := s.Do("POST", "/small/upload", body, kind); got.Status != 413 {
			t.Errorf("an upload of more than the limit of the route: %+v", got)
		}
	})
}

// randomUpload returns a form with files of these sizes, its content type, and what the application answers.
func randomUpload(t *testing.T, random *rand.Rand, sizes []int) (body, kind, want string) {
	t.Helper()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	if err := w.WriteField("title", "é & <x>"); err != nil {
		t.Fatal(err)
	}
	var files []string
	for i, size := range sizes {
		data := make([]byte, size)
		for at := range data {
			data[at] = byte(random.Uint32())
		}
		name := fmt.Sprintf("%d.bin", i)
		part, err := w.CreateFormFile("files", name)
		if err == nil {
			_, err = part.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, fmt.Sprintf(`["%s","application/octet-stream",%d,"%x"]`, name, size, sha256.Sum256(data)))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want = fmt.Sprintf(`{"files":[%s],"title":"\u00e9 & <x>"}`, strings.Join(files, ","))
	return form.String(), "Content-Type: " + w.FormDataContentType(), want
}

func TestFetchInPythonHasTheLimitsOfTheHost(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			select {
			case <-r.Context().Done():
			case <-ended:
			}
		case "/whole":
			fmt.Fprint(w, strings.Repeat("é", 5<<19))
		case "/huge":
			chunk := make([]byte, 1<<20)
			for range 200 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		case "/moved":
			http.Redirect(w, r, "/there", http.StatusFound)
		default:
			_, _ = io.Copy(io.Discard, r.Body) // the client may be gone
		}
	}))
	t.Cleanup(service.Close)
	t.Cleanup(func() { close(ended) })
	s := mountedApp(t, service.URL).Serve()
	for what, want := range map[string]string{
		"large": `200`, "larger": `"too_large"`, "whole": `5242880`, "answer": `"too_large"`, "late": `"deadline"`, "late requests": `"ReadTimeout"`, "method": `"invalid"`,
		"header": `"denied"`, "origin": `"denied"`, "manual": `302`, "error": `"unavailable"`,
	} {
		s.Matches(200, want, "GET", "/limits/"+strings.ReplaceAll(what, " ", "%20")+"?service="+service.URL, "", "")
	}
	s.Matches(200, `\[200,"limit"\]`, "GET", "/count?service="+service.URL, "", "")
	s.Matches(200, `40`, "GET", "/together?service="+service.URL, "", "")
}
