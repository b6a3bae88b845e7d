package webcrypto_test

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

func url64(text string) string { return base64.RawURLEncoding.EncodeToString(unhex(text)) }

// agreements are pairs of keys with their shared secret: RFC 7748, 6.1, and RFC 5903, 8.1.
var agreements = []struct {
	algorithm, private, public object
	shared                     string
}{
	{object{"name": "X25519"},
		object{"kty": "OKP", "crv": "X25519", "d": url64("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"), "x": url64("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")},
		object{"kty": "OKP", "crv": "X25519", "x": url64("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")},
		"4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"},
	{object{"name": "ECDH", "namedCurve": "P-256"},
		object{"kty": "EC", "crv": "P-256", "d": url64("c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433"),
			"x": url64("dad0b65394221cf9b051e1feca5787d098dfe637fc90b9ef945d0c3772581180"), "y": url64("5271a0461cdb8252d61f1c456fa3e59ab1f45b33accf5f58389e0577b8990bb3")},
		object{"kty": "EC", "crv": "P-256", "x": url64("d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf63"), "y": url64("56fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab")},
		"d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de"},
}

func imported(t testing.TB, format string, data any, algorithm object, usages ...string) object {
	t.Helper()
	args := object{"format": format, "algorithm": algorithm, "usages": usages, "data": data, "extractable": true}
	if format == "jwk" {
		delete(args, "data")
		args["jwk"] = data
	}
	return must(t, "crypto.importKey", args)
}

func TestSharedSecretsAreThoseOfTheStandards(t *testing.T) {
	for _, row := range agreements {
		private := imported(t, "jwk", row.private, row.algorithm, "deriveBits")
		public := imported(t, "jwk", row.public, row.algorithm)
		algorithm := object{"name": row.algorithm["name"], "public": public}
		for length, want := range map[any]string{nil: row.shared, 256: row.shared, 128: row.shared[:32], 0: "", 12: row.shared[:3] + "0"} {
			if got := hexOf(must(t, "crypto.deriveBits", object{"algorithm": algorithm, "key": private, "length": length})); got != want {
				t.Errorf("%v, %v bits: %s, want %s", row.algorithm, length, got, want)
			}
		}
		for name, args := range map[string]object{
			"OperationError":     {"algorithm": algorithm, "key": private, "length": 264},
			"TypeError":          {"algorithm": object{"name": row.algorithm["name"]}, "key": private},
			"InvalidAccessError": {"algorithm": object{"name": row.algorithm["name"], "public": private}, "key": private},
		} {
			if got, is := call(t, "crypto.deriveBits", args); is != name {
				t.Errorf("%v: %v %q, want %s", args, got, is, name)
			}
		}
		if _, name := call(t, "crypto.deriveBits", object{"algorithm": algorithm, "key": public}); name != "InvalidAccessError" {
			t.Errorf("%v: with a public key the error is %q", row.algorithm, name)
		}
	}
	other := must(t, "crypto.generateKey", object{"algorithm": object{"name": "ECDH", "namedCurve": "P-384"}, "usages": []string{"deriveBits"}})
	private := imported(t, "jwk", agreements[1].private, agreements[1].algorithm, "deriveBits")
	args := object{"algorithm": object{"name": "ECDH", "public": other["publicKey"]}, "key": private}
	if _, name := call(t, "crypto.deriveBits", args); name != "InvalidAccessError" {
		t.Errorf("with a key of another curve the error is %q", name)
	}
}

// The public keys of small order give zero with every private key (RFC 7748, 6.1).
func TestASharedSecretIsNotZero(t *testing.T) {
	private := imported(t, "jwk", agreements[0].private, agreements[0].algorithm, "deriveBits")
	for _, point := range []string{strings.Repeat("00", 32), "01" + strings.Repeat("00", 31), "ec" + strings.Repeat("ff", 30) + "7f"} {
		public := imported(t, "raw", b64(unhex(point)), object{"name": "X25519"})
		args := object{"algorithm": object{"name": "X25519", "public": public}, "key": private}
		if got, name := call(t, "crypto.deriveBits", args); name != "OperationError" {
			t.Errorf("%s: %v %q", point, got, name)
		}
	}
}

func TestCompressedPointsAreRead(t *testing.T) {
	of := agreements[1].algorithm
	want := imported(t, "jwk", agreements[1].public, of)
	point := "03d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf63"
	spki := "3039301306072a8648ce3d020106082a8648ce3d030107032200" + point
	for format, text := range map[string]string{"raw": point, "spki": spki} {
		if got := imported(t, format, b64(unhex(text)), of); got["data"].(object)["base64"] != want["data"].(object)["base64"] {
			t.Errorf("%s: %v, want %v", format, got, want)
		}
		forged := strings.Replace(text, "d12d", "d124", 1) // has no y
		if _, name := call(t, "crypto.importKey", object{"format": format, "data": b64(unhex(forged)), "algorithm": of}); name != "DataError" {
			t.Errorf("%s: a point that is not on the curve: %q", format, name)
		}
	}
}

func TestHKDFIsThatOfGo(t *testing.T) {
	for _, n := range []int{0, 1, 31, 32, 33, 64, 255 * 32} {
		key, salt, info := make([]byte, n%50), make([]byte, n%7), make([]byte, 3*n)
		rand.Read(key)
		rand.Read(info)
		want, err := hkdf.Key(sha256.New, key, salt, string(info), n)
		if err != nil {
			t.Fatal(err)
		}
		k := secret(t, object{"name": "HKDF"}, hex.EncodeToString(key), "deriveBits")
		algorithm := object{"name": "HKDF", "hash": "SHA-256", "salt": b64(salt), "info": b64(info)}
		if got := hexOf(must(t, "crypto.deriveBits", object{"algorithm": algorithm, "key": k, "length": 8 * n})); got != hex.EncodeToString(want) {
			t.Errorf("%d bytes: %s, want %x", n, got, want)
		}
	}
}

// A JWK of X25519 must be one pair.
func TestAKeyOfX25519BelongsToItsPublicKey(t *testing.T) {
	other, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	jwk := object{"kty": "OKP", "crv": "X25519", "d": agreements[0].private["d"], "x": base64.RawURLEncoding.EncodeToString(other.PublicKey().Bytes())}
	if _, name := call(t, "crypto.importKey", object{"format": "jwk", "jwk": jwk, "algorithm": object{"name": "X25519"}, "usages": []string{"deriveBits"}}); name != "DataError" {
		t.Errorf("the error is %q", name)
	}
}
