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
	algOAEP    = "RSA-OAEP"
	algECDH    = "ECDH"
	algX25519  = "X25519"
	algCBC     = "AES-CBC"
	algCTR     = "AES-CTR"
	algGCM     = "AES-GCM"
	algKW      = "AES-KW"
	algPBKDF2  = "PBKDF2"
	algHKDF    = "HKDF"
)

// family describes the keys of an algorithm.
type family struct {
	pair bool
	// secret, public and private are the usages that these keys may have.
	secret, public, private []string
	use                     string // the member use of a JWK
}

var (
	ciphers  = []string{"encrypt", "decrypt", "wrapKey", "unwrapKey"}
	derivers = []string{"deriveKey", "deriveBits"}

	signers    = family{pair: true, public: []string{"verify"}, private: []string{"sign"}, use: "sig"}
	agreements = family{pair: true, private: derivers, use: "enc"}
	symmetric  = family{secret: ciphers, use: "enc"}
)

// families has the algorithms that have keys.
var families = map[string]family{
	algHMAC:    {secret: []string{"sign", "verify"}, use: "sig"},
	algCBC:     symmetric,
	algCTR:     symmetric,
	algGCM:     symmetric,
	algKW:      {secret: []string{"wrapKey", "unwrapKey"}, use: "enc"},
	algPBKDF2:  {secret: derivers},
	algHKDF:    {secret: derivers},
	algECDSA:   signers,
	algEd25519: signers,
	algPSS:     signers,
	algPKCS1:   signers,
	algOAEP:    {pair: true, public: []string{"encrypt", "wrapKey"}, private: []string{"decrypt", "unwrapKey"}, use: "enc"},
	algECDH:    agreements,
	algX25519:  agreements,
}

// Groups of algorithms.
func isRSA(name string) bool { return name == algPSS || name == algPKCS1 || name == algOAEP }
func isEC(name string) bool  { return name == algECDSA || name == algECDH }
func isAES(name string) bool {
	return name == algCBC || name == algCTR || name == algGCM || name == algKW
}
func derives(name string) bool { return name == algPBKDF2 || name == algHKDF }
func isAESBits(bits int) bool  { return bits == 128 || bits == 192 || bits == 256 }

// algorithm is the algorithm of an operation or of a key. Which members it has depends on
// its name; others are ignored.
type algorithm struct {
	Name string `json:"name"`
	// Hash is required for HMAC, RSA, PBKDF2 and HKDF, and to sign and verify with ECDSA.
	Hash       string `json:"hash,omitempty"`
	NamedCurve string `json:"namedCurve,omitempty"` // of ECDSA and ECDH
	// Length is the length of a key of AES or HMAC, or of the counter of AES-CTR, in bits.
	Length         *int          `json:"length,omitempty"`
	ModulusLength  *int          `json:"modulusLength,omitempty"` // of RSA, in bits
	PublicExponent *octets.Bytes `json:"publicExponent,omitempty"`
	SaltLength     *int          `json:"saltLength,omitempty"` // of RSA-PSS, in bytes
	IV             *octets.Bytes `json:"iv,omitempty"`
	AdditionalData *octets.Bytes `json:"additionalData,omitempty"`
	TagLength      *int          `json:"tagLength,omitempty"` // in bits
	Counter        *octets.Bytes `json:"counter,omitempty"`   // of AES-CTR: the first block
	Label          *octets.Bytes `json:"label,omitempty"`     // of RSA-OAEP
	Public         *key          `json:"public,omitempty"`    // of ECDH and X25519: the key of the other side
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

// checkHasKeys returns an error for an algorithm that has no keys.
func (a *algorithm) checkHasKeys() error {
	if a == nil || a.Name == "" {
		return missing("algorithm.name")
	}
	if _, ok := families[a.Name]; !ok {
		return fail(notSupported, "%s is not an algorithm with keys", shorten(a.Name))
	}
	return nil
}

// checkOneOf returns an error for an algorithm that is not among the given ones.
func (a *algorithm) checkOneOf(what string, names ...string) error {
	switch {
	case a == nil || a.Name == "":
		return missing("algorithm.name")
	case !slices.Contains(names, a.Name):
		return fail(notSupported, "%s is not an algorithm %s", shorten(a.Name), what)
	}
	return nil
}

// curve is a curve of ECDSA and ECDH.
type curve struct {
	elliptic.Curve
	alg   string // the member alg of a JWK
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
