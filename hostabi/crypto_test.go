package hostabi_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"runner.example/hostabi"
)

func TestDigestsAreThoseOfTheStandard(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for _, row := range []struct{ algorithm, data, hex string }{ // FIPS 180-4, examples
		{"SHA-256", `"abc"`, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"SHA-256", `""`, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"SHA-256", `{"base64":"YWJj"}`, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"SHA-256", `"\u0061\u0062c"`, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"SHA-1", `"abc"`, "a9993e364706816aba3e25717850c26c9cd0d89d"},
		{"SHA-384", `"abc"`, "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"},
		{"SHA-512", `"abc"`, "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"},
	} {
		result, n := g.op("digest", fmt.Sprintf(`{"algorithm":%q,"data":%s}`, row.algorithm, row.data))
		if n < 0 || result["hex"] != row.hex || !sameSum(result) {
			t.Errorf("%s of %s: %d %v, want %s", row.algorithm, row.data, n, result, row.hex)
		}
	}
}

// sameSum reports whether both forms of a digest say the same.
func sameSum(result map[string]any) bool {
	text, _ := result["hex"].(string)
	sum, err := hex.DecodeString(text)
	return err == nil && result["base64"] == base64.StdEncoding.EncodeToString(sum)
}

func TestHMACsAreThoseOfTheStandard(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for _, row := range []struct{ args, hex string }{
		// RFC 4231, test cases 2 and 1.
		{`{"algorithm":"SHA-256","key":"Jefe","data":"what do ya want for nothing?"}`,
			"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{`{"algorithm":"SHA-384","key":"Jefe","data":"what do ya want for nothing?"}`,
			"af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649"},
		{`{"algorithm":"SHA-512","key":{"base64":"CwsLCwsLCwsLCwsLCwsLCwsLCws="},"data":"Hi There"}`,
			"87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854"},
	} {
		result, n := g.op("hmac", row.args)
		if n < 0 || result["hex"] != row.hex || !sameSum(result) {
			t.Errorf("%s: %d %v, want %s", row.args, n, result, row.hex)
		}
	}
}

func TestADeclaredSecretSignsWithoutBeingRead(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	byName, n := g.op("hmac", `{"algorithm":"SHA-256","secret":"SIGNING_KEY","data":"x"}`)
	byKey, _ := g.op("hmac", `{"algorithm":"SHA-256","key":"s3cr3t","data":"x"}`)
	if n < 0 || byName["hex"] == nil || byName["hex"] != byKey["hex"] {
		t.Errorf("by name %v, by key %v", byName, byKey)
	}
	for _, name := range []string{"OTHER", "", "signing_key"} {
		result, n := g.op("hmac", fmt.Sprintf(`{"algorithm":"SHA-256","secret":%q,"data":"x"}`, name))
		if n != denied {
			t.Errorf("with the secret %q: %d %v", name, n, result)
		}
	}
}

func TestTimingSafeEqualComparesBytes(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for args, want := range map[string]bool{
		`{"a":"abc","b":"abc"}`:                               true,
		`{"a":"abc","b":{"base64":"YWJj"}}`:                   true,
		`{"a":"","b":""}`:                                     true,
		`{"a":"abc","b":"abd"}`:                               false,
		`{"a":"abc","b":"abcd"}`:                              false,
		`{"a":"abcdefgh0123456789","b":"abcdefgh0123456788"}`: false,
		`{"a":"é","b":"e\u0301"}`:                             false,
		`{"a":"é","b":{"base64":"w6k="}}`:                     true,
		`{"a":{"base64":"AA=="},"b":"\u0000"}`:                true,
	} {
		if result, n := g.op("timingSafeEqual", args); n < 0 || result["equal"] != want {
			t.Errorf("%s: %d %v, want %v", args, n, result, want)
		}
	}
}

func TestUnknownAlgorithmsAreRefused(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	const data = ` must be a string or {"base64":"…"}`
	for _, row := range []struct{ op, args, message string }{
		{"digest", `{"data":"x"}`, `member "algorithm" is missing`},
		{"digest", `{"algorithm":"MD5","data":"x"}`, `member "algorithm" must be SHA-1, SHA-256, SHA-384 or SHA-512`},
		{"digest", `{"algorithm":"sha-256","data":"x"}`, `member "algorithm" must be SHA-1, SHA-256, SHA-384 or SHA-512`},
		{"digest", `{"algorithm":"SHA-256"}`, `member "data" is missing`},
		{"digest", `{"algorithm":"SHA-256","data":7}`, `member "data"` + data},
		{"digest", `{"algorithm":"SHA-256","data":{"base64":"YWJj","more":1}}`, `member "data"` + data},
		{"digest", `{"algorithm":"SHA-256","data":{"base64":"YWI"}}`, `member "data"` + data},
		{"digest", `{"algorithm":"SHA-256","data":{"base64":"YW\r\nJj"}}`, `member "data"` + data},
		{"digest", `{"algorithm":"SHA-256","data":{"base64":"YWJj\n"}}`, `member "data"` + data},
		{"digest", `{"algorithm":"SHA-256","data":{"base64":"YW-_"}}`, `member "data"` + data},
		{"digest", `{"algorithm":"SHA-256","data":{}}`, `member "data"` + data},
		{"digest", `{"algorithm":"SHA-256","data":["a"]}`, `member "data"` + data},
		{"hmac", `{"algorithm":"SHA-256","data":"x"}`, `one of "secret" and "key" is required, and not both`},
		{"hmac", `{"algorithm":"SHA-256","data":"x","key":"k","secret":"SIGNING_KEY"}`, `one of "secret" and "key" is required, and not both`},
		{"hmac", `{"algorithm":"SHA-256","data":"x","key":""}`, `member "key" must not be empty`},
		{"var", `{}`, `member "name" is missing`},
		{"var", `{"name":"ORIGIN","more":1}`, `unknown member "more"`},
		{"timingSafeEqual", `{"a":"x"}`, `member "b" is missing`},
		{"timingSafeEqual", `{"a":"x","b":"y","c":"z"}`, `unknown member "c"`},
	} {
		result, n := g.op(row.op, row.args)
		if message := fmt.Sprint(result["message"]); n != invalid || !strings.HasPrefix(message, row.op+": "+row.message) {
			t.Errorf("%s %s: %d %v, want invalid with %q", row.op, row.args, n, result, row.message)
		}
	}
}

func TestArgumentsWithDataOrRowsMayBeLarge(t *testing.T) {
	args := func(n int) string {
		return `{"algorithm":"SHA-256","data":"` + strings.Repeat("x", n) + `"}`
	}
	g := newGuest(t, hostabi.Limits{})
	g.module.Memory().Grow(64)
	if result, n := g.op("digest", args(1<<20)); n < 0 {
		t.Errorf("1 MiB of data: %d %v", n, result)
	}
	if result, n := g.op("digest", args(2<<20)); n != tooLarge {
		t.Errorf("2 MiB of data: %d %v", n, result)
	}
	if result, n := g.op("secret", args(1<<20)); n != tooLarge {
		t.Errorf("1 MiB for an operation without data: %d %v", n, result)
	}
	for _, op := range []string{"insert", "update"} {
		g := newGuest(t, hostabi.Limits{MovedBytes: 32 << 20})
		g.module.Memory().Grow(256)
		if result, n := g.op(op, args(7<<20)); n == tooLarge || n == limit {
			t.Errorf("%s with 7 MiB: %d %v", op, n, result)
		}
		if result, n := g.op(op, args(8<<20)); n != tooLarge {
			t.Errorf("%s with more than 8 MiB: %d %v", op, n, result)
		}
	}
}
