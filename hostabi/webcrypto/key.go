package webcrypto

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"math/big"

	"runner.example/hostabi/octets"
	"runner.example/internal/cost"
)

// The types of keys.
const (
	secretKey  = "secret"
	publicKey  = "public"
	privateKey = "private"
)

// key is a key as the guest keeps it.
type key struct {
	Type      string       `json:"type"`
	Algorithm algorithm    `json:"algorithm"`
	Usages    []string     `json:"usages,omitempty"` // for the SDK alone
	Data      octets.Bytes `json:"data"`             // raw, SPKI or PKCS #8
}

// The cost of reading a key, and of a signature.
const (
	ecUnits  = 1 << 16
	rsaUnits = 1 << 19
)

// newKey returns the key of a pair, which must be one of the algorithm.
func newKey(a *algorithm, pair any) (*key, error) {
	k := &key{Type: publicKey, Algorithm: algorithm{Name: a.Name}}
	_, public, err := split(a, pair)
	if err != nil {
		return nil, err
	}
	switch pair.(type) {
	case *ecdsa.PrivateKey, ed25519.PrivateKey, *ecdh.PrivateKey, *rsa.PrivateKey:
		k.Type = privateKey
		k.Data, err = x509.MarshalPKCS8PrivateKey(pair)
	default:
		k.Data, err = x509.MarshalPKIXPublicKey(pair)
	}
	if err != nil {
		return nil, fail(dataError, "the key is not one of %s", a.Name)
	}
	switch public := public.(type) {
	case *ecdsa.PublicKey:
		k.Algorithm.NamedCurve = a.NamedCurve
	case *rsa.PublicKey:
		bits, exponent := public.N.BitLen(), octets.Bytes(big.NewInt(int64(public.E)).Bytes())
		k.Algorithm.Hash, k.Algorithm.ModulusLength, k.Algorithm.PublicExponent = a.Hash, &bits, &exponent
	}
	return k, nil
}

// The sizes of RSA keys, in bits. Go's standard library refuses smaller ones; signing with a
// larger one takes tens of milliseconds. maxKeyBytes is more than any key has in DER: it limits
// what a key that the guest has made up itself costs.
const (
	minRSA      = 1024
	maxRSA      = 4096
	maxKeyBytes = 4 << 10
)

// split returns the two halves of a pair, the private one nil if it is not there. The pair must
// be one of the algorithm.
func split(a *algorithm, pair any) (private, public any, err error) {
	switch k := pair.(type) {
	case *ecdsa.PrivateKey:
		private, public = k, &k.PublicKey
	case ed25519.PrivateKey:
		private, public = k, k.Public()
	case *ecdh.PrivateKey:
		private, public = k, k.PublicKey()
	case *rsa.PrivateKey:
		if len(k.Primes) != 2 {
			return nil, nil, fail(notSupported, "a key of RSA with more than two primes is not supported")
		}
		private, public = k, &k.PublicKey
	default:
		public = pair
	}
	fits := false
	switch public := public.(type) {
	case *ecdsa.PublicKey:
		name := public.Curve.Params().Name
		if _, known := curves[name]; !known {
			return nil, nil, fail(notSupported, "the curve must be P-256, P-384 or P-521, not %q", name)
		}
		fits = isEC(a.Name)
		if fits && name != a.NamedCurve {
			return nil, nil, fail(dataError, "the key is one of the curve %s, not %s", name, a.NamedCurve)
		}
	case ed25519.PublicKey:
		fits = a.Name == algEd25519
	case *ecdh.PublicKey:
		fits = a.Name == algX25519 && public.Curve() == ecdh.X25519()
	case *rsa.PublicKey:
		if err := checkRSA(public.N.BitLen()); err != nil {
			return nil, nil, err
		}
		fits = isRSA(a.Name)
	}
	if !fits {
		return nil, nil, fail(dataError, "the key is not one of %s", a.Name)
	}
	return private, public, nil
}

func checkRSA(bits int) error {
	if bits < minRSA || bits > maxRSA {
		return fail(dataError, "a key of RSA must have %d to %d bits, not %d", minRSA, maxRSA, bits)
	}
	return nil
}

// secret returns the bytes of a secret key of the algorithm.
func (k *key) secret(a *algorithm) ([]byte, error) {
	if err := k.is(a, secretKey); err != nil {
		return nil, err
	}
	return k.Data, nil
}

// pair returns a public or private key of the algorithm.
func (k *key) pair(a *algorithm, kind string, m *cost.Meter) (any, error) {
	if err := k.is(a, kind); err != nil {
		return nil, err
	}
	units := ecUnits
	if isRSA(a.Name) {
		units = rsaUnits
	}
	if err := m.Spend(units); err != nil {
		return nil, err
	}
	pair, err := parseDER(kind, k.Data)
	if err != nil {
		return nil, err
	}
	private, public, err := split(&k.Algorithm, pair)
	if kind == privateKey {
		return private, err
	}
	return public, err
}

func (k *key) is(a *algorithm, kind string) error {
	switch {
	case k == nil:
		return missing("key")
	case k.Algorithm.Name != a.Name:
		return fail(invalidAccess, "the key is one of %s, not of %s", shorten(k.Algorithm.Name), a.Name)
	case k.Type != kind:
		return fail(invalidAccess, "the key must be a %s one, not %s", kind, shorten(k.Type))
	}
	return nil
}

type exportArgs struct {
	Format string `json:"format"`
	Key    *key   `json:"key"`
}

func exportKey(args *exportArgs, m *cost.Meter) (any, error) {
	k := args.Key
	if k == nil {
		return nil, missing("key")
	}
	a := &k.Algorithm
	if err := a.checkHasKeys(); err != nil {
		return nil, err
	}
	if derives(a.Name) {
		return nil, fail(notSupported, "a key of %s cannot be exported", a.Name)
	}
	if k.Type == secretKey {
		switch args.Format {
		case "raw":
			return k.Data, nil
		case "jwk":
			return map[string]*jwk{"jwk": secretJWK(k)}, nil
		}
		return nil, cannotExport(k, args.Format)
	}
	if k.Type != publicKey && k.Type != privateKey {
		return nil, fail(typeError, "member %q must be secret, public or private", "key.type")
	}
	pair, err := k.pair(a, k.Type, m) // also when it is handed on: the guest may have changed it
	if err != nil {
		return nil, err
	}
	switch {
	case args.Format == "jwk":
		return map[string]*jwk{"jwk": pairJWK(a, pair)}, nil
	case args.Format == "spki" && k.Type == publicKey, args.Format == "pkcs8" && k.Type == privateKey:
		return k.Data, nil
	case args.Format == "raw":
		switch public := pair.(type) {
		case *ecdsa.PublicKey:
			point, err := public.Bytes()
			return octets.Bytes(point), err
		case ed25519.PublicKey:
			return octets.Bytes(public), nil
		case *ecdh.PublicKey:
			return octets.Bytes(public.Bytes()), nil
		}
	}
	return nil, cannotExport(k, args.Format)
}

// cannotExport says that a key has no such form. Formats that the standard knows for keys of the
// other type are an InvalidAccessError.
func cannotExport(k *key, format string) error {
	name := notSupported
	pair := k.Type != secretKey
	if pair && (format == "spki" || format == "pkcs8" || format == "raw" && !isRSA(k.Algorithm.Name)) {
		name = invalidAccess
	}
	return fail(name, "a %s key of %s cannot be exported as %q", k.Type, k.Algorithm.Name, shorten(format))
}
