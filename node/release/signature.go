package release

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"runner.example/internal/fault"
)

// Signature is what the owner of a private key adds to a release. It is not part of the release: a
// release can have several, each of another key.
type Signature struct {
	// Key is the public key, in the form of FormatKey.
	Key string `json:"key"`
	// Value is the Ed25519 signature, 64 bytes.
	Value []byte `json:"signature"`
}

// maxSignatures limits the signatures of a release while every key may add one.
const maxSignatures = 16

// Sign signs a release. The key is not kept.
func Sign(m Manifest, key ed25519.PrivateKey) Signature {
	return Signature{FormatKey(key.Public().(ed25519.PublicKey)), ed25519.Sign(key, m.signedText())}
}

// signedText is what a signature of the release signs:
//
//	runner release signature\n<id>\n<SHA-256 of the manifest, 64 hexadecimal digits>\n
//
// The first line separates it from everything else that the key may sign. The id has only a part
// of the digest.
func (m Manifest) signedText() []byte {
	return fmt.Appendf(nil, "runner release signature\n%s\n%x\n", m.ID(), m.digest())
}

// Check returns a fault with the code Invalid if the signature is not one of this release.
func (s Signature) Check(m Manifest) error {
	key, err := ParseKey(s.Key)
	if err != nil {
		return fault.New(fault.Invalid, "the key of the signature %v", err)
	}
	if !ed25519.Verify(key, m.signedText(), s.Value) {
		return fault.New(fault.Invalid,
			"the signature of release %s by the key %s is not valid: sign the release again with runner deploy --sign",
			m.ID(), s.Key)
	}
	return nil
}

// FormatKey returns a public key as one line of text: the base64 of its SubjectPublicKeyInfo, which
// is the line between BEGIN PUBLIC KEY and END PUBLIC KEY of its PEM form.
func FormatKey(key ed25519.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		panic("BUG: encode an Ed25519 key: " + err.Error())
	}
	return base64.StdEncoding.EncodeToString(der)
}

// ParseKey reads what FormatKey returns. The error says what is expected, and does not contain the
// text, which may be a private key.
func ParseKey(text string) (ed25519.PublicKey, error) {
	der, _ := base64.StdEncoding.DecodeString(text) // without an error the text may be another one of the same key
	parsed, _ := x509.ParsePKIXPublicKey(der)
	if key, ok := parsed.(ed25519.PublicKey); ok && FormatKey(key) == text {
		return key, nil
	}
	if _, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		return nil, errors.New(
			"is a private key: remove it, and write its public key, the line between BEGIN and END that openssl pkey -pubout prints")
	}
	return nil, errors.New(
		"is not an Ed25519 public key: write the line between BEGIN and END that openssl pkey -pubout prints")
}

// keyPrefixLen is the number of characters with which all public keys begin in the form of
// FormatKey: 12 bytes name the algorithm.
const keyPrefixLen = 16

// ShortKey returns the beginning of the part in which public keys differ, for tables.
func ShortKey(key string) string {
	const most = 8
	rest := key[min(keyPrefixLen, len(key)):]
	return rest[:min(most, len(rest))]
}

// TrustedKeys are the public keys whose owners decide what a node serves, in the form of FormatKey.
// Without keys, releases need no signature.
type TrustedKeys []string

// UntrustedError says that a release has no valid signature of a trusted key.
type UntrustedError struct{ *fault.Fault }

// Unwrap returns the fault, whose code is Invalid.
func (e *UntrustedError) Unwrap() error { return e.Fault }

func untrusted(format string, args ...any) error {
	return &UntrustedError{fault.New(fault.Invalid, format, args...)}
}

// Check returns an *UntrustedError if there are trusted keys, and the release has no valid
// signature of one of them.
func (t TrustedKeys) Check(rel Release) error {
	if len(t) == 0 {
		return nil
	}
	if len(rel.Signatures) == 0 {
		return untrusted(
			"release %s is not signed, and the node has [release] trusted_keys: send it with runner deploy --sign",
			rel.Manifest.ID())
	}
	var others []string
	var invalid error
	for _, s := range rel.Signatures {
		if !slices.Contains(t, s.Key) {
			others = append(others, s.Key)
		} else if err := s.Check(rel.Manifest); err == nil {
			return nil
		} else {
			invalid = err
		}
	}
	if invalid != nil {
		return untrusted("%v", invalid)
	}
	return untrusted(
		"release %s is signed by %s, and not by a key in [release] trusted_keys of the node: send it with runner deploy --sign and such a key",
		rel.Manifest.ID(), strings.Join(others, " and "))
}

// Add returns the release with one more signature; nil: with those that it has. A signature of the
// same key is replaced. With trusted keys, only their signatures are kept. The error is a fault
// with the code Invalid if the signature is not valid, or that of Check.
func (t TrustedKeys) Add(rel Release, s *Signature) (Release, error) {
	rel.Signatures = slices.Clone(rel.Signatures)
	if s != nil {
		if err := s.Check(rel.Manifest); err != nil {
			return rel, err
		}
		if err := t.Check(Release{Manifest: rel.Manifest, Signatures: []Signature{*s}}); err != nil {
			return rel, err
		}
		rel.Signatures = slices.DeleteFunc(rel.Signatures, func(old Signature) bool { return old.Key == s.Key })
		rel.Signatures = append(rel.Signatures, *s)
	}
	if err := t.Check(rel); err != nil {
		return rel, err
	}
	if len(t) > 0 {
		rel.Signatures = slices.DeleteFunc(rel.Signatures, func(s Signature) bool { return !slices.Contains(t, s.Key) })
	}
	if n := len(rel.Signatures); n > maxSignatures {
		return rel, fault.New(fault.Invalid, "the release has signatures of %d keys, and the limit is %d", n-1, maxSignatures)
	}
	return rel, nil
}
