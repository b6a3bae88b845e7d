package idn_test

import (
	"strings"
	"testing"

	"runner.example/internal/fault"
	"runner.example/internal/idn"
)

func TestDomainsAreConvertedAsTheURLStandardDoes(t *testing.T) {
	for domain, want := range map[string]string{
		"bücher.example":                  "xn--bcher-kva.example",
		"faß.Example":                     "xn--fa-hia.example", // nontransitional
		"Ｇｏ。com":                          "go.com",
		"a\u00adb":                        "ab",
		"xn--n3h":                         "xn--n3h",
		"-x.ü":                            "-x.xn--tda",
		"ab--c.a_b.ü.":                    "ab--c.a_b.xn--tda.",
		"≠":                               "xn--1ch",
		strings.Repeat("a", idn.MaxBytes): strings.Repeat("a", idn.MaxBytes),
	} {
		if got, err := idn.ToASCII(domain); got != want || err != nil {
			t.Errorf("%q is %q (%v), want %q", domain, got, err, want)
		}
	}
	for domain, want := range map[string]fault.Code{
		"":                                  fault.Invalid,
		"\u00ad":                            fault.Invalid,
		"xn--a":                             fault.Invalid, // nothing but ASCII
		"xn--pokxncvks":                     fault.Invalid,
		"\u200d.example":                    fault.Invalid, // a joiner that joins nothing
		"\u064aa":                           fault.Invalid, // in two directions
		"\ufffd.com":                        fault.Invalid,
		strings.Repeat("ü", 600):            fault.TooLarge,
		strings.Repeat("a", idn.MaxBytes+1): fault.TooLarge,
	} {
		if got, err := idn.ToASCII(domain); fault.Of(err).Code != want {
			t.Errorf("%.20q is %q (%v), want %v", domain, got, err, want)
		}
	}
}
