package hostabi

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"hash"

	"runner.example/hostabi/octets"
	"runner.example/hostabi/webcrypto"
	"runner.example/state/entity"
)

// sumJSON is a digest or a signature in both usual forms.
type sumJSON struct {
	Hex    string `json:"hex"`
	Base64 string `json:"base64"`
}

func sumOf(sum []byte) sumJSON {
	return sumJSON{hex.EncodeToString(sum), base64.StdEncoding.EncodeToString(sum)}
}

func digest(_ *Call, args *arguments) (any, error) {
	newHash := args.hash("algorithm")
	data := args.data("data")
	if err := args.end(); err != nil {
		return nil, err
	}
	sum, err := webcrypto.Sum(newHash(), data, args.meter)
	return sumOf(sum), err
}

// sign computes an HMAC (RFC 2104) with a given key, or with a declared secret that the
// guest does not see.
func sign(c *Call, args *arguments) (any, error) {
	newHash := args.hash("algorithm")
	name, named := args.optionalText("secret")
	key, given := args.optionalData("key")
	data := args.data("data")
	switch {
	case named == given:
		args.wrong("one of %q and %q is required, and not both", "secret", "key")
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
	sum, err := webcrypto.HMAC(newHash, key, data, args.meter)
	return sumOf(sum), err
}

// runWebCrypto runs an operation of package webcrypto, which reads the arguments itself.
func runWebCrypto(c *Call, name string, args []byte, out *entity.Result) error {
	text, err := webcrypto.Run(name, args, &c.work)
	*out = entity.Result{JSON: append(out.JSON[:0], text...)}
	return err
}

// generateKey makes a key. A long computation waits for a slot.
func generateKey(c *Call, args []byte) (work, error) {
	g, err := webcrypto.Generate(args, &c.work)
	if err != nil {
		return nil, err
	}
	if g.Long {
		return c.longWork(func(context.Context) ([]byte, error) { return g.Make() }), nil
	}
	return func(context.Context) (answer, error) {
		text, err := g.Make()
		return written(text), err
	}, nil
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

// hash returns the hash function that a member names.
func (a *arguments) hash(name string) func() hash.Hash {
	newHash, ok := webcrypto.HashOf(a.text(name))
	if !ok {
		a.wrong("member %q must be "+webcrypto.HashNames, name)
	}
	return newHash
}

// data returns required bytes.
func (a *arguments) data(name string) []byte {
	data, ok := a.optionalData(name)
	if !ok {
		a.wrong("member %q is missing", name)
	}
	return data
}

// optionalData returns a copy of bytes and whether they are present, in the form of package
// octets.
func (a *arguments) optionalData(name string) ([]byte, bool) {
	raw := a.take(name)
	_ = a.meter.Spend(2 * len(raw)) // its error ends the operation at the next
	if raw == nil {
		return nil, false
	}
	var data octets.Bytes
	if data.UnmarshalJSON(raw) != nil {
		a.wrong("member %q must be a string or {\"base64\":\"…\"}", name)
	}
	return data, true
}
