package webcrypto

import (
	"crypto"
	"crypto/elliptic"
	"slices"

	"runner.example/hostabi/octets"
)

// The names of the algorithms.
const (
	algHMAC    = "HMAC"
	algECDSA   = "ECDSA"
	algEd25519 = "Ed25519"
	algPSS     = "RSA-PSS"
	algPKCS1   = "RSASSA-PKCS1-v1_5"
	algGCM     = "AES-GCM"
	algPBKDF2  = "PBKDF2"
	algHKDF    = "HKDF"
)

// algorithm is the algorithm of an operation or of a key. Which members it has depends on
// its name; others are ignored.
type algorithm struct {
	Name string `json:"name"`
	// Hash is required for HMAC, RSA, PBKDF2 and HKDF, and to sign and verify with ECDSA.
	Hash       string `json:"hash,omitempty"`
	NamedCurve string `json:"namedCurve,omitempty"` // of ECDSA
	// Length is that of a key of AES or HMAC, in bits.
	Length         *int          `json:"length,omitempty"`
	ModulusLength  *int          `json:"modulusLength,omitempty"` // of RSA, in bits
	PublicExponent *octets.Bytes `json:"publicExponent,omitempty"`
	SaltLength     *int          `json:"saltLength,omitempty"` // of RSA-PSS, in bytes
	IV             *octets.Bytes `json:"iv,omitempty"`
	AdditionalData *octets.Bytes `json:"additionalData,omitempty"`
	TagLength      *int          `json:"tagLength,omitempty"` // in bits
	Salt           *octets.Bytes `json:"salt,omitempty"`
	Info           *octets.Bytes `json:"info,omitempty"`
	Iterations     *int          `json:"iterations,omitempty"`
}

// hash returns the hash function of the algorithm.
func (a *algorithm) hash() (crypto.Hash, error) {
	if a.Hash == "" {
		return 0, missing("algorithm.hash")
	}
	h, ok := hashes[a.Hash]
	if !ok {
		return 0, fail(notSupported, "the hash must be %s, not %q", HashNames, shorten(a.Hash))
	}
	return h, nil
}

// isOf reports an algorithm that is not among those of an operation.
func (a *algorithm) isOf(what string, names ...string) error {
	switch {
	case a == nil || a.Name == "":
		return missing("algorithm.name")
	case !slices.Contains(names, a.Name):
		return fail(notSupported, "%s is not an algorithm %s", shorten(a.Name), what)
	}
	return nil
}

// curve is one of ECDSA's.
type curve struct {
	elliptic.Curve
	alg   string // of a JWK
	bytes int    // of a coordinate
}

var curves = map[string]curve{
	"P-256": {elliptic.P256(), "ES256", 32},
	"P-384": {elliptic.P384(), "ES384", 48},
	"P-521": {elliptic.P521(), "ES512", 66},
}

func (a *algorithm) curve() (curve, error) {
	if a.NamedCurve == "" {
		return curve{}, missing("algorithm.namedCurve")
	}
	c, ok := curves[a.NamedCurve]
	if !ok {
		return curve{}, fail(notSupported, "the curve must be P-256, P-384 or P-521, not %q", shorten(a.NamedCurve))
	}
	return c, nil
}
