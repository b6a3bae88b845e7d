package hostabi_test

import (
	"fmt"
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/internal/symbols"
)

const goPanic = "panic: no such order\n\tof this customer\n[signal 0xb code=0x0 addr=0x0 pc=0x0]\n\n" +
	"goroutine 1 [running]:\nruntime.panicmem()\n\t/go/src/runtime/panic.go:262 +0x1\nmain.(*cart).total(0x0)\n\t/app/shop/cart.go:75 +0x1\nmain.order()\n\t/app/shop/main.go:72 +0x2\n"

// logged returns the lines of the log.
func logged(g *guest) []string { return strings.Split(strings.TrimSpace(g.log.String()), "\n") }

func TestACrashOfGoIsOneFailure(t *testing.T) {
	g := newGuest(t, hostabi.Limits{LogLines: 3})
	for i := range 9 {
		g.print(2, fmt.Sprintf("line %d\n", i)) // the budget does not end with it
	}
	for i := 0; i < len(goPanic); i += 7 {
		g.print(2, goPanic[i:min(i+7, len(goPanic))])
	}
	f, ok := g.call.Crash()
	g.call.End()
	want := []symbols.Frame{{Function: "main.(*cart).total", File: "/app/shop/cart.go", Line: 75}, {Function: "main.order", File: "/app/shop/main.go", Line: 72}}
	if !ok || f.Kind != "panic" || f.Message != `no such order\nof this customer` || fmt.Sprint(f.Frames) != fmt.Sprint(want) {
		t.Errorf("the crash is %+v, %v", f, ok)
	}
	if lines := logged(g); len(lines) != 4 || !strings.Contains(lines[3], "6 lines dropped") || strings.Contains(g.log.String(), "panic") {
		t.Errorf("the log has\n%s", g.log.String())
	}
}

// What only begins like a crash is logged as any other text: before the next line of the log, and at the end.
func TestATextThatOnlyBeginsLikeACrashIsLogged(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.print(2, "panic: a line\nsecond\n")
	if g.log.Len() > 0 {
		t.Errorf("the text was not kept: %s", g.log.String())
	}
	g.print(1, "out\n")
	g.print(2, "third\nruntime: fourth\nfifth")
	if f, ok := g.call.Crash(); ok {
		t.Errorf("a crash: %+v", f)
	}
	g.call.End()
	var texts []string
	for _, line := range logged(g) {
		_, text, _ := strings.Cut(line, `"msg":"`)
		text, _, _ = strings.Cut(text, `"`)
		texts = append(texts, text)
	}
	if got := strings.Join(texts, "|"); got != "panic: a line|second|out|third|runtime: fourth|fifth" {
		t.Errorf("the log has %s", got)
	}
}

// A guest that writes without end keeps little memory busy, and what it writes is counted.
func TestALongCrashIsCut(t *testing.T) {
	g := newGuest(t, hostabi.Limits{LogLines: 10})
	g.print(2, "fatal error: all is lost\n\ngoroutine 1 [running]:\nmain.f()\n\t/f.go:1\n")
	for range 100 {
		g.print(2, strings.Repeat("x", 999)+"\n")
	}
	f, ok := g.call.Crash()
	if !ok || f.Message != "all is lost" || len(f.Frames) != 1 {
		t.Errorf("the crash is %+v, %v", f, ok)
	}
	g = newGuest(t, hostabi.Limits{LogLines: 10})
	g.print(2, "panic: x\n"+strings.Repeat("y\n", 50_000))
	g.call.End()
	if lines := logged(g); len(lines) != 11 || !strings.Contains(lines[10], "49991 lines dropped") {
		t.Errorf("the log has %d lines, the last %s", len(lines), lines[len(lines)-1])
	}
}
