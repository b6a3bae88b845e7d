package telemetry_test

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"runner.example/internal/telemetry"
)

// ends gives what a log may go to, as the end to write and the one to read.
var ends = map[string]func(t *testing.T) (w, r *os.File){
	"pipe": func(t *testing.T) (w, r *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		return w, r
	},
}

func discarded(lines int) []byte { return fmt.Appendf(nil, "%d discarded\n", lines) }

func TestAQueueDoesNotBlockWritersAndCountsDiscardedLines(t *testing.T) {
	const all, limit = 20_000, 128 << 10
	for name, open := range ends {
		t.Run(name, func(t *testing.T) {
			w, r := open(t)
			defer w.Close()
			defer r.Close()
			q := telemetry.NewQueue(w)
			q.Limit(limit, discarded)
			line := func(i int) string { return fmt.Sprintf("line %d %s\n", i, strings.Repeat("x", i%100)) }
			for i := range all { // nothing is read: all that the queue cannot take is lost
				if n, err := q.Write([]byte(line(i))); n != len(line(i)) || err != nil {
					t.Fatal(n, err)
				}
			}
			began := time.Now()
			q.Flush(time.Millisecond)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("Flush waited %s", took)
			}
			in := bufio.NewReader(r)
			next, seen, lost, bytes := 0, 0, 0, 0
			for lost+seen < all {
				got, err := in.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				got = strings.TrimSuffix(strings.TrimSuffix(got, "\n"), "\r") + "\n"
				var i int
				if n, err := fmt.Sscanf(got, "%d discarded\n", &i); n == 1 && err == nil {
					lost += i
					continue
				}
				bytes += len(got)
				if _, err := fmt.Sscanf(got, "line %d", &i); err != nil || i < next || got != line(i) {
					t.Fatalf("line %q behind %d: %v", got, next-1, err)
				}
				seen, next = seen+1, i+1
			}
			if lost == 0 || bytes > limit+1<<20 {
				t.Errorf("%d lines lost, %d bytes kept", lost, bytes)
			}
			q.Flush(time.Minute)
			if _, err := q.Write([]byte("again\n")); err != nil {
				t.Fatal(err)
			}
			if got, err := in.ReadString('\n'); err != nil || strings.TrimSpace(got) != "again" {
				t.Errorf("afterwards: %q, %v", got, err)
			}
		})
	}
}

func TestAQueueDiscardsNothingWhileTheReaderReads(t *testing.T) {
	w, r := ends["pipe"](t)
	defer r.Close()
	q := telemetry.NewQueue(w)
	q.Limit(64<<20, discarded)
	log := telemetry.NewLogger(telemetry.NewRedactor(q, nil), telemetry.Options{Format: "text"})
	const writers, each = 4, 5000
	for writer := range writers {
		go func() {
			for i := range each {
				log.Info("m", "writer", writer, "i", i)
			}
		}()
	}
	var next [writers]int
	in := bufio.NewScanner(r)
	for range writers * each {
		if !in.Scan() {
			t.Fatal("the log ended")
		}
		var writer, i int
		_, line, _ := strings.Cut(in.Text(), "msg=")
		if _, err := fmt.Sscanf(line, "m writer=%d i=%d", &writer, &i); err != nil || i != next[writer] {
			t.Fatalf("%q, want line %d: %v", in.Text(), next[writer], err)
		}
		next[writer]++
	}
	w.Close()
}

func TestAQueueOverAFileWritesEachLineAtOnce(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	q := telemetry.NewQueue(file)
	q.Limit(1, discarded)
	for i := range 100 {
		if _, err := q.Write([]byte("line\n")); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(file.Name()); err != nil || len(text) != 5*(i+1) {
			t.Fatalf("%d bytes after %d lines, %v", len(text), i+1, err)
		}
	}
}

func TestLineReturnsOneLine(t *testing.T) {
	_, got, _ := strings.Cut(string(telemetry.Options{Format: "text", Level: slog.LevelError}.Line(slog.LevelWarn, "log lines discarded", "lines", 3)), " ")
	if want := "level=WARN msg=\"log lines discarded\" lines=3\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func BenchmarkQueue(b *testing.B) {
	for _, name := range []string{"waiting", "queued"} {
		b.Run(name, func(b *testing.B) {
			r, w, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			go func() {
				for buf := make([]byte, 64<<10); ; {
					if _, err := r.Read(buf); err != nil {
						return
					}
				}
			}()
			q := telemetry.NewQueue(w)
			if name == "queued" {
				q.Limit(1<<20, discarded)
			}
			line := []byte(strings.Repeat("x", 149) + "\n")
			b.ReportAllocs()
			for b.Loop() {
				_, _ = q.Write(line)
			}
			q.Flush(time.Minute)
		})
	}
}

// The memory of lines that were written is free for others: each time that the reader catches up, as many lines
// fit as before.
func TestAQueueHasRoomAgainWhenItsLinesWereWritten(t *testing.T) {
	const lines, limit = 3000, 512 << 10 // of 85 bytes: at most half of the limit
	for name, open := range ends {
		t.Run(name, func(t *testing.T) {
			w, r := open(t)
			defer w.Close()
			defer r.Close()
			q := telemetry.NewQueue(w)
			q.Limit(limit, discarded)
			in := bufio.NewReader(r)
			for round := range 5 {
				for i := range lines {
					if _, err := fmt.Fprintf(q, "%03d %04d %s\n", round, i, strings.Repeat("x", 75)); err != nil {
						t.Fatal(err)
					}
				}
				for i := range lines {
					got, err := in.ReadString('\n')
					if want := fmt.Sprintf("%03d %04d ", round, i); err != nil || !strings.HasPrefix(got, want) {
						t.Fatalf("round %d, line %d is %.20q: %v", round, i, got, err)
					}
				}
				q.Flush(time.Minute)
			}
		})
	}
}
