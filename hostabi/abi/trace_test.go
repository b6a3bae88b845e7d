package abi_test

import (
	"strings"
	"testing"

	"runner.example/hostabi/abi"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func traced(value string) *abi.Request {
	return &abi.Request{ID: "id", Traceparent: []byte(value)}
}

func TestATraceIsThatOfAValidTraceparent(t *testing.T) {
	for value, want := range map[string]bool{
		parent:                                  true,
		"01" + parent[2:] + "-what-comes-later": true,
		"01" + parent[2:]:                       true,
		"":                                      false,
		"ff" + parent[2:]:                       false,
		parent + "-x":                           false,
		"01" + parent[2:] + "x":                 false,
		strings.ToUpper(parent):                 false,
		parent[:54]:                             false,
		strings.Replace(parent, "4bf92f3577b34da6a3ce929d0e0e4736", strings.Repeat("0", 32), 1): false,
		strings.Replace(parent, "00f067aa0ba902b7", strings.Repeat("0", 16), 1):                 false,
		strings.Replace(parent, "-", "_", 1):                                                    false,
		strings.Replace(parent, "f9", "-9", 1):                                                  false,
		parent + ", " + parent:                                                                  false,
	} {
		got := traced(value).Trace()
		if (got.ID == "4bf92f3577b34da6a3ce929d0e0e4736") != want || !want && got.ID != "" {
			t.Errorf("%q: trace %q", value, got.ID)
		}
	}
}

func TestATraceContinuesWithANewSpan(t *testing.T) {
	trace := traced(parent).Trace()
	seen := map[string]bool{parent: true}
	for range 100 {
		next := trace.Traceparent()
		if seen[next] || !strings.HasPrefix(next, parent[:36]) || !strings.HasSuffix(next, "-01") || traced(next).Trace() != trace {
			t.Fatalf("%q", next)
		}
		seen[next] = true
	}
}

func FuzzTrace(f *testing.F) {
	f.Add(parent)
	f.Fuzz(func(t *testing.T, value string) {
		trace := traced(value).Trace()
		if trace.ID == "" {
			return
		}
		if len(trace.ID) != 32 || strings.Trim(trace.ID, "0123456789abcdef") != "" || traced(trace.Traceparent()).Trace() != trace {
			t.Errorf("%q: %+v", value, trace)
		}
	})
}
