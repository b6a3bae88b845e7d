package operations_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"runner.example/tests/harness"
)

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// alternately measures a and b in turn, and returns the medians.
func alternately(rounds int, a, b func() float64) (first, second float64) {
	var as, bs []float64
	for range rounds {
		as, bs = append(as, a()), append(bs, b())
	}
	return median(as), median(bs)
}

func TestMetricsCostFewRequests(t *testing.T) {
	if !harness.Soak {
		t.Skip("compares speeds: make soak does it")
	}
	start := func(toml string) func() float64 {
		a := harness.NewApp(t, backupSchema, toml, "echo")
		token, s := a.Token("reader"), a.Serve()
		return func() float64 { return s.RequestsPerSecond("/hello", token, 2*time.Second) }
	}
	without, with := alternately(9, start(""), start("[metrics]\nlisten = \"127.0.0.1:0\"\n"))
	t.Logf("%.0f requests per second without metrics, %.0f with: %.3f times", without, with, with/without)
	if with < 0.97*without {
		t.Error("fewer than 0.97 of the requests")
	}
}

func TestABackupOfManyRowsLeavesTimeForRequests(t *testing.T) {
	if !harness.Soak {
		t.Skip("compares speeds: make soak does it")
	}
	const rows = 1_000_000
	a := harness.NewApp(t, backupSchema, "", "echo")
	file, err := os.Create(a.Path("notes.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		fmt.Fprintf(file, "{\"text\":\"note %d of many: %x\"}\n", i, i*7919)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	token, s := a.Token("reader"), a.Serve()
	a.Must("data", "import", "Note", "notes.jsonl")
	backups := 0
	quiet, busy := alternately(5, func() float64 {
		return s.RequestsPerSecond("/hello", token, 2*time.Second)
	}, func() float64 {
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { // the next one begins when one has ended
			defer close(ended)
			for ctx.Err() == nil {
				cmd := exec.CommandContext(ctx, harness.Binary, "backup", "running", "--force")
				cmd.Dir = a.Dir
				if cmd.Run() == nil {
					backups++
				}
			}
		}()
		defer func() { stop(); <-ended }()
		return s.RequestsPerSecond("/hello", token, 4*time.Second)
	})
	t.Logf("%.0f requests per second, %.0f while backups of %d rows run (%d ended): %.3f times", quiet, busy, rows, backups, busy/quiet)
	if busy < 0.85*quiet {
		t.Error("fewer than 0.85 of the requests")
	}

	a.Must("backup", "b")
	s.Stop()
	seconds := func(name string, args ...string) float64 {
		began := time.Now()
		cmd := exec.Command(name, args...)
		cmd.Dir = a.Dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v %s", name, args, err, out)
		}
		return time.Since(began).Seconds()
	}
	copied, restored := alternately(5, func() float64 {
		return seconds("sh", "-c", "rm -f copy; cp b copy && sync copy")
	}, func() float64 {
		a.Remove("restored")
		return seconds(harness.Binary, "restore", "b", "--data", "restored", "--pepper", "data/pepper")
	})
	info, err := os.Stat(a.Path("b"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("copying a backup of %d MiB takes %.2f s, restoring it %.2f s: %.1f times", info.Size()>>20, copied, restored, restored/copied)
	if restored > 6*copied { // less than 3 times if no other process needs the processors
		t.Error("more than 6 times")
	}
}
