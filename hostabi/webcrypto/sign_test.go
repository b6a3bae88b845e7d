package webcrypto_test

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"math"
	"math/big"
	"slices"
	"testing"
)

// Go verifies what is signed without a salt, and only such a signature is valid without one.
func TestRSAPSSWithoutASalt(t *testing.T) {
	for _, bits := range []int{2048, 2056} { // the second has a first byte of one bit
		of := object{"name": "RSA-PSS", "hash": "SHA-256", "modulusLength": bits, "publicExponent": b64([]byte{1, 0, 1})}
		made := must(t, "crypto.generateKey", object{"algorithm": of, "usages": []string{"sign", "verify"}})
		private, public := made["privateKey"].(object), made["publicKey"].(object)
		der, err := base64.StdEncoding.DecodeString(public["data"].(object)["base64"].(string))
		if err != nil {
			t.Fatal(err)
		}
		key, err := x509.ParsePKIXPublicKey(der)
		if err != nil {
			t.Fatal(err)
		}
		without := object{"name": "RSA-PSS", "saltLength": 0}
		sig := must(t, "crypto.sign", object{"algorithm": without, "key": private, "data": "text"})
		again := must(t, "crypto.sign", object{"algorithm": without, "key": private, "data": "text"})
		if hexOf(sig) != hexOf(again) {
			t.Errorf("%d bits: two signatures differ", bits)
		}
		digest := sha256.Sum256([]byte("text"))
		if err := rsa.VerifyPSS(key.(*rsa.PublicKey), crypto.SHA256, digest[:], unhex(hexOf(sig)), nil); err != nil {
			t.Errorf("%d bits: %v", bits, err)
		}
		salted := must(t, "crypto.sign", object{"algorithm": object{"name": "RSA-PSS", "saltLength": 1}, "key": private, "data": "text"})
		for _, row := range []struct {
			signature any
			data      string
			salt      int
			valid     bool
		}{
			{sig, "text", 0, true}, {sig, "other", 0, false}, {sig, "text", 1, false}, {salted, "text", 0, false}, {salted, "text", 1, true},
			{"", "text", 0, false}, {b64(unhex(hexOf(sig))[1:]), "text", 0, false}, {b64(append([]byte{0}, unhex(hexOf(sig))...)), "text", 0, false},
			{b64(slices.Repeat([]byte{0xff}, (bits+7)/8)), "text", 0, false},
		} {
			args := object{"algorithm": object{"name": "RSA-PSS", "saltLength": row.salt}, "key": public, "data": row.data, "signature": row.signature}
			if got := must(t, "crypto.verify", args); got["valid"] != row.valid {
				t.Errorf("%d bits: %+v: %v", bits, row, got)
			}
		}
	}
}

func TestASaltFitsIntoTheKey(t *testing.T) {
	of := object{"name": "RSA-PSS", "hash": "SHA-512", "modulusLength": 2048, "publicExponent": b64([]byte{1, 0, 1})}
	made := must(t, "crypto.generateKey", object{"algorithm": of, "usages": []string{"sign", "verify"}})
	for _, salt := range []int{191, 1000, math.MaxInt} {
		pss := object{"name": "RSA-PSS", "saltLength": salt}
		if _, name := call(t, "crypto.sign", object{"algorithm": pss, "key": made["privateKey"], "data": "text"}); name != "OperationError" {
			t.Errorf("sign with a salt of %d bytes, which is longer than the key: %q", salt, name)
		}
		if got := must(t, "crypto.verify", object{"algorithm": pss, "key": made["publicKey"], "data": "text", "signature": b64(make([]byte, 256))}); got["valid"] != false {
			t.Errorf("verify with a salt of %d bytes: %v", salt, got)
		}
	}
}

// With a point of small order, one signature is valid for many texts (Web Cryptography Level 2, Ed25519).
func TestPointsOfSmallOrderVerifyNothing(t *testing.T) {
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	encoded := func(y *big.Int, sign byte) []byte {
		b := y.FillBytes(make([]byte, 32))
		slices.Reverse(b)
		b[31] |= sign
		return b
	}
	y8, _ := new(big.Int).SetString("7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7", 16)
	// Twice a point of order 8 has y = 0, so x² = -y²: in the equation of the curve, 2y² = 1 - dy⁴.
	d := new(big.Int).Mul(big.NewInt(-121665), new(big.Int).ModInverse(big.NewInt(121666), p))
	y2 := new(big.Int).Exp(y8, big.NewInt(2), p)
	left := new(big.Int).Mod(new(big.Int).Lsh(y2, 1), p)
	right := new(big.Int).Sub(big.NewInt(1), new(big.Int).Mul(d, new(big.Int).Mul(y2, y2)))
	if left.Cmp(right.Mod(right, p)) != 0 {
		t.Fatal("it is not a point of order 8")
	}
	one := big.NewInt(1)
	var points [][]byte
	for _, y := range []*big.Int{big.NewInt(0), one, new(big.Int).Sub(p, one), p, new(big.Int).Add(p, one), y8, new(big.Int).Sub(p, y8)} {
		points = append(points, encoded(y, 0), encoded(y, 0x80))
	}
	of := object{"name": "Ed25519"}
	valid := must(t, "crypto.importKey", object{"format": "jwk", "jwk": object{"kty": "OKP", "crv": "Ed25519", "x": edJWK["x"]}, "algorithm": of, "usages": []string{"verify"}})
	for _, point := range points {
		args := object{"format": "raw", "data": b64(point), "algorithm": of, "usages": []string{"verify"}}
		keys := []object{valid}
		if k, name := call(t, "crypto.importKey", args); name == "" {
			keys = append(keys, k)
		}
		for _, k := range keys {
			for _, r := range points {
				sig := append(slices.Clone(r), make([]byte, 32)...)
				for _, text := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
					got := must(t, "crypto.verify", object{"algorithm": of, "key": k, "data": text, "signature": b64(sig)})
					if got["valid"] != false {
						t.Fatalf("the key %x, R %x: %s is valid", point, r, text)
					}
				}
			}
		}
	}
}

func TestKeysOfHMACHaveAnyNumberOfBits(t *testing.T) {
	of := func(bits int) object { return object{"name": "HMAC", "hash": "SHA-256", "length": bits} }
	k := must(t, "crypto.importKey", object{"format": "raw", "data": b64([]byte{0xff, 0xff}), "algorithm": of(11), "usages": []string{"sign"}})
	if raw := must(t, "crypto.exportKey", object{"format": "raw", "key": k}); hexOf(raw) != "ffe0" || k["algorithm"].(object)["length"] != 11.0 {
		t.Errorf("11 bits: %v is %v", k, raw)
	}
	for bits, want := range map[int]string{8: "DataError", 9: "", 16: "", 17: "DataError", 0: "DataError"} {
		if _, name := call(t, "crypto.importKey", object{"format": "raw", "data": b64([]byte{0xff, 0xff}), "algorithm": of(bits), "usages": []string{"sign"}}); name != want {
			t.Errorf("two bytes as %d bits: %q, want %q", bits, name, want)
		}
	}
	made := must(t, "crypto.generateKey", object{"algorithm": of(1), "usages": []string{"sign"}})["key"].(object)
	if raw := hexOf(must(t, "crypto.exportKey", object{"format": "raw", "key": made})); raw != "00" && raw != "80" {
		t.Errorf("a key of one bit: %s", raw)
	}
	if _, name := call(t, "crypto.generateKey", object{"algorithm": of(0), "usages": []string{"sign"}}); name != "OperationError" {
		t.Errorf("no bits: %q", name)
	}
}

func TestJWKsNameTheAlgorithm(t *testing.T) {
	for _, row := range []struct {
		algorithm object
		usage     string
		alg       any
	}{
		{object{"name": "AES-CBC", "length": 192}, "encrypt", "A192CBC"},
		{object{"name": "AES-CTR", "length": 128}, "encrypt", "A128CTR"},
		{object{"name": "AES-KW", "length": 256}, "wrapKey", "A256KW"},
		{object{"name": "Ed25519"}, "sign", "Ed25519"},
		{object{"name": "X25519"}, "deriveBits", nil},
		{object{"name": "ECDH", "namedCurve": "P-256"}, "deriveBits", nil},
		{object{"name": "RSA-OAEP", "hash": "SHA-1", "modulusLength": 2048, "publicExponent": b64([]byte{1, 0, 1})}, "decrypt", "RSA-OAEP"},
		{object{"name": "RSA-OAEP", "hash": "SHA-512", "modulusLength": 2048, "publicExponent": b64([]byte{1, 0, 1})}, "decrypt", "RSA-OAEP-512"},
	} {
		made := must(t, "crypto.generateKey", object{"algorithm": row.algorithm, "usages": []string{row.usage}})
		k, ok := made["key"]
		if !ok {
			k = made["privateKey"]
		}
		jwk := must(t, "crypto.exportKey", object{"format": "jwk", "key": k})["jwk"].(object)
		if jwk["alg"] != row.alg {
			t.Errorf("%v: alg is %v, want %v", row.algorithm, jwk["alg"], row.alg)
		}
		args := object{"format": "jwk", "jwk": jwk, "algorithm": row.algorithm, "usages": []string{row.usage}}
		must(t, "crypto.importKey", args)
		jwk["alg"] = "other"
		want := "DataError"
		if row.alg == nil { // the standard compares none
			want = ""
		}
		if _, name := call(t, "crypto.importKey", args); name != want {
			t.Errorf("%v with another alg: %q, want %q", row.algorithm, name, want)
		}
		if jwk["alg"] = row.alg; row.alg == nil {
			delete(jwk, "alg")
		}
		jwk["use"] = map[bool]string{true: "enc", false: "sig"}[row.usage == "sign"]
		delete(jwk, "key_ops")
		if _, name := call(t, "crypto.importKey", args); name != "DataError" {
			t.Errorf("%v with another use: %q", row.algorithm, name)
		}
	}
}
