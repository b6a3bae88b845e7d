package runnertest

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"

	"runner.example/sdk/go/internal/host"
)

// owns are the operations that need no answer of the test's.
var owns = map[string]func(*fake, []byte) ([]byte, error){
	"secret": (*fake).secret, "var": (*fake).variable, "problem": (*fake).problem,
	"digest": (*fake).digest, "hmac": (*fake).hmac, "timingSafeEqual": (*fake).timingSafeEqual,
}

var hashes = map[string]func() hash.Hash{"SHA-256": sha256.New, "SHA-384": sha512.New384, "SHA-512": sha512.New}

// cryptoArgs are the arguments of all of them.
type cryptoArgs struct {
	Name      string          `json:"name"`
	Algorithm string          `json:"algorithm"`
	Secret    *string         `json:"secret"`
	Key       json.RawMessage `json:"key"`
	Data      json.RawMessage `json:"data"`
	A         json.RawMessage `json:"a"`
	B         json.RawMessage `json:"b"`
}

func invalid(format string, args ...any) error {
	return &host.Error{Code: "invalid", Message: fmt.Sprintf(format, args...)}
}

func (f *fake) secret(text []byte) ([]byte, error) {
	var args cryptoArgs
	if err := json.Unmarshal(text, &args); err != nil {
		return nil, invalid("%v", err)
	}
	value, err := f.declared(args.Name)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]string{"value": value})
}

func (f *fake) variable(text []byte) ([]byte, error) {
	var args cryptoArgs
	if err := json.Unmarshal(text, &args); err != nil {
		return nil, invalid("%v", err)
	}
	value, ok := f.request.Vars[args.Name]
	if !ok {
		return nil, &host.Error{Code: "denied", Message: fmt.Sprintf("variable %q is not declared", args.Name)}
	}
	return json.Marshal(map[string]any{"value": value})
}

func (f *fake) declared(name string) (string, error) {
	value, ok := f.request.Secrets[name]
	if !ok {
		return "", &host.Error{Code: "denied", Message: fmt.Sprintf("secret %q is not declared", name)}
	}
	return value, nil
}

func (f *fake) digest(text []byte) ([]byte, error) {
	var args cryptoArgs
	err := json.Unmarshal(text, &args)
	algorithm, ok := hashes[args.Algorithm]
	if err != nil || !ok {
		return nil, invalid("the algorithm must be SHA-256, SHA-384 or SHA-512")
	}
	return sum(algorithm(), args.Data)
}

func (f *fake) hmac(text []byte) ([]byte, error) {
	var args cryptoArgs
	err := json.Unmarshal(text, &args)
	algorithm, ok := hashes[args.Algorithm]
	if err != nil || !ok {
		return nil, invalid("the algorithm must be SHA-256, SHA-384 or SHA-512")
	}
	var key []byte
	if args.Secret != nil {
		value, err := f.declared(*args.Secret)
		if err != nil {
			return nil, err
		}
		key = []byte(value)
	} else if key, err = octets(args.Key); err != nil || len(key) == 0 {
		return nil, invalid("the key must not be empty")
	}
	return sum(hmac.New(algorithm, key), args.Data)
}

func (f *fake) timingSafeEqual(text []byte) ([]byte, error) {
	var args cryptoArgs
	if err := json.Unmarshal(text, &args); err != nil {
		return nil, invalid("%v", err)
	}
	a, errA := octets(args.A)
	b, errB := octets(args.B)
	if errA != nil || errB != nil {
		return nil, invalid("a and b must be there")
	}
	return json.Marshal(map[string]bool{"equal": subtle.ConstantTimeCompare(a, b) == 1})
}

func sum(h hash.Hash, text json.RawMessage) ([]byte, error) {
	data, err := octets(text)
	if err != nil {
		return nil, invalid("data must be there")
	}
	h.Write(data)
	s := h.Sum(nil)
	return json.Marshal(map[string]string{"hex": hex.EncodeToString(s), "base64": base64.StdEncoding.EncodeToString(s)})
}

// octets reads a string or {"base64":"…"}.
func octets(text json.RawMessage) ([]byte, error) {
	var s string
	if err := json.Unmarshal(text, &s); err == nil {
		return []byte(s), nil
	}
	var binary struct {
		Base64 []byte `json:"base64"`
	}
	err := json.Unmarshal(text, &binary)
	return binary.Base64, err
}
