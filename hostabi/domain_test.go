package hostabi_test

import (
	"strings"
	"testing"

	"runner.example/hostabi"
)

func TestADomainIsConvertedOrRefused(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	if result, n := g.op("domainToASCII", `{"domain":"bücher.example"}`); n < 0 || result["ascii"] != "xn--bcher-kva.example" {
		t.Errorf("answers %d %v", n, result)
	}
	for args, want := range map[string]string{
		`{"domain":"xn--a"}`: `domainToASCII: "xn--a" is not a valid domain`,
		`{}`:                 `domainToASCII: member "domain" is missing`,
		`{"domain":"` + strings.Repeat("ü", 600) + `"}`: `domainToASCII: the domain has 1200 bytes; the limit is 1024`,
	} {
		if result, n := g.op("domainToASCII", args); n >= 0 || result["message"] != want {
			t.Errorf("%.40s: %d %v, want %s", args, n, result, want)
		}
	}
}
