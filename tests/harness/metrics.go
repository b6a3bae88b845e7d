package harness

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// MetricsURL returns the address of the metrics of the running server, or "".
func (a *App) MetricsURL() string {
	a.T.Helper()
	var state struct{ Metrics string }
	if err := json.Unmarshal([]byte(a.Must("status", "--json")), &state); err != nil {
		a.T.Fatal(err)
	}
	return state.Metrics
}

// Metrics returns the metrics of the running server: values by name with labels, as Prometheus' text format
// has them.
func (a *App) Metrics() map[string]float64 {
	a.T.Helper()
	return Metrics(a.T, Scrape(a.T, a.MetricsURL()))
}

// Scrape reads metrics as text.
func Scrape(t testing.TB, url string) string {
	t.Helper()
	got, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != 200 {
		t.Fatalf("%d %s, %v", got.StatusCode, text, err)
	}
	return string(text)
}

// Metrics reads what Scrape returns.
func Metrics(t testing.TB, text string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("metrics: %q: %v", line, err)
		}
		values[line[:at]] = value
	}
	return values
}
