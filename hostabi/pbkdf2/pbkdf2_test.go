package pbkdf2_test

import (
	"bytes"
	stdpbkdf2 "crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"hash"
	"testing"

	"runner.example/hostabi/pbkdf2"
	"runner.example/internal/cost"
)

func TestKeysAreThoseOfTheStandard(t *testing.T) {
	for _, row := range []struct { // RFC 6070
		password, salt string
		iterations     int
		key            string
	}{
		{"password", "salt", 1, "0c60c80f961f0e71f3a9b524af6012062fe037a6"},
		{"password", "salt", 4096, "4b007901b765489abead49d926f721d065a429c1"},
		{"passwordPASSWORDpassword", "saltSALTsaltSALTsaltSALTsaltSALTsalt", 4096, "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038"},
		{"pass\x00word", "sa\x00lt", 4096, "56fa6aa75548099dcc37d7f03425e0c3"},
	} {
		got, err := pbkdf2.Key(sha1.New, []byte(row.password), []byte(row.salt), row.iterations, len(row.key)/2, nil)
		if err != nil || hex.EncodeToString(got) != row.key {
			t.Errorf("%q: %x, %v, want %s", row.password, got, err, row.key)
		}
	}
}

func TestKeysAreThoseOfTheStandardLibrary(t *testing.T) {
	for _, h := range []func() hash.Hash{sha1.New, sha256.New, sha512.New384, sha512.New} {
		for _, length := range []int{0, 1, 20, 32, 33, 200} {
			password, salt := bytes.Repeat([]byte("p"), length*3), bytes.Repeat([]byte("s"), length)
			want, err := stdpbkdf2.Key(h, string(password), salt, 7, max(1, length))
			if err != nil {
				t.Fatal(err)
			}
			got, err := pbkdf2.Key(h, password, salt, 7, length, nil)
			if err != nil || !bytes.Equal(got, want[:length]) {
				t.Errorf("%d bytes: %x, %v, want %x", length, got, err, want)
			}
		}
	}
}

func TestTheMeterEndsALongDerivation(t *testing.T) {
	over := errors.New("over")
	for _, row := range []struct{ salt, iterations, length int }{
		{1, 1 << 40, 32},      // many iterations
		{1, 1, 64 << 20},      // many blocks
		{1 << 20, 1, 8 << 10}, // a long salt in each block
	} {
		var m cost.Meter
		checks := 0
		m.Reset(func() error {
			if checks++; checks == 3 {
				return over
			}
			return nil
		})
		if _, err := pbkdf2.Key(sha256.New, []byte("p"), make([]byte, row.salt), row.iterations, row.length, &m); err != over {
			t.Errorf("%+v: the derivation ended with %v", row, err)
		}
	}
}
