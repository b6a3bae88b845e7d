package telemetry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"runner.example/internal/telemetry"
)

func TestKnownValuesAreHiddenInAllTheirForms(t *testing.T) {
	var values telemetry.Values
	const plainValue, difficult = "correct horse", "p\"a\\ss<w>&rd\x01\u00a0ü"
	const tokenLike = "whsec_" + secret + "+c4n4ry=="
	values.Add(tokenLike, plainValue, difficult, "short", "", "-----BEGIN KEY-----\nc4n4ryOfTheFirstLine\nabc\n", "correct horse battery")
	nested, err := json.Marshal(map[string]string{"v": difficult})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		log := telemetry.NewLogger(telemetry.NewRedactor(&out, &values), telemetry.Options{Format: format})
		log.Info("it is "+plainValue+", and short", "value", difficult, "nested", string(nested), "key", "c4n4ryOfTheFirstLine", "asGo", fmt.Sprintf("%q", difficult))
		log.Info("another", "longer", "correct horse battery")
		log.Info("one that looks like a token", "at", tokenLike)
		got := out.String()
		for _, part := range []string{"horse", "battery", "ss<w", `ss\u003c`, "ü", "c4n4ry", "=="} {
			if strings.Contains(got, part) {
				t.Errorf("%s: %q is left in %s", format, part, got)
			}
		}
		if !strings.Contains(got, "it is …, and short") || strings.Count(got, "\n") != 3 {
			t.Errorf("%s: %s", format, got)
		}
	}
}

func TestValuesMayBeAddedWhileLinesAreWritten(t *testing.T) {
	var values telemetry.Values
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 50 {
				value := fmt.Sprintf("value %d of %d.", j, i)
				values.Add(value)
				var out bytes.Buffer
				if _, err := telemetry.NewRedactor(&out, &values).Write([]byte("a " + value + "\n")); err != nil || out.String() != "a …\n" {
					t.Errorf("%q, %v", out.String(), err)
				}
			}
		})
	}
	all.Wait()
}

func TestALineWithoutValuesIsNotCopied(t *testing.T) {
	for name, values := range map[string]*telemetry.Values{"nil": nil, "zero": {}} {
		var out bytes.Buffer
		r := telemetry.NewRedactor(&out, values)
		line := []byte("a line\n")
		if n := testing.AllocsPerRun(100, func() { out.Reset(); _, _ = r.Write(line) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}
