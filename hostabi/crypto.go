package hostabi

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/internal/cost"
)

// hashes are the functions that digest and hmac offer, by the names that the
// Web Cryptography API gives them.
var hashes = map[string]func() hash.Hash{
	"SHA-256": sha256.New,
	"SHA-384": sha512.New384,
	"SHA-512": sha512.New,
}

// sumJSON is a digest or a signature in both usual forms.
type sumJSON struct {
	Hex    string `json:"hex"`
	Base64 string `json:"base64"`
}

func sumOf(sum []byte) sumJSON {
	return sumJSON{hex.EncodeToString(sum), base64.StdEncoding.EncodeToString(sum)}
}

func digest(_ *Call, args *arguments) (any, error) {
	algorithm := args.algorithm("algorithm")
	data := args.data("data")
	if err := args.end(); err != nil {
		return nil, err
	}
	h := algorithm()
	if err := hashAll(h, data, args.meter); err != nil {
		return nil, err
	}
	return sumOf(h.Sum(nil)), nil
}

// hashUnits is the cost of hashing a byte.
const hashUnits = 2

// hashAll hashes data, a part at a time.
func hashAll(h hash.Hash, data []byte, m *cost.Meter) error {
	for part := range slices.Chunk(data, cost.Every/hashUnits) {
		if err := m.Spend(hashUnits * len(part)); err != nil {
			return err
		}
		h.Write(part)
	}
	return nil
}

// sign computes an HMAC (RFC 2104) with a given key, or with a declared secret that the
// guest does not see.
func sign(c *Call, args *arguments) (any, error) {
	algorithm := args.algorithm("algorithm")
	name, named := args.optionalText("secret")
	key, given := args.optionalData("key")
	data := args.data("data")
	switch {
	case named == given:
		args.wrong("one of the members %q and %q must be there", "secret", "key")
	case given && len(key) == 0:
		args.wrong("member %q must not be empty", "key")
	}
	if err := args.end(); err != nil {
		return nil, err
	}
	if named {
		value, err := c.secret(name)
		if err != nil {
			return nil, err
		}
		key = []byte(value.Reveal())
	}
	if h := algorithm(); len(key) > h.BlockSize() { // as HMAC does, but a part at a time
		if err := hashAll(h, key, args.meter); err != nil {
			return nil, err
		}
		key = h.Sum(nil)
	}
	h := hmac.New(algorithm, key)
	if err := hashAll(h, data, args.meter); err != nil {
		return nil, err
	}
	return sumOf(h.Sum(nil)), nil
}

// timingSafeEqual takes a time that depends only on the lengths.
func timingSafeEqual(_ *Call, args *arguments) (any, error) {
	a, b := args.data("a"), args.data("b")
	if err := args.end(); err != nil {
		return nil, err
	}
	return struct {
		Equal bool `json:"equal"`
	}{subtle.ConstantTimeCompare(a, b) == 1}, nil
}

// algorithm returns the hash function that a member names.
func (a *arguments) algorithm(name string) func() hash.Hash {
	algorithm, ok := hashes[a.text(name)]
	if !ok {
		a.wrong("member %q must be SHA-256, SHA-384 or SHA-512", name)
		return sha256.New
	}
	return algorithm
}

// data returns required bytes.
func (a *arguments) data(name string) []byte {
	data, ok := a.optionalData(name)
	if !ok {
		a.wrong("member %q is missing", name)
	}
	return data
}

// optionalData returns a copy of bytes and whether they are present. They are written as
// text, for its UTF-8, or as {"base64":"…"} (RFC 4648, section 4).
func (a *arguments) optionalData(name string) ([]byte, bool) {
	raw := a.take(name)
	_ = a.meter.Spend(2 * len(raw)) // its error ends the operation at the next
	switch {
	case raw == nil:
		return nil, false
	case raw.Kind() == '"':
		text, _ := jsontext.AppendUnquote(nil, raw)
		return text, true
	}
	data, err := readBase64(raw, a.meter)
	if err != nil {
		a.wrong("member %q must be a string or {\"base64\":\"…\"}", name)
	}
	return data, true
}

// readBase64 reads {"base64":"…"}.
func readBase64(raw jsontext.Value, m *cost.Meter) ([]byte, error) {
	object, err := readArguments(raw, m)
	if err != nil {
		return nil, err
	}
	text := object.text("base64")
	if err := object.end(); err != nil {
		return nil, err
	}
	if strings.ContainsAny(text, "\r\n") { // which the decoder would skip
		return nil, errors.New("base64 with line breaks")
	}
	if err := m.Spend(len(text)); err != nil {
		return nil, err
	}
	return base64.StdEncoding.Strict().DecodeString(text)
}
