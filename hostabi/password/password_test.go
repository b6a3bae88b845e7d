package password_test

import (
	"context"
	"encoding/base64"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"runner.example/hostabi/password"
	"runner.example/internal/cost"
	"runner.example/internal/fault"
	"runner.example/internal/settings"
	"runner.example/tests/harness"
)

// light are parameters for tests that hash often.
var light = filled(password.Options{Memory: 7 << 20, Passes: 1})

// filled returns options with their defaults.
func filled(opt password.Options) password.Options {
	settings.FillZero(&opt)
	return opt
}

func verify(t *testing.T, opt password.Options, text, hash string) password.Verdict {
	t.Helper()
	h, err := opt.Parse(hash)
	if err != nil {
		t.Fatalf("%s: %v", hash, err)
	}
	verdict, err := h.Verify(text, nil)
	if err != nil {
		t.Fatalf("%s: %v", hash, err)
	}
	return verdict
}

func TestAHashIsArgon2idWithTheParametersOfOWASP(t *testing.T) {
	opt := filled(password.Options{})
	form := regexp.MustCompile(`^\$argon2id\$v=19\$m=19456,t=2,p=1\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$`)
	hash := opt.Hash("päss")
	parts := form.FindStringSubmatch(hash)
	if parts == nil {
		t.Fatalf("the hash is %s", hash)
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	sum := argon2.IDKey([]byte("päss"), salt, 2, 19456, 1, 32)
	if base64.RawStdEncoding.EncodeToString(sum) != parts[2] {
		t.Errorf("%s is not what x/crypto computes", hash)
	}
	if opt.Hash("päss") == hash {
		t.Error("two hashes have the same salt")
	}
	if v := verify(t, opt, "päss", hash); !v.Valid || v.Rehash {
		t.Errorf("its own hash: %+v", v)
	}
	if v := verify(t, opt, "pass", hash); v.Valid || v.Rehash {
		t.Errorf("another password: %+v", v)
	}
}

func TestAHashOfOtherParametersIsToBeMadeAgain(t *testing.T) {
	hash := light.Hash("secret")
	for _, row := range []struct {
		what   string
		opt    password.Options
		rehash bool
	}{
		{"the same", light, false},
		{"more memory", filled(password.Options{Memory: 8 << 20, Passes: 1}), true},
		{"more passes", filled(password.Options{Memory: 7 << 20, Passes: 2}), true},
		{"the defaults", filled(password.Options{}), true},
	} {
		if v := verify(t, row.opt, "secret", hash); !v.Valid || v.Rehash != row.rehash {
			t.Errorf("%s: %+v, want rehash %t", row.what, v, row.rehash)
		}
		if v := verify(t, row.opt, "other", hash); v.Valid || v.Rehash {
			t.Errorf("%s, another password: %+v", row.what, v)
		}
	}
}

// foreign are hashes of "correct horse é" that the named software has made, or that
// Python's hashlib has made in its form.
var foreign = []struct{ by, hash string }{
	{"Django 3.2", "pbkdf2_sha256$1000$saltsaltsalt$HpSbrkBrDWDAB9HrNXHZggikF+GO3Q6ksWrO0IeZG4M="},
	{"Django 3.2", "pbkdf2_sha1$1000$saltsaltsalt$VvJjxrH5uKMZWm9BnZKYeKWH6CQ="},
	{"Django 3.2", "argon2$argon2id$v=19$m=1024,t=2,p=2$c2FsdHNhbHRzYWx0$ZOyS0ZeQeLRyOXHy1JW7Vg"},
	{"Django 3.2", "bcrypt_sha256$$2b$05$T7y15o1X2tRDjglPwsOQvuiZr36Xkd4x4Oz7PkU3E3olLxeGK0/4W"},
	{"Django 3.2", "bcrypt$$2b$05$.ANkym4Liz9AqNWgSXkXq.gOK34xaxeeKWKgxVopnaX8No/FdOqvy"},
	{"the form of Django 4", "scrypt$1024$Ab1saltSALTsaltx$8$1$0TphoLITD+BHaX/BVoOcMBp9f48FkkP+LDnZlNxoFj69b307ApqjLfoLln815AmTVPNNucBdfHlAwL6U7I31bg=="},
	{"passlib 1.7.4", "$pbkdf2-sha256$1000$934vhXAOYUyJUcqZU8p5zw$cix48knHs4Uz5SM7xZKXOLXkRRAUKlkzhOAb/x9X2R0"},
	{"passlib 1.7.4", "$pbkdf2-sha512$1000$iZGytpYSojTG.P//nxPifA$P.XqCcPaH2s9hw/vPvlDQHO0eIZ8AU5WIPXkAfPmih6gL0RyoJ72U5lwOH2RfE7tIRQHIrCl0ZAueYiZBiv9ww"},
	{"passlib 1.7.4", "$pbkdf2$1000$QKiVEuKcEwLgPIcQopTS2g$c3qNJltmPxnWHQGsC0RJcSd49x4"},
	{"passlib 1.7.4", "$scrypt$ln=10,r=8,p=1$Sel9j1HqfY9xbi1FSGltjQ$xw65nCa6CdWbAyi2asFzwtC4ihMkALV05BADQi2Bc/A"},
	{"passlib 1.7.4", "$argon2id$v=19$m=1024,t=2,p=1$Wmvt3VsrRcj5fy9lzBnDeA$E9xTx1hvsol3BMC5POkbsw"},
	{"passlib 1.7.4", "$argon2i$v=19$m=1024,t=2,p=4$cM45J0ToHePcmxMiJKSU8g$COdB1cZguIk0o8D4AZRRpw"},
	{"passlib 1.7.4", "$2b$05$joct7.wqd4OEhsqpgQtXk.mkyPCjvLPlVv5bp8U0Xj56u.bLN6f.G"},
	{"passlib 1.7.4", "$2y$05$4QqJot3/.yIwgHPRMwNe..isJ9sr58523cWMYFQoqBKjs.xPIQ00e"},
	{"passlib 1.7.4", "$2a$05$tw2RxsJHNJ5dZROUMq24i.sdrRHu4a4SBg7hJG2fDyGwhMYSLS0Va"},
	{"Werkzeug 2.2", "pbkdf2:sha256:1000$roGDnVdh0kh0Pd9K$12513bab912a6167f80c2a12efde2e01deb014b250c16c51fc14ce741358e6e7"},
	{"Werkzeug 2.2", "pbkdf2:sha512:1000$z3tRI2VASDBQgwc6$cb44f3e0e2823d60f55536821a06ff3f8a6617adb7521c51a1453ba764cd4b0934906b76fc746c5d32ba67b5715ca2edad1d65aabc9b5ac761745242cd1b4ca0"},
	{"the form of Werkzeug 3", "scrypt:1024:8:1$Ab1saltSALTsaltx$d13a61a0b2130fe047697fc156839c301a7d7f8f059243fe2c39d994dc68163ebd6f7d3b029aa32dfa0b967f35e4099354f34db9c05d7c7940c0be94ec8df56e"},
	{"a PHC string", "$pbkdf2-sha512$i=1000$MDEyMzQ1Njc4OWFiY2RlZg$lMuq/dD69/JAImt7RaDYGM25rtD5Auvr3mm9jR3Ilk4Zw1CzcJn2+q42ann7KVfa1AKnrfJ5FjPq7lcdxlv8ZQ"},
	{"a PHC string with a length", "$pbkdf2-sha512$i=1000,l=64$MDEyMzQ1Njc4OWFiY2RlZg$lMuq/dD69/JAImt7RaDYGM25rtD5Auvr3mm9jR3Ilk4Zw1CzcJn2+q42ann7KVfa1AKnrfJ5FjPq7lcdxlv8ZQ"},
	{"argon2-cffi 21.1", "$argon2id$v=19$m=19456,t=2,p=1$39zs8yZBbqeE3DKB/Luakg$VGY4Kaeg5nry0MoGBxnyQQ"},
}

func TestHashesOfOtherSoftwareAreVerified(t *testing.T) {
	for _, row := range foreign {
		if v := verify(t, filled(password.Options{}), "correct horse é", row.hash); !v.Valid || !v.Rehash {
			t.Errorf("%s: %s: %+v", row.by, row.hash, v)
		}
		for _, other := range []string{"correct horse e", "", "correct horse é "} {
			if v := verify(t, filled(password.Options{}), other, row.hash); v.Valid || v.Rehash {
				t.Errorf("%s: %s verifies %q", row.by, row.hash, other)
			}
		}
	}
}

func TestBcryptReads72BytesOfAPassword(t *testing.T) {
	const hash = "$2b$05$qmvpK41nRdDbTA3FRPkc..6AUEnxrKEDHJ5S8KKDRhJ03wzvgmvgO" // of 80 times x, by Python's bcrypt
	for n, want := range map[int]bool{80: true, 72: true, 1000: true, 71: false} {
		if v := verify(t, filled(password.Options{}), strings.Repeat("x", n), hash); v.Valid != want {
			t.Errorf("%d bytes: %+v", n, v)
		}
	}
}

func TestNoPasswordIsThatOfAnUnknownUser(t *testing.T) {
	for _, text := range []string{"", "x"} {
		v, err := light.Unknown().Verify(text, nil)
		if err != nil || v.Valid || v.Rehash {
			t.Errorf("%q: %+v, %v", text, v, err)
		}
	}
}

// cpuTime is the CPU time of this process, which does not count others that run meanwhile.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	return harness.CPUTime(t, harness.ThisProcess)
}

// The time for an unknown user is that of a wrong password: the least CPU time of some, alternately.
func TestAnUnknownUserTakesAsLongAsAWrongPassword(t *testing.T) {
	if testing.Short() {
		t.Skip("it hashes often")
	}
	opt := filled(password.Options{})
	known, err := opt.Parse(opt.Hash("secret"))
	if err != nil {
		t.Fatal(err)
	}
	quickest := []time.Duration{time.Hour, time.Hour}
	for range 12 {
		for i, h := range []*password.Hashed{known, opt.Unknown()} {
			began := cpuTime(t)
			if v, err := h.Verify("wrong", nil); err != nil || v.Valid {
				t.Fatalf("%+v, %v", v, err)
			}
			quickest[i] = min(quickest[i], cpuTime(t)-began)
		}
	}
	if ratio := float64(quickest[1]) / float64(quickest[0]); ratio < 0.7 || ratio > 1.4 {
		t.Errorf("unknown %s, wrong %s: %.2f times", quickest[1], quickest[0], ratio)
	}
}

func TestMalformedHashesAreRefused(t *testing.T) {
	const salt, sum = "c2FsdHNhbHRzYWx0", "ZOyS0ZeQeLRyOXHy1JW7Vg"
	rows := map[string]string{ // hash: part of the error
		"":                              "not a hash of a known kind",
		"secret":                        "Argon2id, Argon2i, bcrypt, scrypt and PBKDF2 are known",
		"$1$salt$hash":                  "known kind",
		"$argon2id":                     "Argon2: the form is",
		"$argon2id$v=19$m=1024,t=2,p=1": "Argon2: the form is",
		"$argon2d$v=19$m=1024,t=2,p=1$" + salt + "$" + sum:             "argon2d is not for passwords",
		"$argon2x$v=19$m=1024,t=2,p=1$" + salt + "$" + sum:             "argon2id and argon2i are known",
		"$argon2id$v=16$m=1024,t=2,p=1$" + salt + "$" + sum:            "the version must be v=19",
		"$argon2id$m=1024,t=2,p=1$" + salt + "$" + sum + "$":           "the version must be v=19",
		"$argon2id$v=19$m=1024,p=1,t=2$" + salt + "$" + sum:            "the parameters must be m=…,t=…,p=…",
		"$argon2id$v=19$m=1024,t=2$" + salt + "$" + sum:                "the parameters must be m=…,t=…,p=…",
		"$argon2id$v=19$m=1024,t=2,p=1,keyid=x$" + salt + "$" + sum:    "the parameters must be m=…,t=…,p=…",
		"$argon2id$v=19$m=01024,t=2,p=1$" + salt + "$" + sum:           "a parameter is not a whole number",
		"$argon2id$v=19$m=4294967296,t=2,p=1$" + salt + "$" + sum:      "a parameter is not a whole number",
		"$argon2id$v=19$m=+1024,t=2,p=1$" + salt + "$" + sum:           "a parameter is not a whole number",
		"$argon2id$v=19$m=7,t=2,p=1$" + salt + "$" + sum:               "m must be at least 8 times p",
		"$argon2id$v=19$m=1024,t=0,p=1$" + salt + "$" + sum:            "t must be 1 or more",
		"$argon2id$v=19$m=1024,t=1,p=0$" + salt + "$" + sum:            "p must be 1 to 16",
		"$argon2id$v=19$m=1024,t=1,p=257$" + salt + "$" + sum:          "p must be 1 to 16",
		"$argon2id$v=19$m=1024,t=1,p=1$c2FsdA$" + sum:                  "at least 8 bytes",
		"$argon2id$v=19$m=1024,t=1,p=1$" + salt + "$" + sum + "==":     "salt and hash must be base64",
		"$argon2id$v=19$m=1024,t=1,p=1$" + salt + "\n$" + sum:          "salt and hash must be base64",
		"$argon2id$v=19$m=1024,t=1,p=1$" + salt + "$" + sum[:21] + "h": "salt and hash must be base64",
		"$argon2id$v=19$m=1024,t=1,p=1$" + salt + "$ZOyS":              "the hash must have 16 to 128 bytes",
		"$argon2id$v=19$m=1024,t=1,p=1$" + salt + "$":                  "the hash must have 16 to 128 bytes",
		"$2b$05$short": "the form is $2b$12$",
		"$2x$05$joct7.wqd4OEhsqpgQtXk.mkyPCjvLPlVv5bp8U0Xj56u.bLN6f.G":            "$2a$, $2b$ and $2y$ are known",
		"$2b$03$joct7.wqd4OEhsqpgQtXk.mkyPCjvLPlVv5bp8U0Xj56u.bLN6f.G":            "the cost must be 04 to 31",
		"$2b$+5$joct7.wqd4OEhsqpgQtXk.mkyPCjvLPlVv5bp8U0Xj56u.bLN6f.G":            "the cost must be 04 to 31",
		"$2b$05$joct7.wqd4OEhsqpgQtXk+mkyPCjvLPlVv5bp8U0Xj56u.bLN6f.G":            "characters must be of its base64",
		"$scrypt$ln=33,r=8,p=1$" + salt + "$" + sum:                               "ln must be 1 to 32",
		"$scrypt$ln=0,r=8,p=1$" + salt + "$" + sum:                                "N must be a power of two",
		"$scrypt$ln=10,r=0,p=1$" + salt + "$" + sum:                               "r and p must be 1 to 65536",
		"$scrypt$ln=10,r=8,p=65537$" + salt + "$" + sum:                           "r and p must be 1 to 65536",
		"$scrypt$ln=10,r=8,p=1$$" + sum:                                           "the salt must have 1 to 256 bytes",
		"scrypt$1000$salt$8$1$" + sum + "==":                                      "N must be a power of two",
		"scrypt$1024$salt$8$1$" + sum:                                             "salt and hash must be base64",
		"scrypt:1024:8$salt$" + strings.Repeat("ab", 32):                          "there must be N, r and p",
		"scrypt:1024:8:1$salt$xyz":                                                "the hash must be hexadecimal",
		"scrypt$1024":                                                             "the form is",
		"pbkdf2":                                                                  "PBKDF2: the form is",
		"$pbkdf2-md5$1000$" + salt + "$" + sum:                                    "the digest must be sha1",
		"$pbkdf2-sha256$0$" + salt + "$" + sum:                                    "a whole number from 1 on",
		"$pbkdf2-sha256$x$" + salt + "$" + sum:                                    "a whole number from 1 on",
		"pbkdf2_sha256$1000$$" + sum + "==":                                       "the salt must have 1 to 256 bytes",
		"pbkdf2:sha256$salt$" + strings.Repeat("ab", 32):                          "there must be a digest and the iterations",
		"$argon2id$v=19$m=1024,t=1,p=1$" + salt + "$" + strings.Repeat("A", 1024): "longer than 1024 bytes",
	}
	for hash, want := range rows {
		_, err := filled(password.Options{}).Parse(hash)
		if f := fault.Of(err); err == nil || f.Code != fault.Invalid || !strings.Contains(f.Detail, want) || !strings.HasPrefix(f.Detail, `member "hash" is `) {
			t.Errorf("%s: %v, want %q", hash, err, want)
		}
	}
}

func TestAHashThatNeedsTooMuchIsRefusedBeforeItIsComputed(t *testing.T) {
	const salt, sum = "c2FsdHNhbHRzYWx0", "ZOyS0ZeQeLRyOXHy1JW7Vg"
	for hash, want := range map[string]string{
		"$argon2id$v=19$m=4294967295,t=1,p=1$" + salt + "$" + sum:                       "needs 4096gb of memory; the limit is the 128mb of [password] max_memory",
		"$argon2id$v=19$m=131073,t=1,p=1$" + salt + "$" + sum:                           "needs 129mb of memory",
		"$argon2id$v=19$m=131072,t=4294967295,p=1$" + salt + "$" + sum:                  "seconds of a processor; the limit is 4",
		"$2b$17$joct7.wqd4OEhsqpgQtXk.mkyPCjvLPlVv5bp8U0Xj56u.bLN6f.G":                  "would take about 10 seconds",
		"$2b$31$joct7.wqd4OEhsqpgQtXk.mkyPCjvLPlVv5bp8U0Xj56u.bLN6f.G":                  "seconds of a processor",
		"$scrypt$ln=18,r=8,p=1$" + salt + "$" + sum:                                     "needs 256mb of memory",
		"$scrypt$ln=32,r=65536,p=65536$" + salt + "$" + sum:                             "of memory",
		"$scrypt$ln=16,r=8,p=256$" + salt + "$" + sum:                                   "seconds of a processor",
		"$scrypt$ln=1,r=65536,p=64$" + salt + "$" + sum:                                 "of memory",
		"$pbkdf2-sha256$4294967295$" + salt + "$" + sum:                                 "seconds of a processor",
		"$pbkdf2-sha256$i=4000000,l=128$" + salt + "$" + strings.Repeat("A", 171)[:170]: "seconds of a processor",
	} {
		_, err := filled(password.Options{}).Parse(hash)
		if f := fault.Of(err); err == nil || f.Code != fault.TooLarge || !strings.Contains(f.Detail, want) {
			t.Errorf("%s: %v, want %q", hash, err, want)
		}
	}
	// Filling its blocks would take less than four seconds, and deriving them eight.
	_, err := filled(password.Options{MaxMemory: 4 << 30}).Parse("$scrypt$ln=1,r=65536,p=60$" + salt + "$" + sum)
	if err == nil || !strings.Contains(fault.Of(err).Detail, "would take about 11 seconds") {
		t.Errorf("many large blocks: %v", err)
	}
	for _, hash := range []string{
		"$argon2id$v=19$m=131072,t=3,p=4$" + salt + "$" + sum, // RFC 9106's second choice has half as much
		"$argon2id$v=19$m=8,t=1,p=1$" + salt + "$" + sum,      // the least memory
		"$argon2id$v=19$m=128,t=1,p=16$" + salt + "$" + sum,   // and of the most lanes
		"$2b$14$joct7.wqd4OEhsqpgQtXk.mkyPCjvLPlVv5bp8U0Xj56u.bLN6f.G",
		"$scrypt$ln=17,r=8,p=1$" + salt + "$" + sum, // OWASP
		"pbkdf2_sha256$1500000$salt$" + sum + "==",  // Django 6
		"pbkdf2:sha512:1000000$salt$" + strings.Repeat("ab", 64),
	} {
		if _, err := filled(password.Options{}).Parse(hash); err != nil {
			t.Errorf("%s: %v", hash, err)
		}
	}
}

func TestTheEndOfTheRequestEndsAPBKDF2(t *testing.T) {
	h, err := filled(password.Options{}).Parse("pbkdf2_sha256$4000000$salt$ZOyS0ZeQeLRyOXHy1JW7Vg==")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var m cost.Meter
	m.Reset(ctx.Err)
	if _, err := h.Verify("x", &m); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, row := range foreign {
		f.Add(row.hash)
	}
	f.Add("$argon2id$v=19$m=4294967295,t=4294967295,p=16$c2FsdHNhbHRzYWx0$ZOyS0ZeQeLRyOXHy1JW7Vg")
	f.Fuzz(func(t *testing.T, text string) {
		// Little enough that whatever passes can be computed.
		opt := filled(password.Options{Memory: 7 << 20, Passes: 1, MaxMemory: 7 << 20})
		h, err := opt.Parse(text)
		if err != nil {
			if code := fault.CodeOf(err); code != fault.Invalid && code != fault.TooLarge {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		var m cost.Meter
		m.Reset(ctx.Err)
		if strings.Contains(text, "$2") && !strings.Contains(text, "$04$") {
			return // it cannot be interrupted
		}
		if v, err := h.Verify(strings.Repeat("wrong", 3), &m); err != nil && ctx.Err() == nil || v.Valid {
			t.Errorf("%q: %+v, %v", text, v, err)
		}
	})
}

func BenchmarkHash(b *testing.B) {
	b.Run("password", func(b *testing.B) {
		for b.Loop() {
			filled(password.Options{}).Hash("correct horse")
		}
	})
	b.Run("bcrypt", func(b *testing.B) {
		for b.Loop() {
			if _, err := bcrypt.GenerateFromPassword([]byte("correct horse"), 10); err != nil {
				b.Fatal(err)
			}
		}
	})
	salt := make([]byte, 16)
	b.Run("argon2", func(b *testing.B) {
		for b.Loop() {
			argon2.IDKey([]byte("correct horse"), salt, 2, 19456, 1, 32)
		}
	})
}
