package webcrypto_test

import (
	"encoding/hex"
	"strings"
	"testing"
)

const (
	kek   = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	aes   = "2b7e151628aed2a6abf7158809cf4f3c"
	block = "6bc1bee22e409f96e93d7e117393172a"
)

// opened encrypts, and decrypts the result again.
func opened(t *testing.T, algorithm, k object, plain string) (sealed, back string) {
	t.Helper()
	out := must(t, "crypto.encrypt", object{"algorithm": algorithm, "key": k, "data": b64(unhex(plain))})
	return hexOf(out), hexOf(must(t, "crypto.decrypt", object{"algorithm": algorithm, "key": k, "data": out}))
}

func TestAESIsThatOfTheStandards(t *testing.T) {
	for _, row := range []struct {
		algorithm        object
		key, plain, want string // want is the beginning
	}{
		{object{"name": "AES-KW"}, kek[:32], "00112233445566778899aabbccddeeff", "1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5"}, // RFC 3394, 4.1
		{object{"name": "AES-KW"}, kek, "00112233445566778899aabbccddeeff", "64e8c3f9ce0f5ba263e9777905818a2a93c8191e7d6e8ae7"},      // 4.3
		{object{"name": "AES-KW"}, kek, "00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f", // 4.6
			"28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21"},
		{object{"name": "AES-CBC", "iv": b64(unhex(kek[:32]))}, aes, block, "7649abac8119b246cee98e9b12e9197d"}, // SP 800-38A, F.2.1
		{object{"name": "AES-CTR", "counter": b64(unhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")), "length": 128}, aes, // F.5.1
			block + "ae2d8a571e03ac9c9eb76fac45af8e51", "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff"},
	} {
		k := secret(t, object{"name": row.algorithm["name"]}, row.key, "wrapKey")
		got, back := opened(t, row.algorithm, k, row.plain)
		if !strings.HasPrefix(got, row.want) || back != row.plain {
			t.Errorf("%v: %s, want %s; and again %s", row.algorithm["name"], got, row.want, back)
		}
	}
}

// After its last value the counter is 0, and the rest of the block stays (SP 800-38A, B.1).
func TestACounterBeginsAgain(t *testing.T) {
	k := secret(t, object{"name": "AES-CTR"}, aes, "encrypt")
	stream := func(counter string, length, blocks int) string {
		algorithm := object{"name": "AES-CTR", "counter": b64(unhex(counter)), "length": length}
		return hexOf(must(t, "crypto.encrypt", object{"algorithm": algorithm, "key": k, "data": b64(make([]byte, 16*blocks))}))
	}
	const rest = "a0a1a2a3a4a5a6a7a8a9aaabacadae"
	for _, row := range []struct {
		counter, next string
		length        int
	}{
		{rest + "ff", rest + "00", 8},
		{rest + "ff", rest + "f0", 4},
		{rest + "ff", rest[:28] + "af00", 16},
		{strings.Repeat("ff", 16), strings.Repeat("00", 16), 128},
		{strings.Repeat("ff", 16), strings.Repeat("ff", 7) + "fe" + strings.Repeat("00", 8), 65},
		{strings.Repeat("ff", 16), strings.Repeat("ff", 8) + strings.Repeat("00", 8), 64},
	} {
		if got, want := stream(row.counter, row.length, 2), stream(row.counter, 128, 1)+stream(row.next, 128, 1); got != want {
			t.Errorf("%d bits after %s: %s, want %s", row.length, row.counter, got, want)
		}
	}
	args := object{"algorithm": object{"name": "AES-CTR", "counter": b64(make([]byte, 16)), "length": 2}, "key": k, "data": b64(make([]byte, 65))}
	if _, name := call(t, "crypto.encrypt", args); name != "OperationError" {
		t.Errorf("five blocks with a counter of 2 bits: %q", name)
	}
}

// A short tag is the beginning of the full one, and is compared as well.
func TestShortTagsAreChecked(t *testing.T) {
	k := secret(t, object{"name": "AES-GCM"}, aes, "encrypt")
	for _, iv := range []string{"00", kek[:24], kek} {
		algorithm := object{"name": "AES-GCM", "iv": b64(unhex(iv)), "additionalData": "more"}
		full, _ := opened(t, algorithm, k, block+"aa")
		for _, tag := range []int{32, 64, 96, 104, 112, 120, 128} {
			algorithm["tagLength"] = tag
			sealed, back := opened(t, algorithm, k, block+"aa")
			if sealed != full[:len(full)-(128-tag)/4] || back != block+"aa" {
				t.Errorf("%d bits: %s of %s, and again %s", tag, sealed, full, back)
			}
			for at := range len(sealed) / 2 {
				forged := unhex(sealed)
				forged[at] ^= 0x80
				if _, name := call(t, "crypto.decrypt", object{"algorithm": algorithm, "key": k, "data": b64(forged)}); name != "OperationError" {
					t.Errorf("%d bits: byte %d is changed, and the error is %q", tag, at, name)
				}
			}
		}
	}
}

func TestForgedCiphertextsAreRefused(t *testing.T) {
	cbc := object{"name": "AES-CBC", "iv": b64(unhex(kek[:32]))}
	k := secret(t, object{"name": "AES-CBC"}, aes, "encrypt")
	refused := func(what string, algorithm, k object, data []byte) {
		t.Helper()
		if got, name := call(t, "crypto.decrypt", object{"algorithm": algorithm, "key": k, "data": b64(data)}); name != "OperationError" {
			t.Errorf("%s: %v %q", what, got, name)
		}
	}
	refused("no block", cbc, k, nil)
	refused("half a block", cbc, k, make([]byte, 24))
	sealed, _ := opened(t, cbc, k, block)
	for _, padding := range []byte{0x0f ^ 0x10, 0x00 ^ 0x10, 0x11 ^ 0x10, 0xff} { // of the first block's ciphertext, which changes the second's text
		forged := unhex(sealed)
		forged[15] ^= padding
		refused("a wrong padding", cbc, k, forged)
	}
	forged := unhex(sealed)
	forged[0] ^= 1
	refused("a wrong byte of the padding", cbc, k, forged)
	kw := secret(t, object{"name": "AES-KW"}, kek, "wrapKey")
	wrapped := unhex("64e8c3f9ce0f5ba263e9777905818a2a93c8191e7d6e8ae7")
	for at := range wrapped {
		forged := append([]byte(nil), wrapped...)
		forged[at] ^= 4
		refused("a wrapped key", object{"name": "AES-KW"}, kw, forged)
	}
	for _, n := range []int{0, 8, 16, 23} {
		refused("a wrapped key of another length", object{"name": "AES-KW"}, kw, wrapped[:n])
	}
	for _, n := range []int{0, 8, 15, 17} {
		if _, name := call(t, "crypto.encrypt", object{"algorithm": object{"name": "AES-KW"}, "key": kw, "data": b64(make([]byte, n))}); name != "OperationError" {
			t.Errorf("wrapping %d bytes: %q", n, name)
		}
	}
}

func TestRSAOAEPNeedsItsLabel(t *testing.T) {
	of := object{"name": "RSA-OAEP", "hash": "SHA-256", "modulusLength": 2048, "publicExponent": b64([]byte{1, 0, 1})}
	made := must(t, "crypto.generateKey", object{"algorithm": of, "usages": []string{"decrypt", "encrypt", "wrapKey"}})
	private, public := made["privateKey"].(object), made["publicKey"].(object)
	labelled := object{"name": "RSA-OAEP", "label": "label"}
	sealed := must(t, "crypto.encrypt", object{"algorithm": labelled, "key": public, "data": "text"})
	if got := must(t, "crypto.decrypt", object{"algorithm": labelled, "key": private, "data": sealed}); hexOf(got) != hex.EncodeToString([]byte("text")) {
		t.Errorf("it decrypts to %v", got)
	}
	for _, row := range []struct {
		op, want       string
		algorithm, key object
		data           any
	}{
		{"crypto.decrypt", "OperationError", object{"name": "RSA-OAEP"}, private, sealed},
		{"crypto.decrypt", "OperationError", object{"name": "RSA-OAEP", "label": "other"}, private, sealed},
		{"crypto.decrypt", "OperationError", labelled, private, "short"},
		{"crypto.decrypt", "InvalidAccessError", labelled, public, sealed},
		{"crypto.encrypt", "InvalidAccessError", labelled, private, "text"},
		{"crypto.encrypt", "OperationError", labelled, public, strings.Repeat("x", 2048/8-2*32-1)},
	} {
		if got, name := call(t, row.op, object{"algorithm": row.algorithm, "key": row.key, "data": row.data}); name != row.want {
			t.Errorf("%s with %v: %v %q, want %s", row.op, row.algorithm, got, name, row.want)
		}
	}
}
