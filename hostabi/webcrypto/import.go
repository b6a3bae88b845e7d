package webcrypto

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"slices"

	"runner.example/hostabi/octets"
	"runner.example/internal/cost"
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
	if err := args.Algorithm.checkHasKeys(); err != nil {
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
	if families[args.Algorithm.Name].pair {
		if err := m.Spend(rsaUnits); err != nil {
			return nil, err
		}
		k, err = importPair(args)
	} else {
		k, err = importSecret(args)
	}
	if err != nil {
		return nil, err
	}
	if k.Type != publicKey && len(k.Usages) == 0 {
		return nil, fail(syntaxError, "a %s key must have a usage", k.Type)
	}
	return k, nil
}

// allUsages has the usages of keys, in the order in which a key lists them.
var allUsages = []string{"encrypt", "decrypt", "sign", "verify", "deriveKey", "deriveBits", "wrapKey", "unwrapKey"}

// usages returns the given usages, each once, in the order of allUsages. One that is not allowed is an error.
func usages(algorithm string, given []string, allowed ...string) ([]string, error) {
	for _, usage := range given {
		if !slices.Contains(allowed, usage) {
			return nil, fail(syntaxError, "a key of %s cannot have the usage %q", algorithm, shorten(usage))
		}
	}
	return among(given, allUsages), nil
}

// among returns the members of a list that are also given, in the order of the list.
func among(given, list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(usage string) bool { return !slices.Contains(given, usage) })
}

func importSecret(args *importArgs) (*key, error) {
	a := args.Algorithm
	if args.Format != "raw" && (args.Format != "jwk" || derives(a.Name)) {
		return nil, fail(notSupported, "a key of %s cannot be imported as %q", a.Name, shorten(args.Format))
	}
	k := &key{Type: secretKey, Algorithm: algorithm{Name: a.Name}}
	var err error
	if k.Usages, err = usages(a.Name, args.Usages, families[a.Name].secret...); err != nil {
		return nil, err
	}
	if derives(a.Name) && args.Extractable {
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
	switch {
	case isAES(a.Name):
		if !isAESBits(bits) {
			return nil, fail(dataError, "a key of AES must have 128, 192 or 256 bits, not %d", bits)
		}
		k.Algorithm.Length = &bits
		err = args.JWK.hasAlg(aesAlg(a.Name, bits))
	case a.Name == algHMAC:
		if _, err := a.hash(); err != nil {
			return nil, err
		}
		if bits == 0 {
			return nil, fail(dataError, "a key of HMAC must not be empty")
		}
		if a.Length != nil {
			if *a.Length > bits || *a.Length <= bits-8 {
				return nil, fail(dataError, "the key has %d bits, not %d", bits, *a.Length)
			}
			bits = *a.Length
			clearBitsAfter(k.Data, bits)
		}
		k.Algorithm.Hash, k.Algorithm.Length = a.Hash, &bits
		err = args.JWK.hasAlg(hmacAlg(a.Hash))
	}
	return k, err
}

// clearBitsAfter clears the bits of the last byte after the given number of bits.
func clearBitsAfter(data []byte, bits int) {
	if rest := bits % 8; rest != 0 {
		data[len(data)-1] &= ^byte(0) << (8 - rest)
	}
}

func importPair(args *importArgs) (*key, error) {
	a := args.Algorithm
	switch {
	case isEC(a.Name):
		if _, err := a.curve(); err != nil {
			return nil, err
		}
	case isRSA(a.Name):
		if _, err := a.hash(); err != nil {
			return nil, err
		}
	}
	may := families[a.Name].public
	if args.Format == "pkcs8" || args.Format == "jwk" && args.JWK.D != nil {
		may = families[a.Name].private
	}
	allowed, err := usages(a.Name, args.Usages, may...)
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
	switch {
	case args.Format == "spki":
		return parseDER(publicKey, *args.Data)
	case args.Format == "pkcs8":
		return parseDER(privateKey, *args.Data)
	case args.Format == "jwk":
		return args.JWK.pair(args)
	case args.Format != "raw" || isRSA(a.Name):
		return nil, fail(notSupported, "a key of %s cannot be imported as %q", a.Name, shorten(args.Format))
	case isEC(a.Name):
		c, err := a.curve()
		if err != nil {
			return nil, err
		}
		public, err := parsePoint(c.Curve, *args.Data)
		if err != nil {
			return nil, fail(dataError, "the key is not a point of %s", a.NamedCurve)
		}
		return public, nil
	case len(*args.Data) != ed25519.PublicKeySize: // X25519 has the same size
		return nil, fail(dataError, "a public key of %s must have 32 bytes, not %d", a.Name, len(*args.Data))
	case a.Name == algEd25519:
		return ed25519.PublicKey(*args.Data), nil
	}
	return ecdh.X25519().NewPublicKey(*args.Data)
}

// parsePoint reads a point, compressed or not (SEC 1, section 2.3.4).
func parsePoint(c elliptic.Curve, data []byte) (*ecdsa.PublicKey, error) {
	if len(data) > 0 && (data[0] == 2 || data[0] == 3) {
		x, y := elliptic.UnmarshalCompressed(c, data)
		if x == nil {
			return nil, fail(dataError, "the key is not a point")
		}
		size := (c.Params().BitSize + 7) / 8
		data = append([]byte{4}, make([]byte, 2*size)...)
		x.FillBytes(data[1 : 1+size])
		y.FillBytes(data[1+size:])
	}
	return ecdsa.ParseUncompressedPublicKey(c, data)
}

// parseDER reads SPKI or PKCS #8.
func parseDER(kind string, der []byte) (pair any, err error) {
	if len(der) > maxKeyBytes {
		return nil, fail(dataError, "the key is longer than %d bytes", maxKeyBytes)
	}
	if kind != publicKey {
		pair, err = x509.ParsePKCS8PrivateKey(der)
	} else if pair, err = x509.ParsePKIXPublicKey(der); err != nil {
		pair, err = parseCompressed(der)
	}
	if err != nil {
		return nil, fail(dataError, "the key is not a valid %s key in DER", kind)
	}
	return pair, nil
}

// curveIDs are the object identifiers of curves (RFC 5480, section 2.1.1.1).
var curveIDs = map[string]elliptic.Curve{
	"1.2.840.10045.3.1.7": elliptic.P256(), "1.3.132.0.34": elliptic.P384(), "1.3.132.0.35": elliptic.P521(),
}

// parseCompressed reads SPKI with a compressed point, which Go's standard library does not.
func parseCompressed(der []byte) (*ecdsa.PublicKey, error) {
	var spki struct {
		Algorithm pkix.AlgorithmIdentifier
		Point     asn1.BitString
	}
	if rest, err := asn1.Unmarshal(der, &spki); err != nil || len(rest) > 0 {
		return nil, fail(dataError, "the key is not SPKI")
	}
	var curve asn1.ObjectIdentifier
	rest, err := asn1.Unmarshal(spki.Algorithm.Parameters.FullBytes, &curve)
	c, known := curveIDs[curve.String()]
	if err != nil || len(rest) > 0 || !known || spki.Algorithm.Algorithm.String() != "1.2.840.10045.2.1" {
		return nil, fail(dataError, "the key is not one of a known curve")
	}
	return parsePoint(c, spki.Point.RightAlign())
}
