package webcrypto

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"slices"

	"github.com/go-json-experiment/json"

	"runner.example/internal/cost"
)

// Generation is a key that is still to be made.
type Generation struct {
	// Long: making it takes a tenth of a second or more, and cannot be interrupted.
	Long bool

	algorithm *algorithm
	family
	usages []string
	make   func() (any, error) // a private key, or the bytes of a secret one
}

type generateArgs struct {
	Algorithm *algorithm `json:"algorithm"`
	Usages    []string   `json:"usages"`
}

// The sizes of RSA keys that are made, in bits.
const (
	minMadeRSA = 2048
	maxMadeRSA = maxRSA
)

// Generate reads the arguments of crypto.generateKey. args is valid until it returns.
func Generate(args []byte, m *cost.Meter) (*Generation, error) {
	in, err := read[generateArgs](args, m)
	if err != nil {
		return nil, err
	}
	a := in.Algorithm
	if err := a.checkHasKeys(); err != nil {
		return nil, err
	}
	if derives(a.Name) {
		return nil, fail(notSupported, "%s is not an algorithm to make keys of", a.Name)
	}
	g := &Generation{algorithm: a, family: families[a.Name]}
	if g.usages, err = usages(a.Name, in.Usages, slices.Concat(g.secret, g.public, g.private)...); err != nil {
		return nil, err
	}
	switch {
	case !g.pair:
		err = g.makesSecret()
	case isEC(a.Name):
		var c curve
		if c, err = a.curve(); err == nil {
			g.make = func() (any, error) { return ecdsa.GenerateKey(c.Curve, rand.Reader) }
		}
	case a.Name == algEd25519:
		g.make = func() (any, error) {
			_, private, err := ed25519.GenerateKey(rand.Reader)
			return private, err
		}
	case a.Name == algX25519:
		g.make = func() (any, error) { return ecdh.X25519().GenerateKey(rand.Reader) }
	default:
		err = g.rsa()
	}
	if err != nil {
		return nil, err
	}
	if kind := g.kind(); len(among(g.usages, slices.Concat(g.secret, g.private))) == 0 {
		return nil, fail(syntaxError, "a %s key must have a usage", kind)
	}
	return g, nil
}

// kind is the type of the key, of a pair that of the private one.
func (g *Generation) kind() string {
	if g.pair {
		return privateKey
	}
	return secretKey
}

func (g *Generation) makesSecret() error {
	a, bits := g.algorithm, 0
	if a.Name == algHMAC {
		h, err := a.hash()
		if err != nil {
			return err
		}
		bits = 8 * h.New().BlockSize()
	} else if a.Length == nil {
		return missing("algorithm.length")
	}
	const most = 1 << 16
	if a.Length != nil {
		bits = *a.Length
	}
	switch {
	case isAES(a.Name) && !isAESBits(bits):
		return fail(operation, "a key of AES must have 128, 192 or 256 bits, not %d", bits)
	case bits <= 0 || bits > most:
		return fail(operation, "a key of HMAC must have 1 to %d bits, not %d", most, bits)
	}
	a.Length = &bits
	g.make = func() (any, error) {
		secret := make([]byte, (bits+7)/8)
		rand.Read(secret) // never fails
		clearBitsAfter(secret, bits)
		return secret, nil
	}
	return nil
}

func (g *Generation) rsa() error {
	a := g.algorithm
	if _, err := a.hash(); err != nil {
		return err
	}
	switch {
	case a.ModulusLength == nil:
		return missing("algorithm.modulusLength")
	case a.PublicExponent == nil:
		return missing("algorithm.publicExponent")
	case *a.ModulusLength < minMadeRSA || *a.ModulusLength > maxMadeRSA || *a.ModulusLength%8 != 0:
		return fail(operation, "the modulusLength must be a multiple of 8 from %d to %d", minMadeRSA, maxMadeRSA)
	case !bytes.Equal(bytes.TrimLeft(*a.PublicExponent, "\x00"), []byte{1, 0, 1}):
		return fail(operation, "the publicExponent must be 65537")
	}
	g.Long = true
	g.make = func() (any, error) { return rsa.GenerateKey(rand.Reader, *a.ModulusLength) }
	return nil
}

// Make makes the key, and returns it as JSON: {"key":…} or {"publicKey":…,"privateKey":…}.
func (g *Generation) Make() ([]byte, error) {
	made, err := g.make()
	if err != nil {
		return nil, err
	}
	if secret, ok := made.([]byte); ok {
		k := &key{
			Type: secretKey, Algorithm: algorithm{Name: g.algorithm.Name, Length: g.algorithm.Length},
			Usages: g.usages, Data: secret,
		}
		if g.algorithm.Name == algHMAC {
			k.Algorithm.Hash = g.algorithm.Hash
		}
		return json.Marshal(map[string]*key{"key": k})
	}
	_, half, err := split(g.algorithm, made)
	if err != nil {
		return nil, err
	}
	private, err := newKey(g.algorithm, made)
	if err != nil {
		return nil, err
	}
	public, err := newKey(g.algorithm, half)
	if err != nil {
		return nil, err
	}
	private.Usages, public.Usages = among(g.usages, g.private), among(g.usages, g.public)
	return json.Marshal(struct {
		PublicKey  *key `json:"publicKey"`
		PrivateKey *key `json:"privateKey"`
	}{public, private})
}
