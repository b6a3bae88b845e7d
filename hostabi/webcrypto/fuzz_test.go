package webcrypto_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"runner.example/hostabi/webcrypto"
	"runner.example/internal/cost"
	"runner.example/internal/fault"
)

func FuzzRun(f *testing.F) {
	operations := []string{"importKey", "exportKey", "sign", "verify", "encrypt", "decrypt", "deriveBits"}
	add := func(op int, args object) {
		text, err := json.Marshal(args)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(op, text)
	}
	for _, row := range pairs[:5] {
		made := must(f, "crypto.generateKey", object{"algorithm": row.algorithm, "usages": []string{"verify", "sign"}})
		for _, k := range []any{made["privateKey"], made["publicKey"]} {
			add(1, object{"format": "jwk", "key": k})
			add(2, object{"algorithm": row.signs, "key": k, "data": "x"})
			add(3, object{"algorithm": row.signs, "key": k, "data": "x", "signature": b64(make([]byte, 64))})
			exported := must(f, "crypto.exportKey", object{"format": "jwk", "key": k})
			add(0, object{"format": "jwk", "jwk": exported["jwk"], "algorithm": row.algorithm, "usages": k.(object)["usages"]})
		}
		add(0, object{"format": "pkcs8", "data": made["privateKey"].(object)["data"], "algorithm": row.algorithm, "usages": []string{"sign"}})
		add(0, object{"format": "spki", "data": made["publicKey"].(object)["data"], "algorithm": row.algorithm, "usages": []string{"verify"}})
	}
	k := object{"type": "secret", "algorithm": object{"name": "AES-GCM"}, "data": "sixteen of bytes"}
	add(4, object{"algorithm": object{"name": "AES-GCM", "iv": "x", "tagLength": 128}, "key": k, "data": "x"})
	k = object{"type": "secret", "algorithm": object{"name": "PBKDF2"}, "data": "x"}
	add(6, object{"algorithm": object{"name": "PBKDF2", "hash": "SHA-256", "salt": "", "iterations": 2}, "key": k, "length": 64})
	for _, algorithm := range []object{{"name": "AES-CBC", "iv": "sixteen of bytes"}, {"name": "AES-CTR", "counter": "sixteen of bytes", "length": 3}, {"name": "AES-KW"}} {
		k := object{"type": "secret", "algorithm": object{"name": algorithm["name"]}, "data": "sixteen of bytes"}
		add(4, object{"algorithm": algorithm, "key": k, "data": "sixteen of bytes"})
		add(5, object{"algorithm": algorithm, "key": k, "data": strings.Repeat("x", 48)})
	}
	for _, row := range agreements {
		private, public := imported(f, "jwk", row.private, row.algorithm, "deriveBits"), imported(f, "jwk", row.public, row.algorithm)
		add(6, object{"algorithm": object{"name": row.algorithm["name"], "public": public}, "key": private, "length": 100})
	}
	f.Fuzz(func(t *testing.T, op int, args []byte) {
		name := "crypto." + operations[uint(op)%uint(len(operations))]
		var m cost.Meter
		checks, over := 0, errors.New("over")
		m.Reset(func() error {
			if checks++; checks > 1000 {
				return over
			}
			return nil
		})
		out, err := webcrypto.Run(name, args, &m)
		switch {
		case err == over:
		case err != nil:
			if detail := fault.Of(err).Detail; fault.CodeOf(err) != fault.Invalid || !strings.Contains(detail, "Error: ") {
				t.Errorf("%s %s: %v", name, args, err)
			}
		case !json.Valid(out):
			t.Errorf("%s %s gives %s", name, args, out)
		}
	})
}

func BenchmarkSign(b *testing.B) {
	unsalted := pairs[5]
	unsalted.signs = object{"name": "RSA-PSS", "saltLength": 0}
	for _, row := range append(pairs[:len(pairs):len(pairs)], unsalted) {
		made := must(b, "crypto.generateKey", object{"algorithm": row.algorithm, "usages": []string{"verify", "sign"}})
		args, err := json.Marshal(object{"algorithm": row.signs, "key": made["privateKey"], "data": "x"})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(row.algorithm["name"], row.algorithm["namedCurve"], row.signs["saltLength"]), func(b *testing.B) {
			for b.Loop() {
				if _, err := webcrypto.Run("crypto.sign", args, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
