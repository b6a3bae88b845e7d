package webcrypto

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"math/big"
	"slices"

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

type importArgs struct {
	Format      string        `json:"format"`
	Data        *octets.Bytes `json:"data"` // unless the format is jwk
	JWK         *jwk          `json:"jwk"`
	Algorithm   *algorithm    `json:"algorithm"`
	Extractable bool          `json:"extractable"`
	Usages      []string      `json:"usages"`
}

func importKey(args *importArgs, m *cost.Meter) (any, error) {
	if err := args.Algorithm.isOf("of keys", algHMAC, algGCM, algPBKDF2, algHKDF, algECDSA, algEd25519, algPSS,
		algPKCS1); err != nil {
		return nil, err
	}
	if args.Format == "jwk" {
		if args.JWK == nil {
			return nil, missing("jwk")
		}
	} else if args.Data == nil {
		return nil, missing("data")
	}
	var k *key
	var err error
	switch args.Algorithm.Name {
	case algHMAC, algGCM, algPBKDF2, algHKDF:
		k, err = importSecret(args)
	default:
		if err := m.Spend(rsaUnits); err != nil {
			return nil, err
		}
		k, err = importPair(args)
	}
	if err != nil {
		return nil, err
	}
	if k.Type != publicKey && len(k.Usages) == 0 {
		return nil, fail(syntaxError, "a %s key must have a usage", k.Type)
	}
	return k, nil
}

// allUsages are those of keys, in the order in which a key has them.
var allUsages = []string{"encrypt", "decrypt", "sign", "verify", "deriveKey", "deriveBits", "wrapKey", "unwrapKey"}

// usages returns the given usages, each once, in their order. All of them must be allowed.
func usages(algorithm string, given []string, allowed ...string) ([]string, error) {
	for _, usage := range given {
		if !slices.Contains(allowed, usage) {
			return nil, fail(syntaxError, "a key of %s cannot have the usage %q", algorithm, shorten(usage))
		}
	}
	return slices.DeleteFunc(slices.Clone(allUsages), func(usage string) bool {
		return !slices.Contains(given, usage)
	}), nil
}

// secretUsages are the usages of keys that are not pairs.
var secretUsages = map[string][]string{
	algHMAC: {"sign", "verify"}, algGCM: {"encrypt", "decrypt", "wrapKey", "unwrapKey"},
	algPBKDF2: {"deriveKey", "deriveBits"}, algHKDF: {"deriveKey", "deriveBits"},
}

func importSecret(args *importArgs) (*key, error) {
	a := args.Algorithm
	derives := a.Name == algPBKDF2 || a.Name == algHKDF
	if args.Format != "raw" && (args.Format != "jwk" || derives) {
		return nil, fail(notSupported, "a key of %s cannot be imported as %q", a.Name, shorten(args.Format))
	}
	k := &key{Type: secretKey, Algorithm: algorithm{Name: a.Name}}
	var err error
	if k.Usages, err = usages(a.Name, args.Usages, secretUsages[a.Name]...); err != nil {
		return nil, err
	}
	if derives && args.Extractable {
		return nil, fail(syntaxError, "a key of %s cannot be extractable", a.Name)
	}
	if args.Format == "jwk" {
		if k.Data, err = args.JWK.secret(args); err != nil {
			return nil, err
		}
	} else {
		k.Data = *args.Data
	}
	bits := 8 * len(k.Data)
	switch a.Name {
	case algGCM:
		if bits != 128 && bits != 192 && bits != 256 {
			return nil, fail(dataError, "a key of AES must have 128, 192 or 256 bits, not %d", bits)
		}
		k.Algorithm.Length = &bits
		err = args.JWK.hasAlg(aesAlg(bits))
	case algHMAC:
		if _, err := a.hash(); err != nil {
			return nil, err
		}
		if bits == 0 {
			return nil, fail(dataError, "a key of HMAC must not be empty")
		}
		if a.Length != nil && *a.Length != bits {
			return nil, fail(dataError, "the key has %d bits, not %d", bits, *a.Length)
		}
		k.Algorithm.Hash, k.Algorithm.Length = a.Hash, &bits
		err = args.JWK.hasAlg(hmacAlg(a.Hash))
	}
	return k, err
}

func importPair(args *importArgs) (*key, error) {
	a := args.Algorithm
	switch a.Name {
	case algECDSA:
		if _, err := a.curve(); err != nil {
			return nil, err
		}
	case algPSS, algPKCS1:
		if _, err := a.hash(); err != nil {
			return nil, err
		}
	}
	private := args.Format == "pkcs8" || args.Format == "jwk" && args.JWK.D != nil
	may := "verify"
	if private {
		may = "sign"
	}
	allowed, err := usages(a.Name, args.Usages, may)
	if err != nil {
		return nil, err
	}
	pair, err := readPair(args)
	if err != nil {
		return nil, err
	}
	k, err := newKey(a, pair)
	if err == nil {
		k.Usages = allowed
	}
	return k, err
}

// readPair reads a public or a private key.
func readPair(args *importArgs) (any, error) {
	a := args.Algorithm
	rsaKey := a.Name == algPSS || a.Name == algPKCS1
	switch {
	case args.Format == "spki":
		return parseDER(publicKey, *args.Data)
	case args.Format == "pkcs8":
		return parseDER(privateKey, *args.Data)
	case args.Format == "jwk":
		return args.JWK.pair(args)
	case args.Format == "raw" && a.Name == algEd25519:
		if len(*args.Data) != ed25519.PublicKeySize {
			return nil, fail(dataError, "a public key of Ed25519 must have 32 bytes, not %d", len(*args.Data))
		}
		return ed25519.PublicKey(*args.Data), nil
	case args.Format == "raw" && !rsaKey:
		c, err := a.curve()
		if err != nil {
			return nil, err
		}
		pub, err := ecdsa.ParseUncompressedPublicKey(c.Curve, *args.Data)
		if err != nil {
			return nil, fail(dataError, "the key is not an uncompressed point of %s", a.NamedCurve)
		}
		return pub, nil
	}
	return nil, fail(notSupported, "a key of %s cannot be imported as %q", a.Name, shorten(args.Format))
}

// parseDER reads SPKI or PKCS #8.
func parseDER(kind string, der []byte) (pair any, err error) {
	if len(der) > maxKeyBytes {
		return nil, fail(dataError, "the key is longer than %d bytes", maxKeyBytes)
	}
	if kind == publicKey {
		pair, err = x509.ParsePKIXPublicKey(der)
	} else {
		pair, err = x509.ParsePKCS8PrivateKey(der)
	}
	if err != nil {
		return nil, fail(dataError, "the key is not a valid %s key in DER", kind)
	}
	return pair, nil
}

// newKey returns the key of a pair, which must be one of the algorithm.
func newKey(a *algorithm, pair any) (*key, error) {
	k := &key{Type: publicKey, Algorithm: algorithm{Name: a.Name}}
	var err error
	switch pair.(type) {
	case *ecdsa.PrivateKey, ed25519.PrivateKey, *rsa.PrivateKey:
		k.Type = privateKey
		k.Data, err = x509.MarshalPKCS8PrivateKey(pair)
	default:
		k.Data, err = x509.MarshalPKIXPublicKey(pair)
	}
	if err != nil {
		return nil, fail(dataError, "the key is not one of %s", a.Name)
	}
	_, public, err := split(a, pair)
	if err != nil {
		return nil, err
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
	name := ""
	switch k := pair.(type) {
	case *ecdsa.PrivateKey:
		private, public, name = k, &k.PublicKey, k.Curve.Params().Name
	case *ecdsa.PublicKey:
		public, name = k, k.Curve.Params().Name
	case ed25519.PrivateKey:
		private, public = k, k.Public()
	case ed25519.PublicKey:
		public = k
	case *rsa.PrivateKey:
		private, public = k, &k.PublicKey
	case *rsa.PublicKey:
		public = k
	}
	fits := false
	switch public := public.(type) {
	case *ecdsa.PublicKey:
		if _, known := curves[name]; !known {
			return nil, nil, fail(notSupported, "the curve must be P-256, P-384 or P-521, not %q", name)
		}
		if a.Name == algECDSA && name != a.NamedCurve {
			return nil, nil, fail(dataError, "the key is one of the curve %s, not %s", name, a.NamedCurve)
		}
		fits = a.Name == algECDSA
	case ed25519.PublicKey:
		fits = a.Name == algEd25519
	case *rsa.PublicKey:
		if err := checkRSA(public.N.BitLen()); err != nil {
			return nil, nil, err
		}
		fits = a.Name == algPSS || a.Name == algPKCS1
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
	if a.Name == algPSS || a.Name == algPKCS1 {
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
	if err := a.isOf("of keys that can be exported", algHMAC, algGCM, algECDSA, algEd25519, algPSS, algPKCS1); err != nil {
		return nil, err
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
		}
	}
	return nil, cannotExport(k, args.Format)
}

// cannotExport says that a key has no such form. Formats that the standard knows for keys of the
// other type are an InvalidAccessError.
func cannotExport(k *key, format string) error {
	name := notSupported
	pair := k.Type != secretKey
	rsaKey := k.Algorithm.Name == algPSS || k.Algorithm.Name == algPKCS1
	if pair && (format == "spki" || format == "pkcs8" || format == "raw" && !rsaKey) {
		name = invalidAccess
	}
	return fail(name, "a %s key of %s cannot be exported as %q", k.Type, k.Algorithm.Name, shorten(format))
}
