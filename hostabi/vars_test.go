package hostabi_test

import (
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
)

func TestOnlyDeclaredVariablesCanBeRead(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	if got, n := g.op("var", `{"name":"ORIGIN"}`); n < 0 || got["value"] != "https://mail.example.com" {
		t.Errorf("%d %v", n, got)
	}
	for _, name := range []string{"origin", "", "SIGNING_KEY", "PATH"} {
		if got, n := g.op("var", `{"name":"`+name+`"}`); abi.Errno(n) != abi.Denied {
			t.Errorf("%q: %d %v", name, n, got)
		}
	}
}
