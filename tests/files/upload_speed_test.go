package files_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// keepIn stores contents in a directory by their digest, as a program does that has nothing else to do.
func keepIn(dir string, contents io.Reader) error {
	f, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, h), contents); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, fmt.Sprintf("%x", h.Sum(nil))))
}

// TestAnUploadTakesLittleLongerThanWriting compares the time of an upload of 100 MB with those of Go programs that write, sync
// and hash the same bytes: from memory, and as they come from net/http. All three take turns.
func TestAnUploadTakesLittleLongerThanWriting(t *testing.T) {
	if !harness.Soak {
		t.Skip("RUNNER_SOAK is not set: compares times, of 2 GB")
	}
	const size, rounds = 100 << 20, 7
	a, s := serveUploads(t)
	dir := filepath.Join(a.Dir, "bare") // on the same disk
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := keepIn(dir, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	t.Cleanup(bare.Close)
	contents := make([]byte, size)
	put := func(url string) error {
		request, err := http.NewRequest("PUT", url, bytes.NewReader(contents))
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err == nil && answer.StatusCode != 200 {
			err = fmt.Errorf("%d %s", answer.StatusCode, text)
		}
		return err
	}
	arms := []struct {
		name string
		do   func() error
	}{
		{"from memory", func() error { return keepIn(dir, bytes.NewReader(contents)) }},
		{"from net/http", func() error { return put(bare.URL) }},
		{"by the server", func() error { return put(s.URL + "/v1/large") }},
	}
	took := make([][]time.Duration, len(arms))
	random := rand.NewChaCha8([32]byte{})
	for range rounds {
		_, _ = random.Read(contents) // it has no error
		for i, arm := range arms {
			began := time.Now()
			if err := arm.do(); err != nil {
				t.Fatalf("%s: %v", arm.name, err)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	median := make([]time.Duration, len(arms))
	for i, arm := range arms {
		t.Logf("%s: %v", arm.name, took[i])
		slices.Sort(took[i])
		median[i] = took[i][rounds/2]
	}
	t.Logf("medians %v: an upload has %.2f of the speed of net/http, and %.2f of that of a write from memory",
		median, float64(median[1])/float64(median[2]), float64(median[0])/float64(median[2]))
	if float64(median[0])/float64(median[2]) < 0.6 {
		t.Errorf("an upload takes %s, and writing the bytes %s", median[2], median[0])
	}
}
