package symbols_test

import (
	"testing"

	"runner.example/internal/symbols"
)

func TestFramesAsGuestsReportThem(t *testing.T) {
	for _, c := range []struct {
		line string
		want symbols.Frame
	}{
		{"    at total (handlers/orders.ts:12:7)", symbols.Frame{Function: "total", File: "handlers/orders.ts", Line: 12, Column: 7}},
		{"    at handlers/orders.ts:12:7", symbols.Frame{File: "handlers/orders.ts", Line: 12, Column: 7}},
		{"  at main.(*Cart).total (cart.go:9)", symbols.Frame{Function: "main.(*Cart).total", File: "cart.go", Line: 9}},
		{"    at core::slice::index (lib.rs)", symbols.Frame{Function: "core::slice::index", File: "lib.rs"}},
		{"    at operator() (a b.cc:3:1)", symbols.Frame{Function: "operator()", File: "a b.cc", Line: 3, Column: 1}},
	} {
		if got, ok := symbols.ParseFrame(c.line); !ok || got != c.want {
			t.Errorf("ParseFrame(%q) = %+v, %v; want %+v", c.line, got, ok, c.want)
		}
	}
	for _, line := range []string{"", "at x (a:1)", "    of a message", "    at "} {
		if got, ok := symbols.ParseFrame(line); ok {
			t.Errorf("ParseFrame(%q) = %+v", line, got)
		}
	}
}

func TestAFrameInOneLine(t *testing.T) {
	for want, f := range map[string]symbols.Frame{
		"total (a.ts:12:7)":       {Function: "total", File: "a.ts", Line: 12, Column: 7},
		"total (a.c:12) at 0x1f2": {Function: "total", File: "a.c", Line: 12, Offset: 0x1f2},
		"total at 0x1f2":          {Function: "total", Offset: 0x1f2},
		"at 0x1f2":                {Offset: 0x1f2},
		"a.ts:12":                 {File: "a.ts", Line: 12},
	} {
		if got := f.String(); got != want {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
}
