package sessions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"runner.example/tests/harness"
)

// TestTwoBrowsersSeeEachOthersVotes uses the page of plugins/examples/board, also while its server is away.
func TestTwoBrowsersSeeEachOthersVotes(t *testing.T) {
	t.Parallel()
	a := harness.ExampleApp(t, "board")
	s := a.Serve()
	ann, ben := browser(t), browser(t)
	ann.open(s.URL + "/")
	ann.fill("[name=title]", "Drinks")
	ann.fill("[name=options]", "tea\ncoffee <b>\n")
	ann.click("#new button")
	const votes = `#options li:nth-child(%d)[data-votes="%d"]`
	wants := func(b *tab, option, n int, label string) {
		t.Helper()
		if got := b.text(fmt.Sprintf(votes, option, n) + " span"); got != label {
			t.Errorf("the option with %d votes is %q, want %q", n, got, label)
		}
	}
	wants(ann, 1, 0, "tea")
	address := in(ann, chromedp.Evaluate[string]("location.href"))
	ben.open(address)
	wants(ben, 2, 0, "coffee <b>")
	if title := ben.text("#title"); title != "Drinks" {
		t.Errorf("the title is %q", title)
	}
	ann.click(fmt.Sprintf(votes, 1, 0) + " button")
	wants(ben, 1, 1, "tea")
	ben.click(fmt.Sprintf(votes, 1, 1) + " button")
	wants(ann, 1, 2, "tea")

	s.Kill()
	for _, b := range []*tab{ann, ben} {
		b.text(`#state[data-state="connecting"]`)
	}
	s = a.Serve("--listen", s.Addr)
	s.Want(204, nil, "POST", "/v1/boards/"+address[strings.Index(address, "#")+1:]+"/votes",
		fmt.Sprintf(`{"option":%q}`, in(ann, chromedp.Evaluate[string](`document.querySelectorAll("#options li")[1].dataset.option`))))
	for _, b := range []*tab{ann, ben} {
		b.text(`#state[data-state="live"]`)
		wants(b, 1, 2, "tea")
		wants(b, 2, 1, "coffee <b>")
	}
	ann.click(fmt.Sprintf(votes, 2, 1) + " button")
	wants(ben, 2, 2, "coffee <b>")

	ben.open("about:blank")
	ben.open(s.URL + "/#none")
	if said := ben.text(`#state[data-state="problem"]`); said == "" {
		t.Error("a board that does not exist has no problem")
	}
}
