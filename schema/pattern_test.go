package schema_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"runner.example/internal/cost"
	"runner.example/schema"
)

// patternForm has patterns at the limits of their cost.
const patternForm = `app a
type Form {
  short: string(100)?
  name: text(2000)? @pattern("^(a?){500}b$")
  names: string(2000)[]? @pattern("^(a?){500}b$")
  any: json?
}
auth { session cookie {} }
routes("/", auth: session, rateLimit: none) { POST /x -> x (input: Form) }`

func TestAPatternMatchesTheSameWithAndWithoutAMeter(t *testing.T) {
	form := mustCompile(t, patternForm).Type("Form")
	name := form.Fields[1].Type
	var m cost.Meter
	for _, text := range []string{"b", "ab", "aaab", "ba", "é", strings.Repeat("a", 500) + "b", strings.Repeat("a", 501) + "b", strings.Repeat("a", 1500)} {
		m.Reset(func() error { return nil })
		_, once := name.Parse([]byte(`"` + text + `"`))
		_, inSteps := name.ParseMetered([]byte(`"`+text+`"`), &m)
		if (once == nil) != (inSteps == nil) {
			t.Errorf("%.10q (%d): %v at once, %v in steps", text, len(text), once, inSteps)
		}
	}
}

// The work between two calls of the meter takes a few milliseconds, so Check ends soon after
// its deadline.
func TestCheckStopsWhenTheMeterFails(t *testing.T) {
	form := mustCompile(t, patternForm).Type("Form")
	long := strings.Repeat("a", 2000)
	const limit = 30 // the first 16 calls are for the depth of brackets
	over := errors.New("over")
	for name, body := range map[string]string{
		"patterns": `{"names":[` + strings.Repeat(`"`+long+`",`, 500) + `""]}`,
		"tokens":   `{"any":[` + strings.Repeat(`[],`, 330_000) + `0]}`,
		"unknown":  `{"none":[` + strings.Repeat("1,", 500_000) + `1]}`,
	} {
		calls := 0
		var m cost.Meter
		m.Reset(func() error {
			if calls++; calls == limit {
				return over
			}
			return nil
		})
		began := time.Now()
		form.Check([]byte(body), &m)
		if m.Err() != over || calls != limit {
			t.Errorf("%s: %v after %d calls", name, m.Err(), calls)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: %d calls took %s", name, limit, took)
		}
		if wrong := schema.JSONError([]byte(body), &m); m.Err() != over {
			t.Errorf("%s: then %v", name, wrong)
		}
	}
}
