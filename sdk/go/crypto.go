package runner

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// Hash names a hash function.
type Hash string

// The hash functions of Digest and HMAC.
const (
	SHA256 Hash = "SHA-256"
	SHA384 Hash = "SHA-384"
	SHA512 Hash = "SHA-512"
)

// Digest gives the digest of data. The runner computes it, without the fuel that
// crypto/sha256 takes in a guest.
func (c *Context) Digest(hash Hash, data []byte) ([]byte, error) {
	return c.sum("digest", map[string]any{"algorithm": hash, "data": octets(data)})
}

// HMAC signs data with a key, which must not be empty.
func (c *Context) HMAC(hash Hash, key, data []byte) ([]byte, error) {
	return c.sum("hmac", map[string]any{"algorithm": hash, "key": octets(key), "data": octets(data)})
}

// HMACWithSecret signs data with a secret that the schema declares, which the
// handler then need not read.
func (c *Context) HMACWithSecret(hash Hash, secret string, data []byte) ([]byte, error) {
	return c.sum("hmac", map[string]any{"algorithm": hash, "secret": secret, "data": octets(data)})
}

// TimingSafeEqual reports whether a and b are equal, in a time that depends on
// their lengths alone. Compare signatures with it.
func (c *Context) TimingSafeEqual(a, b []byte) (bool, error) {
	var result struct {
		Equal bool `json:"equal"`
	}
	err := callHost(c.host, "timingSafeEqual", map[string]any{"a": octets(a), "b": octets(b)}, &result)
	return result.Equal, err
}

func (c *Context) sum(op string, args map[string]any) ([]byte, error) {
	var result struct {
		Base64 []byte `json:"base64"`
	}
	err := callHost(c.host, op, args, &result)
	return result.Base64, err
}

// octets are bytes as the ABI writes them: text that stands for its UTF-8, or
// {"base64":"…"}.
type octets []byte

// MarshalJSON implements json.Marshaler.
func (o octets) MarshalJSON() ([]byte, error) {
	if utf8.Valid(o) {
		return json.Marshal(string(o))
	}
	return json.Marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString(o)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *octets) UnmarshalJSON(text []byte) error {
	var s string
	if json.Unmarshal(text, &s) == nil {
		*o = octets(s)
		return nil
	}
	var binary struct {
		Base64 *[]byte `json:"base64"`
	}
	if json.Unmarshal(text, &binary) != nil || binary.Base64 == nil {
		return errors.New(`bytes must be a string or {"base64":"…"}`)
	}
	*o = *binary.Base64
	return nil
}
