package console_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"

	"runner.example/internal/console"
)

func TestABarIsShownForLongWorkAlone(t *testing.T) {
	for took, want := range map[time.Duration]bool{0: false, 900 * time.Millisecond: false, 3 * time.Second: true} {
		for _, outcome := range []error{nil, errors.New("failed")} {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				c := console.Console{Stderr: &out, Terminal: true}
				bar := c.NewBar("jobs", 0, progress.UnitsDefault)
				time.Sleep(took)
				bar.Add(7)
				bar.End(outcome)
				if shown := strings.Contains(out.String(), "jobs"); shown != want {
					t.Errorf("work of %s: %q", took, out.String())
				}
			})
		}
	}
	var out bytes.Buffer
	bar := (&console.Console{Stderr: &out}).NewBar("jobs", 0, progress.UnitsDefault)
	bar.Add(1)
	bar.End(nil)
	if out.Len() > 0 {
		t.Errorf("without a terminal: %q", out.String())
	}
}
