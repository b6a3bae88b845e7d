package symbols_test

import (
	"slices"
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
		"0x1f2":                   {Offset: 0x1f2},
		"a.ts:12":                 {File: "a.ts", Line: 12},
	} {
		if got := f.String(); got != want {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
}

func TestFramesOfTheGuestAndOfTheHost(t *testing.T) {
	panics := symbols.Frame{Function: "core::panicking::panic", File: "core/src/panicking.rs", Line: 5, Offset: 9}
	pick := symbols.Frame{Function: "r::pick", File: "handlers/r/src/lib.rs", Line: 10, Column: 43, Offset: 7}
	serve := symbols.Frame{Function: "serve", File: "rust/src/serve.rs", Line: 59, Offset: 5}
	seen := []symbols.Frame{panics, pick, serve}
	place := symbols.Frame{File: "src/lib.rs", Line: 10, Column: 43}
	elsewhere := symbols.Frame{File: "lib.rs", Line: 11}
	named := symbols.Frame{Function: "total", File: "handlers/a.ts", Line: 3}
	sdk := symbols.Frame{Function: "abort", File: "handlers/c/include/src/failure.c", Line: 3, Offset: 4}
	for name, tt := range map[string]struct{ reported, seen, want []symbols.Frame }{
		"a place that the host sees":         {[]symbols.Frame{place}, seen, seen[1:]},
		"a place that the host does not see": {[]symbols.Frame{elsewhere}, seen, []symbols.Frame{elsewhere, panics, pick, serve}},
		"calls by their names":               {[]symbols.Frame{named}, seen, []symbols.Frame{named}},
		"nothing":                            {nil, seen, seen},
		"nothing by the SDK for C":           {nil, []symbols.Frame{sdk, sdk, pick}, []symbols.Frame{pick}},
		"no line is known":                   {[]symbols.Frame{{File: "a.c"}}, []symbols.Frame{{Function: "f"}}, []symbols.Frame{{File: "a.c"}, {Function: "f"}}},
	} {
		if got := symbols.Join(tt.reported, tt.seen); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
	if got := symbols.Join([]symbols.Frame{elsewhere}, slices.Repeat(seen, 20)); len(got) != symbols.MaxFrames {
		t.Errorf("%d frames", len(got))
	}
}
