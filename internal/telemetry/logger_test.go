package telemetry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"runner.example/internal/telemetry"
)

// writes is a writer that remembers each write by itself.
type writes struct {
	mu   sync.Mutex
	each []string
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.each = append(w.each, string(p))
	return len(p), nil
}

func TestJSONLinesHideAttributesWithSecretNames(t *testing.T) {
	var out bytes.Buffer
	log := telemetry.NewLogger(&out, telemetry.Options{})
	log.With("Authorization", "Digest abc").Info("m", "token", 12, "at", time.Unix(1, 999).In(time.FixedZone("x", 3600)), "took", 1234567*time.Nanosecond)
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "time")
	want := map[string]any{
		"level": "INFO", "msg": "m", "Authorization": "…", "token": "…",
		"at": "1970-01-01T00:00:01.000Z", "took": "1.235ms",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTextLinesAreRedacted(t *testing.T) {
	var out bytes.Buffer
	log := telemetry.NewLogger(&out, telemetry.Options{Format: "text"})
	log.Warn("saw "+canary, "cookie", "a=1; b=2", "err", fmt.Errorf("parse %q", "Authorization: Digest abc"))
	_, got, _ := strings.Cut(out.String(), " ")
	if want := `level=WARN msg="saw rnk_…" cookie=… err="parse \"Authorization: …"` + "\n"; got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestLinesBelowTheLevelAreNotWritten(t *testing.T) {
	var out bytes.Buffer
	log := telemetry.NewLogger(&out, telemetry.Options{Level: slog.LevelWarn})
	log.Info("no")
	log.Warn("yes")
	if got := strings.Count(out.String(), "\n"); got != 1 {
		t.Errorf("%d lines, want 1", got)
	}
}

func TestUnknownFormatsAreRefused(t *testing.T) {
	for format, good := range map[string]bool{"": true, "json": true, "text": true, "JSON": false, "xml": false} {
		if err := (telemetry.Options{Format: format}).Validate(); (err == nil) != good {
			t.Errorf("%q: %v", format, err)
		}
	}
}

func TestEveryRecordIsOneWrite(t *testing.T) {
	w := &writes{}
	log := telemetry.NewLogger(w, telemetry.Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				log.Info("a\nb", "text", strings.Repeat("x", 300))
			}
		})
	}
	wg.Wait()
	if len(w.each) != 800 {
		t.Fatalf("%d writes, want 800", len(w.each))
	}
	for _, line := range w.each {
		if !json.Valid([]byte(line)) || strings.Count(line, "\n") != 1 {
			t.Fatalf("not one line: %q", line)
		}
	}
}

func TestATokenWrittenInPiecesIsHidden(t *testing.T) {
	for size := 1; size < 50; size++ {
		w := &writes{}
		r := telemetry.NewRedactor(w, nil)
		for text := "one " + canary + " two\nthree " + canary; text != ""; {
			n := min(size, len(text))
			if _, err := io.WriteString(r, text[:n]); err != nil {
				t.Fatal(err)
			}
			text = text[n:]
		}
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(w.each, ""), "one rnk_… two\nthree rnk_…\n"; got != want {
			t.Fatalf("in pieces of %d: %q, want %q", size, got, want)
		}
	}
}

func TestALongLineIsCutBeforeAToken(t *testing.T) {
	for shift := range 60 {
		w := &writes{}
		r := telemetry.NewRedactor(w, nil)
		line := strings.Repeat("x", 65500+shift) + " " + canary + strings.Repeat(" y", 100_000) + "\nnext\n"
		for text := line; text != ""; {
			n := min(4096, len(text))
			if _, err := io.WriteString(r, text[:n]); err != nil {
				t.Fatal(err)
			}
			text = text[n:]
		}
		got := strings.Join(w.each, "")
		if strings.Contains(got, secret[:8]) || !strings.HasSuffix(got, "(cut)\nnext\n") || len(got) > 70_000 {
			t.Fatalf("shifted by %d: %d bytes that end in %q", shift, len(got), got[max(0, len(got)-80):])
		}
	}
}

func TestConfigureChangesALoggerAndThoseDerivedFromIt(t *testing.T) {
	var out bytes.Buffer
	logger := telemetry.NewLogger(&out, telemetry.Options{})
	derived := logger.With("part", 1).WithGroup("of")
	derived.Debug("hidden")
	derived.Info("first", "n", 2)
	telemetry.Configure(logger, telemetry.Options{Level: slog.LevelDebug, Format: "text"})
	derived.Debug("second", "n", 3)
	telemetry.Configure(logger, telemetry.Options{Level: slog.LevelError})
	derived.Warn("hidden")
	logger.Error("third")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], `"part":1,"of":{"n":2}`) || !strings.Contains(lines[1], "msg=second part=1 of.n=3") || !strings.Contains(lines[2], `"msg":"third"`) {
		t.Errorf("logged:\n%s", out.String())
	}
}
