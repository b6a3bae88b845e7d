package webcrypto_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"runner.example/hostabi/webcrypto"
	"runner.example/internal/cost"
	"runner.example/internal/fault"
)

// object is JSON.
type object = map[string]any

// call runs an operation, and returns its result or the name of its error.
func call(t testing.TB, op string, args object) (object, string) {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	if op == "crypto.generateKey" {
		var g *webcrypto.Generation
		if g, err = webcrypto.Generate(text, nil); err == nil {
			out, err = g.Make()
		}
	} else {
		out, err = webcrypto.Run(op, text, nil)
	}
	if err != nil {
		f := fault.Of(err)
		name, _, ok := strings.Cut(f.Detail, ": ")
		if f.Code != fault.Invalid || !ok || !strings.HasSuffix(name, "Error") {
			t.Fatalf("%s: the error is %v", op, err)
		}
		return nil, name
	}
	var result object
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatalf("%s gives %s", op, out)
	}
	return result, ""
}

func must(t testing.TB, op string, args object) object {
	t.Helper()
	result, name := call(t, op, args)
	if name != "" {
		t.Fatalf("%s: %s of %v", op, name, args)
	}
	return result
}

func b64(b []byte) object { return object{"base64": base64.StdEncoding.EncodeToString(b)} }

func unhex(text string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

func hexOf(result object) string {
	text, _ := result["base64"].(string)
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err.Error()
	}
	return hex.EncodeToString(b)
}

func secret(t testing.TB, algorithm object, key string, usages ...string) object {
	t.Helper()
	return must(t, "crypto.importKey", object{"format": "raw", "data": b64(unhex(key)), "algorithm": algorithm, "usages": usages})
}

func TestHMACsAreThoseOfTheStandard(t *testing.T) {
	for hash, want := range map[string]string{ // RFC 2202 and RFC 4231, test case 2
		"SHA-1":   "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
		"SHA-256": "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
		"SHA-384": "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
		"SHA-512": "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
	} {
		k := secret(t, object{"name": "HMAC", "hash": hash}, hex.EncodeToString([]byte("Jefe")), "sign", "verify")
		args := object{"algorithm": object{"name": "HMAC"}, "key": k, "data": "what do ya want for nothing?"}
		if got := hexOf(must(t, "crypto.sign", args)); got != want {
			t.Errorf("%s: %s, want %s", hash, got, want)
		}
		for signature, valid := range map[string]bool{
			want: true, "00" + want[2:]: want[:2] == "00", want[2:]: false, "": false, want[:len(want)-2]: false,
			want[:len(want)-2] + "00": false, want[:16] + strings.Repeat("0", len(want)-16): false,
		} {
			args["signature"] = b64(unhex(signature))
			if got := must(t, "crypto.verify", args); got["valid"] != valid {
				t.Errorf("%s of %s: %v", hash, signature, got)
			}
		}
	}
}

func TestAESGCMIsThatOfTheStandard(t *testing.T) {
	for _, row := range []struct{ key, iv, plain, aad, want string }{ // McGrew and Viega, test cases 1, 4, 6, 13, 16
		{"00000000000000000000000000000000", "000000000000000000000000", "", "", "58e2fccefa7e3061367f1d57a4e7455a"},
		{"feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
			"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
			"feedfacedeadbeeffeedfacedeadbeefabaddad2",
			"42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091" + "5bc94fbc3221a5db94fae95ae7121a47"},
		{"0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000", "", "", "530f8afbc74536b9a963b4f1c4cb738b"},
		{"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
			"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
			"feedfacedeadbeeffeedfacedeadbeefabaddad2",
			"522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662" + "76fc6ece0f4e1768cddf8853bb2d551b"},
	} {
		k := secret(t, object{"name": "AES-GCM"}, row.key, "encrypt", "decrypt")
		algorithm := object{"name": "AES-GCM", "iv": b64(unhex(row.iv)), "additionalData": b64(unhex(row.aad))}
		if got := hexOf(must(t, "crypto.encrypt", object{"algorithm": algorithm, "key": k, "data": b64(unhex(row.plain))})); got != row.want {
			t.Errorf("%s: %s, want %s", row.key, got, row.want)
		}
		if got := hexOf(must(t, "crypto.decrypt", object{"algorithm": algorithm, "key": k, "data": b64(unhex(row.want))})); got != row.plain {
			t.Errorf("%s: %s, want %s", row.key, got, row.plain)
		}
		for at := range len(row.want) / 2 {
			forged := unhex(row.want)
			forged[at] ^= 1
			if _, name := call(t, "crypto.decrypt", object{"algorithm": algorithm, "key": k, "data": b64(forged)}); name != "OperationError" {
				t.Errorf("byte %d is changed, and the error is %q", at, name)
			}
		}
	}
}

func TestDerivedBitsAreThoseOfTheStandards(t *testing.T) {
	k := secret(t, object{"name": "HKDF"}, "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "deriveBits")
	algorithm := object{"name": "HKDF", "hash": "SHA-256", "salt": b64(unhex("000102030405060708090a0b0c")), "info": b64(unhex("f0f1f2f3f4f5f6f7f8f9"))}
	const want = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865" // RFC 5869, A.1
	if got := hexOf(must(t, "crypto.deriveBits", object{"algorithm": algorithm, "key": k, "length": 42 * 8})); got != want {
		t.Errorf("HKDF: %s, want %s", got, want)
	}
	k = secret(t, object{"name": "PBKDF2"}, hex.EncodeToString([]byte("passwd")), "deriveBits")
	algorithm = object{"name": "PBKDF2", "hash": "SHA-256", "salt": "salt", "iterations": 1}
	const derived = "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc" // RFC 7914, section 11
	if got := hexOf(must(t, "crypto.deriveBits", object{"algorithm": algorithm, "key": k, "length": 256})); got != derived {
		t.Errorf("PBKDF2: %s, want %s", got, derived)
	}
}

// Keys of RFC 7515, A.3, and RFC 8037, A.1.
var (
	ecJWK = object{"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0", "d": "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}
	edJWK = object{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}
)

// jws verifies a signature over a text with a JWK.
func jws(t *testing.T, algorithm, jwk object, text, signature string) bool {
	t.Helper()
	public := object{}
	for name, value := range jwk {
		if name != "d" {
			public[name] = value
		}
	}
	k := must(t, "crypto.importKey", object{"format": "jwk", "jwk": public, "algorithm": algorithm, "usages": []string{"verify"}})
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		t.Fatal(err)
	}
	return must(t, "crypto.verify", object{"algorithm": algorithm, "key": k, "signature": b64(sig), "data": text})["valid"] == true
}

func TestSignaturesOfJWSAreVerified(t *testing.T) {
	const payload = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
	ec := object{"name": "ECDSA", "namedCurve": "P-256", "hash": "SHA-256"}
	if !jws(t, ec, ecJWK, "eyJhbGciOiJFUzI1NiJ9."+payload, "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q") { // RFC 7515, A.3
		t.Error("ES256 of RFC 7515 is not valid")
	}
	ed := object{"name": "Ed25519"}
	const signed, signature = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc", "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
	if !jws(t, ed, edJWK, signed, signature) { // RFC 8037, A.4
		t.Error("EdDSA of RFC 8037 is not valid")
	}
	if jws(t, ed, edJWK, signed+"x", signature) {
		t.Error("EdDSA of another text is valid")
	}
	k := must(t, "crypto.importKey", object{"format": "jwk", "jwk": edJWK, "algorithm": ed, "usages": []string{"sign"}})
	sig, _ := base64.RawURLEncoding.DecodeString(signature)
	if got := must(t, "crypto.sign", object{"algorithm": ed, "key": k, "data": signed}); hexOf(got) != hex.EncodeToString(sig) {
		t.Errorf("EdDSA signs %v", got)
	}
}

// pairs are the algorithms of pairs of keys, for generateKey, and for sign.
var pairs = []struct{ algorithm, signs object }{
	{object{"name": "ECDSA", "namedCurve": "P-256"}, object{"name": "ECDSA", "hash": "SHA-256"}},
	{object{"name": "ECDSA", "namedCurve": "P-384"}, object{"name": "ECDSA", "hash": "SHA-512"}},
	{object{"name": "ECDSA", "namedCurve": "P-521"}, object{"name": "ECDSA", "hash": "SHA-1"}},
	{object{"name": "Ed25519"}, object{"name": "Ed25519"}},
	{object{"name": "RSASSA-PKCS1-v1_5", "hash": "SHA-256", "modulusLength": 2048, "publicExponent": b64([]byte{1, 0, 1})}, object{"name": "RSASSA-PKCS1-v1_5"}},
	{object{"name": "RSA-PSS", "hash": "SHA-384", "modulusLength": 2048, "publicExponent": b64([]byte{1, 0, 1})}, object{"name": "RSA-PSS", "saltLength": 48}},
}

// A pair signs after it was exported and imported in each format.
func TestAPairIsTheSameInEveryFormat(t *testing.T) {
	for _, row := range pairs {
		made := must(t, "crypto.generateKey", object{"algorithm": row.algorithm, "usages": []string{"verify", "sign"}})
		private, public := made["privateKey"].(object), made["publicKey"].(object)
		if diff := cmp.Diff([]any{[]any{"sign"}, []any{"verify"}}, []any{private["usages"], public["usages"]}); diff != "" {
			t.Errorf("%v: %s", row.algorithm, diff)
		}
		formats := map[string]object{"pkcs8": private, "jwk": private, "spki": public, "jwk ": public, "raw": public}
		if strings.HasPrefix(row.algorithm["name"].(string), "RSA") {
			delete(formats, "raw")
		}
		signature := must(t, "crypto.sign", object{"algorithm": row.signs, "key": private, "data": "text"})
		for format, k := range formats {
			format = strings.TrimSpace(format)
			exported := must(t, "crypto.exportKey", object{"format": format, "key": k})
			args := object{"format": format, "algorithm": row.algorithm, "extractable": true, "usages": k["usages"], "data": exported}
			if format == "jwk" {
				delete(args, "data")
				args["jwk"] = exported["jwk"]
			}
			again := must(t, "crypto.importKey", args)
			if diff := cmp.Diff(k, again); diff != "" {
				t.Errorf("%v as %s: %s", row.algorithm, format, diff)
			}
			use := object{"algorithm": row.signs, "key": again, "data": "text"}
			if again["type"] == "private" {
				sig := must(t, "crypto.sign", use)
				if got := must(t, "crypto.verify", object{"algorithm": row.signs, "key": public, "data": "text", "signature": sig}); got["valid"] != true {
					t.Errorf("%v as %s: its signature is not valid", row.algorithm, format)
				}
				continue
			}
			use["signature"] = signature
			if got := must(t, "crypto.verify", use); got["valid"] != true {
				t.Errorf("%v as %s: the signature is not valid", row.algorithm, format)
			}
			use["data"] = "other"
			if got := must(t, "crypto.verify", use); got["valid"] != false {
				t.Errorf("%v as %s: the signature is one of another text", row.algorithm, format)
			}
		}
	}
}

func TestErrorsHaveTheNamesOfTheStandard(t *testing.T) {
	hmacKey := secret(t, object{"name": "HMAC", "hash": "SHA-256"}, "0b0b0b0b", "sign")
	gcmKey := secret(t, object{"name": "AES-GCM"}, "00000000000000000000000000000000", "encrypt")
	cbcKey := secret(t, object{"name": "AES-CBC"}, "00000000000000000000000000000000", "encrypt")
	ctrKey := secret(t, object{"name": "AES-CTR"}, "00000000000000000000000000000000", "encrypt")
	hkdfKey := secret(t, object{"name": "HKDF"}, "0b", "deriveBits")
	ec, ed := object{"name": "ECDSA", "namedCurve": "P-256"}, object{"name": "Ed25519"}
	rs := object{"name": "RSASSA-PKCS1-v1_5", "hash": "SHA-256"}
	edKey := must(t, "crypto.importKey", object{"format": "jwk", "jwk": edJWK, "algorithm": ed, "usages": []string{"sign"}})
	imported := func(format string, data any, algorithm object, usages ...string) object {
		args := object{"format": format, "algorithm": algorithm, "usages": usages, "data": data}
		if format == "jwk" {
			delete(args, "data")
			args["jwk"] = data
		}
		return args
	}
	with := func(jwk object, name string, value any) object {
		changed := object{name: value}
		for n, v := range jwk {
			if n != name {
				changed[n] = v
			}
		}
		return changed
	}
	oct := object{"kty": "oct", "k": "AAAAAAAAAAAAAAAAAAAAAA"}
	for i, row := range []struct {
		op   string
		args object
		want string
	}{
		{"crypto.importKey", object{}, "TypeError"},
		{"crypto.importKey", object{"more": 1}, "TypeError"},
		{"crypto.importKey", imported("raw", "x", object{}), "TypeError"},
		{"crypto.importKey", imported("raw", 7, ed), "TypeError"},
		{"crypto.importKey", imported("raw", object{"base64": "="}, ed), "TypeError"},
		{"crypto.importKey", imported("raw", nil, ed), "TypeError"},
		{"crypto.importKey", imported("jwk", nil, ed), "TypeError"},
		{"crypto.importKey", imported("raw", "x", object{"name": "ROT13"}, "encrypt"), "NotSupportedError"},
		{"crypto.importKey", imported("spki", "x", object{"name": "HMAC", "hash": "SHA-256"}, "sign"), "NotSupportedError"},
		{"crypto.importKey", imported("raw", "x", object{"name": "HMAC", "hash": "MD5"}, "sign"), "NotSupportedError"},
		{"crypto.importKey", imported("raw", "x", object{"name": "HMAC"}, "sign"), "TypeError"},
		{"crypto.importKey", imported("raw", "", object{"name": "HMAC", "hash": "SHA-256"}, "sign"), "DataError"},
		{"crypto.importKey", imported("raw", "x", object{"name": "HMAC", "hash": "SHA-256"}), "SyntaxError"},
		{"crypto.importKey", imported("raw", "x", object{"name": "HMAC", "hash": "SHA-256"}, "encrypt"), "SyntaxError"},
		{"crypto.importKey", imported("raw", "x", object{"name": "HMAC", "hash": "SHA-256", "length": 9}, "sign"), "DataError"},
		{"crypto.importKey", imported("raw", "short", object{"name": "AES-GCM"}, "encrypt"), "DataError"},
		{"crypto.importKey", imported("jwk", oct, object{"name": "HKDF"}, "deriveBits"), "NotSupportedError"},
		{"crypto.importKey", object{"format": "raw", "data": "x", "algorithm": object{"name": "HKDF"}, "extractable": true, "usages": []string{"deriveBits"}}, "SyntaxError"},
		{"crypto.importKey", imported("jwk", with(oct, "alg", "A256GCM"), object{"name": "AES-GCM"}, "encrypt"), "DataError"},
		{"crypto.importKey", imported("jwk", with(oct, "alg", "HS512"), object{"name": "HMAC", "hash": "SHA-256"}, "sign"), "DataError"},
		{"crypto.importKey", imported("jwk", with(oct, "use", "sig"), object{"name": "AES-GCM"}, "encrypt"), "DataError"},
		{"crypto.importKey", imported("jwk", with(oct, "key_ops", []string{"decrypt"}), object{"name": "AES-GCM"}, "encrypt"), "DataError"},
		{"crypto.importKey", imported("jwk", with(oct, "key_ops", []string{"encrypt", "encrypt"}), object{"name": "AES-GCM"}, "encrypt"), "DataError"},
		{"crypto.importKey", imported("jwk", with(oct, "k", "A A"), object{"name": "AES-GCM"}, "encrypt"), "DataError"},
		{"crypto.importKey", imported("jwk", object{"kty": "oct"}, object{"name": "AES-GCM"}, "encrypt"), "DataError"},
		{"crypto.importKey", imported("jwk", with(oct, "kty", "RSA"), object{"name": "AES-GCM"}, "encrypt"), "DataError"},
		{"crypto.importKey", imported("raw", "x", object{"name": "ECDSA"}, "verify"), "TypeError"},
		{"crypto.importKey", imported("raw", "x", object{"name": "ECDSA", "namedCurve": "P-224"}, "verify"), "NotSupportedError"},
		{"crypto.importKey", imported("raw", "x", ec, "verify"), "DataError"},
		{"crypto.importKey", imported("raw", "x", ec, "sign"), "SyntaxError"},
		{"crypto.importKey", imported("raw", "x", rs, "verify"), "NotSupportedError"},
		{"crypto.importKey", imported("raw", "x", ed, "verify"), "DataError"},
		{"crypto.importKey", imported("spki", "x", ed, "verify"), "DataError"},
		{"crypto.importKey", imported("pkcs8", "x", ed, "sign"), "DataError"},
		{"crypto.importKey", imported("pkcs8", edKey["data"], ec, "sign"), "DataError"},
		{"crypto.importKey", imported("pkcs8", edKey["data"], rs, "sign"), "DataError"},
		{"crypto.importKey", imported("pkcs8", edKey["data"], ed), "SyntaxError"},
		{"crypto.importKey", imported("jwk", edJWK, ec, "sign"), "DataError"},
		{"crypto.importKey", imported("jwk", ecJWK, object{"name": "ECDSA", "namedCurve": "P-384"}, "sign"), "DataError"},
		{"crypto.importKey", imported("jwk", with(ecJWK, "x", "AA"), ec, "sign"), "DataError"},
		{"crypto.importKey", imported("jwk", with(ecJWK, "x", ecJWK["y"]), ec, "sign"), "DataError"},
		{"crypto.importKey", imported("jwk", with(ecJWK, "d", ecJWK["y"]), ec, "sign"), "DataError"},
		{"crypto.importKey", imported("jwk", with(ecJWK, "d", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), ec, "sign"), "DataError"},
		{"crypto.importKey", imported("jwk", with(ecJWK, "alg", "ES384"), ec, "sign"), "DataError"},
		{"crypto.importKey", imported("jwk", with(edJWK, "alg", "ES256"), ed, "sign"), "DataError"},
		{"crypto.importKey", imported("jwk", with(edJWK, "crv", "X25519"), ed, "sign"), "DataError"},
		{"crypto.importKey", imported("jwk", with(edJWK, "d", edJWK["x"]), ed, "sign"), "DataError"},
		{"crypto.importKey", imported("jwk", with(edJWK, "x", "AA"), ed, "sign"), "DataError"},
		{"crypto.importKey", imported("jwk", object{"kty": "RSA", "n": "AQAB", "e": "AQAB"}, rs, "verify"), "DataError"},
		{"crypto.importKey", imported("jwk", object{"kty": "RSA", "n": strings.Repeat("_", 342), "e": "Ag"}, rs, "verify"), "DataError"},
		{"crypto.importKey", imported("jwk", object{"kty": "RSA", "n": strings.Repeat("_", 3000), "e": "AQAB"}, rs, "verify"), "DataError"},
		{"crypto.importKey", imported("jwk", object{"kty": "RSA", "n": strings.Repeat("_", 342), "e": "AQAB", "d": "AQAB"}, rs, "sign"), "DataError"},
		{"crypto.importKey", imported("jwk", object{"kty": "RSA", "n": strings.Repeat("_", 342), "e": "AQAB", "d": "AQAB", "p": "AQAB", "q": "AQAB", "dp": "AQAB", "dq": "AQAB", "qi": "AQAB"}, rs, "sign"), "DataError"},

		{"crypto.importKey", imported("spki", strings.Repeat("x", 5000), rs, "verify"), "DataError"},
		{"crypto.verify", object{"algorithm": rs, "key": object{"type": "public", "algorithm": rs, "data": strings.Repeat("x", 1<<20)}, "data": "x", "signature": "x"}, "DataError"},

		{"crypto.exportKey", object{"format": "raw"}, "TypeError"},
		{"crypto.exportKey", object{"format": "raw", "key": hkdfKey}, "NotSupportedError"},
		{"crypto.exportKey", object{"format": "spki", "key": gcmKey}, "NotSupportedError"},
		{"crypto.exportKey", object{"format": "spki", "key": edKey}, "InvalidAccessError"},
		{"crypto.exportKey", object{"format": "raw", "key": edKey}, "InvalidAccessError"},
		{"crypto.exportKey", object{"format": "other", "key": edKey}, "NotSupportedError"},
		{"crypto.exportKey", object{"format": "pkcs8", "key": object{"type": "private", "algorithm": ed, "data": "x"}}, "DataError"},
		{"crypto.exportKey", object{"format": "pkcs8", "key": object{"type": "other", "algorithm": ed, "data": "x"}}, "TypeError"},

		{"crypto.sign", object{"algorithm": object{"name": "AES-GCM"}, "key": gcmKey, "data": "x"}, "NotSupportedError"},
		{"crypto.sign", object{"algorithm": object{"name": "HMAC"}, "key": edKey, "data": "x"}, "InvalidAccessError"},
		{"crypto.sign", object{"algorithm": object{"name": "HMAC"}, "key": hmacKey}, "TypeError"},
		{"crypto.sign", object{"algorithm": object{"name": "HMAC"}, "data": "x"}, "TypeError"},
		{"crypto.sign", object{"algorithm": object{"name": "HMAC"}, "key": hmacKey, "data": "x", "signature": "x"}, "TypeError"},
		{"crypto.verify", object{"algorithm": object{"name": "HMAC"}, "key": hmacKey, "data": "x"}, "TypeError"},
		{"crypto.verify", object{"algorithm": ed, "key": edKey, "data": "x", "signature": "x"}, "InvalidAccessError"},
		{"crypto.sign", object{"algorithm": ed, "key": object{"type": "private", "algorithm": ed, "data": "x"}, "data": "x"}, "DataError"},
		{"crypto.sign", object{"algorithm": object{"name": "ECDSA", "hash": "SHA-256"}, "key": object{"type": "private", "algorithm": ec, "data": edKey["data"]}, "data": "x"}, "DataError"},

		{"crypto.encrypt", object{"algorithm": object{"name": "HMAC"}, "key": hmacKey, "data": "x"}, "NotSupportedError"},
		{"crypto.encrypt", object{"algorithm": object{"name": "AES-GCM"}, "key": gcmKey, "data": "x"}, "TypeError"},
		{"crypto.encrypt", object{"algorithm": object{"name": "AES-GCM", "iv": ""}, "key": gcmKey, "data": "x"}, "OperationError"},
		{"crypto.encrypt", object{"algorithm": object{"name": "AES-GCM", "iv": "twelve bytes"}, "key": hmacKey, "data": "x"}, "InvalidAccessError"},
		{"crypto.encrypt", object{"algorithm": object{"name": "AES-CBC", "iv": "short"}, "key": cbcKey, "data": "x"}, "OperationError"},
		{"crypto.encrypt", object{"algorithm": object{"name": "AES-CBC"}, "key": cbcKey, "data": "x"}, "TypeError"},
		{"crypto.encrypt", object{"algorithm": object{"name": "AES-CTR", "counter": "sixteen of bytes"}, "key": cbcKey, "data": "x"}, "InvalidAccessError"},
		{"crypto.encrypt", object{"algorithm": object{"name": "AES-CTR", "counter": "sixteen of bytes", "length": 0}, "key": ctrKey, "data": "x"}, "OperationError"},
		{"crypto.encrypt", object{"algorithm": object{"name": "AES-CTR", "counter": "sixteen of bytes", "length": 129}, "key": ctrKey, "data": "x"}, "OperationError"},
		{"crypto.encrypt", object{"algorithm": object{"name": "AES-CTR", "counter": "short", "length": 64}, "key": ctrKey, "data": "x"}, "OperationError"},
		{"crypto.encrypt", object{"algorithm": object{"name": "AES-CTR", "length": 64}, "key": ctrKey, "data": "x"}, "TypeError"},
		{"crypto.encrypt", object{"algorithm": object{"name": "AES-CTR", "counter": "sixteen of bytes"}, "key": ctrKey, "data": "x"}, "TypeError"},
		{"crypto.encrypt", object{"algorithm": object{"name": "AES-GCM", "iv": "twelve bytes", "tagLength": 100}, "key": gcmKey, "data": "x"}, "OperationError"},
		{"crypto.decrypt", object{"algorithm": object{"name": "AES-GCM", "iv": "twelve bytes"}, "key": gcmKey, "data": "x"}, "OperationError"},

		{"crypto.deriveBits", object{"algorithm": object{"name": "HMAC"}, "key": hmacKey, "length": 8}, "NotSupportedError"},
		{"crypto.deriveBits", object{"algorithm": object{"name": "HKDF", "hash": "SHA-256", "salt": "", "info": ""}, "key": hkdfKey}, "OperationError"},
		{"crypto.deriveBits", object{"algorithm": object{"name": "HKDF", "hash": "SHA-256", "salt": "", "info": ""}, "key": hkdfKey, "length": 9}, "OperationError"},
		{"crypto.deriveBits", object{"algorithm": object{"name": "HKDF", "hash": "SHA-256", "salt": "", "info": ""}, "key": hkdfKey, "length": 8 * 255 * 33}, "OperationError"},
		{"crypto.deriveBits", object{"algorithm": object{"name": "HKDF", "hash": "SHA-256", "salt": ""}, "key": hkdfKey, "length": 8}, "TypeError"},
		{"crypto.deriveBits", object{"algorithm": object{"name": "PBKDF2", "hash": "SHA-256", "salt": "", "iterations": 1}, "key": hkdfKey, "length": 8}, "InvalidAccessError"},

		{"crypto.generateKey", object{"algorithm": object{"name": "HKDF"}}, "NotSupportedError"},
		{"crypto.generateKey", object{"algorithm": object{"name": "AES-GCM"}, "usages": []string{"encrypt"}}, "TypeError"},
		{"crypto.generateKey", object{"algorithm": object{"name": "AES-GCM", "length": 64}, "usages": []string{"encrypt"}}, "OperationError"},
		{"crypto.generateKey", object{"algorithm": object{"name": "AES-GCM", "length": 128}}, "SyntaxError"},
		{"crypto.generateKey", object{"algorithm": object{"name": "HMAC", "hash": "SHA-256", "length": 0}, "usages": []string{"sign"}}, "OperationError"},
		{"crypto.generateKey", object{"algorithm": ed, "usages": []string{"verify"}}, "SyntaxError"},
		{"crypto.generateKey", object{"algorithm": ed, "usages": []string{"encrypt"}}, "SyntaxError"},
		{"crypto.generateKey", object{"algorithm": object{"name": "RSA-PSS", "hash": "SHA-256", "modulusLength": 2048, "publicExponent": b64([]byte{3})}, "usages": []string{"sign"}}, "OperationError"},
		{"crypto.generateKey", object{"algorithm": object{"name": "RSA-PSS", "hash": "SHA-256", "modulusLength": 512, "publicExponent": b64([]byte{1, 0, 1})}, "usages": []string{"sign"}}, "OperationError"},
	} {
		if result, name := call(t, row.op, row.args); name != row.want {
			t.Errorf("row %d: %s %v: %v %q, want %s", i, row.op, row.args, result, name, row.want)
		}
	}
	if _, name := call(t, "crypto.importKey", object{"format": "jwk", "jwk": with(oct, "ext", false), "algorithm": object{"name": "AES-GCM"}, "extractable": true, "usages": []string{"encrypt"}}); name != "DataError" {
		t.Errorf("ext: false, and extractable: %q", name)
	}
}

// A guest may make up a key of a curve that importKey refuses.
func TestAKeyOfAnotherCurveIsRefusedWhereverItIsUsed(t *testing.T) {
	pair, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(pair)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&pair.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	of, signs := object{"name": "ECDSA", "namedCurve": "P-224"}, object{"name": "ECDSA", "hash": "SHA-256"}
	key := object{"type": "private", "algorithm": of, "data": b64(private)}
	if _, name := call(t, "crypto.sign", object{"algorithm": signs, "key": key, "data": "x"}); name != "NotSupportedError" {
		t.Errorf("crypto.sign: %q", name)
	}
	key = object{"type": "public", "algorithm": of, "data": b64(public)}
	args := object{"algorithm": signs, "key": key, "data": "x", "signature": b64(make([]byte, 56))}
	if _, name := call(t, "crypto.verify", args); name != "NotSupportedError" {
		t.Errorf("crypto.verify: %q", name)
	}
}

func TestOnlyPairsOfRSATakeLong(t *testing.T) {
	for _, row := range pairs {
		args, err := json.Marshal(object{"algorithm": row.algorithm, "usages": []string{"sign"}})
		if err != nil {
			t.Fatal(err)
		}
		g, err := webcrypto.Generate(args, nil)
		if err != nil || g.Long != strings.HasPrefix(row.algorithm["name"].(string), "RSA") {
			t.Errorf("%v: %+v, %v", row.algorithm, g, err)
		}
	}
}

func TestTheMeterEndsLongWork(t *testing.T) {
	k := func(name string) object {
		return secret(t, object{"name": name}, strings.Repeat("00", 16), map[bool]string{true: "wrapKey", false: "deriveBits"}[name == "AES-KW"])
	}
	for _, row := range []struct {
		op   string
		args object
	}{
		{"crypto.deriveBits", object{"algorithm": object{"name": "PBKDF2", "hash": "SHA-256", "salt": "s", "iterations": 1 << 40}, "key": k("PBKDF2"), "length": 256}},
		{"crypto.deriveBits", object{"algorithm": object{"name": "HKDF", "hash": "SHA-1", "salt": "", "info": strings.Repeat("x", 1<<20)}, "key": k("HKDF"), "length": 8 * 255 * 20}},
		{"crypto.encrypt", object{"algorithm": object{"name": "AES-KW"}, "key": k("AES-KW"), "data": strings.Repeat("x", 1<<20)}},
	} {
		args, err := json.Marshal(row.args)
		if err != nil {
			t.Fatal(err)
		}
		over, checks := errors.New("over"), 0
		var m cost.Meter
		m.Reset(func() error {
			if checks++; checks == 12 {
				return over
			}
			return nil
		})
		if _, err := webcrypto.Run(row.op, args, &m); err != over {
			t.Errorf("%s of %v ended with %v after %d checks", row.op, row.args["algorithm"].(object)["name"], err, checks)
		}
	}
}
