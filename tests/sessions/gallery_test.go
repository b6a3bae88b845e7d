package sessions_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"runner.example/tests/harness"
)

// writePicture writes a PNG of one color, and returns its path.
func writePicture(t *testing.T, name string, of color.Color) string {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, 640, 480))
	for i := range 640 * 480 {
		picture.Set(i%640, i/640, of)
	}
	var text bytes.Buffer
	path := filepath.Join(t.TempDir(), name)
	if err := png.Encode(&text, picture); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// axe returns the script of axe-core.
func axe(t *testing.T) string {
	t.Helper()
	dir, err := exec.Command(harness.RepoFile("tools/fetch-axe.sh")).Output()
	if err != nil {
		t.Fatalf("tools/fetch-axe.sh: %v", err)
	}
	script, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// isUsable reports what axe-core finds on the page.
func (b *tab) isUsable(when, script string) {
	b.t.Helper()
	in(b, chromedp.Evaluate[bool](script+"; true"))
	const run = `axe.run().then(({ violations }) => violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html).join(" ")).join("\n"))`
	if found := in(b, chromedp.Evaluate[string](run, chromedp.EvalAwaitPromise)); found != "" {
		b.t.Errorf("%s, the page keeps people out:\n%s", when, found)
	}
}

// loaded waits for a picture, and returns its path.
func (b *tab) loaded(selector string) string {
	b.t.Helper()
	b.text(selector)
	return in(b, chromedp.Evaluate[string](`(async () => {
  const image = document.querySelector(`+"`"+selector+"`"+`);
  image.loading = "eager";
  await image.decode();
  return image.naturalWidth === 640 ? new URL(image.src).pathname : "an image of " + image.naturalWidth + " pixels";
})()`, chromedp.EvalAwaitPromise))
}

// TestAPictureIsSeenByItsOwnerUntilItIsPublic uses the page of plugins/examples/gallery.
func TestAPictureIsSeenByItsOwnerUntilItIsPublic(t *testing.T) {
	t.Parallel()
	check := axe(t)
	s := harness.ExampleApp(t, "gallery").Serve()
	b := browser(t)
	b.open(s.URL + "/")
	b.fill("[name=name]", "ada")
	b.fill("[name=password]", "correct horse")
	b.isUsable("before the sign-in", check)
	b.click("[value=signup]")
	if name := b.text("#account:not([hidden]) #name"); name != "ada" {
		t.Fatalf("signed up as %q", name)
	}
	b.fill("#new-album [name=title]", "Sea")
	b.click("#new-album button")
	if title := b.text("#album:not([hidden]) h3"); title != "Sea" {
		t.Errorf("the album is %q", title)
	}

	in(b, chromedp.SetUploadFiles(chromedp.CSS("#files"), []string{writePicture(t, "blue sea.png", color.RGBA{20, 60, 160, 255})}))
	path := b.loaded("#pictures li img")
	if title := b.text("#pictures li h4"); title != "blue sea" || !strings.HasPrefix(path, "/v1/pictures/") {
		t.Errorf("the picture %q is at %s", title, path)
	}
	in(b, chromedp.Evaluate[bool](`(() => {
  const drag = new DataTransfer();
  drag.items.add(new File(["no picture"], "notes.png", { type: "image/png" }));
  document.querySelector("#drop").dispatchEvent(new DragEvent("drop", { dataTransfer: drag, bubbles: true, cancelable: true }));
  return true;
})()`))
	if said := b.text("#uploads li span:last-child"); !strings.HasPrefix(said, "notes.png: ") || !strings.Contains(said, "must be of type image/png") {
		t.Errorf("a text that is dropped as a picture: %q", said)
	}
	b.isUsable("with an album", check)

	status := `fetch("` + path + `", { cache: "no-store" }).then((answer) => answer.status)`
	if got := in(b, chromedp.Evaluate[int](status, chromedp.EvalAwaitPromise)); got != 200 {
		t.Errorf("the owner gets the picture with %d", got)
	}
	b.click("#signout")
	b.text("#entry:not([hidden]) h2")
	if got := in(b, chromedp.Evaluate[int](status, chromedp.EvalAwaitPromise)); got != 404 {
		t.Errorf("signed out, the private picture is answered with %d", got)
	}
	if n := in(b, chromedp.Evaluate[int](`document.querySelectorAll(".picture").length`)); n != 0 {
		t.Errorf("signed out, the page shows %d pictures", n)
	}

	b.open(s.URL + "/")
	b.fill("[name=name]", "ada")
	b.fill("[name=password]", "correct horse")
	b.click("[value=signin]")
	b.loaded("#pictures li img")
	b.click("#pictures input[type=checkbox]")
	if public := b.loaded("#public li img"); public != path {
		t.Errorf("the public picture is at %s, want %s", public, path)
	}
	b.click("#signout")
	visitor := browser(t)
	visitor.open(s.URL + "/")
	if public := visitor.loaded("#public li img"); public != path {
		t.Errorf("a visitor sees the picture at %s, want %s", public, path)
	}
	visitor.isUsable("for a visitor", check)
}
