package webcrypto

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/hmac"

	"runner.example/hostabi/octets"
	"runner.example/hostabi/pbkdf2"
	"runner.example/internal/cost"
)

type deriveArgs struct {
	Algorithm *algorithm `json:"algorithm"`
	Key       *key       `json:"key"`
	// Length is in bits. Without it, ECDH and X25519 return the whole shared secret.
	Length *int `json:"length"`
}

// maxDerivedBits limits the length of one derivation. HKDF has a lower limit for some hashes.
const maxDerivedBits = 1 << 20

func deriveBits(args *deriveArgs, m *cost.Meter) (any, error) {
	a := args.Algorithm
	if err := a.checkOneOf("to derive with", algPBKDF2, algHKDF, algECDH, algX25519); err != nil {
		return nil, err
	}
	if derives(a.Name) {
		return args.derive(m)
	}
	return args.agree(m)
}

// derive runs HKDF or PBKDF2.
func (args *deriveArgs) derive(m *cost.Meter) (any, error) {
	a := args.Algorithm
	secret, err := args.Key.secret(a)
	if err != nil {
		return nil, err
	}
	h, err := a.hash()
	if err != nil {
		return nil, err
	}
	switch {
	case a.Salt == nil:
		return nil, missing("algorithm.salt")
	case a.Name == algHKDF && a.Info == nil:
		return nil, missing("algorithm.info")
	case a.Name == algPBKDF2 && a.Iterations == nil:
		return nil, missing("algorithm.iterations")
	case args.Length == nil || *args.Length < 0 || *args.Length%8 != 0 || *args.Length > maxDerivedBits:
		return nil, fail(operation, "the length must be a multiple of 8 bits, from 0 to %d", maxDerivedBits)
	}
	var out []byte
	if a.Name == algHKDF {
		out, err = hkdf(h, secret, *a.Salt, *a.Info, *args.Length/8, m)
	} else if *a.Iterations < 1 {
		return nil, fail(operation, "the iterations must be 1 or more")
	} else {
		out, err = pbkdf2.Key(h.New, secret, *a.Salt, *a.Iterations, *args.Length/8, m)
	}
	if err != nil {
		return nil, err
	}
	return octets.Bytes(out), nil
}

// hkdf is HKDF (RFC 5869). The meter is asked for each block, which hashes the info, as that may be long.
func hkdf(h crypto.Hash, secret, salt, info []byte, length int, m *cost.Meter) ([]byte, error) {
	if length > 255*h.Size() {
		return nil, fail(operation, "HKDF gives at most %d bits with %s", 8*255*h.Size(), h)
	}
	pseudorandom, err := HMAC(h.New, salt, secret, m)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, length+h.Size())
	var last []byte
	for n := byte(1); len(out) < length; n++ {
		if err := m.Spend(hashUnits * h.New().BlockSize() * 2); err != nil {
			return nil, err
		}
		mac := hmac.New(h.New, pseudorandom)
		mac.Write(last)
		if _, err := Sum(mac, info, m); err != nil {
			return nil, err
		}
		mac.Write([]byte{n})
		last = mac.Sum(nil)
		out = append(out, last...)
	}
	return out[:length], nil
}

// agree runs ECDH or X25519.
func (args *deriveArgs) agree(m *cost.Meter) (any, error) {
	a := args.Algorithm
	private, err := args.Key.pair(a, privateKey, m)
	if err != nil {
		return nil, err
	}
	if a.Public == nil {
		return nil, missing("algorithm.public")
	}
	if a.Public.Algorithm.NamedCurve != args.Key.Algorithm.NamedCurve {
		return nil, fail(invalidAccess, "the public key has the curve %s, and the private key %s", shorten(a.Public.Algorithm.NamedCurve), args.Key.Algorithm.NamedCurve)
	}
	public, err := a.Public.pair(a, publicKey, m)
	if err != nil {
		return nil, err
	}
	shared, err := agreed(private, public)
	if err != nil {
		return nil, fail(operation, "the public key and the private key have no shared secret")
	}
	if args.Length == nil {
		return octets.Bytes(shared), nil
	}
	bits := *args.Length
	if bits < 0 || bits > 8*len(shared) {
		return nil, fail(operation, "the shared secret has %d bits, not %d", 8*len(shared), bits)
	}
	shared = shared[:(bits+7)/8]
	clearBitsAfter(shared, bits)
	return octets.Bytes(shared), nil
}

// agreed returns the shared secret of two keys of one curve. ECDH refuses one of X25519 that is zero (RFC 7748,
// section 6.1).
func agreed(private, public any) ([]byte, error) {
	if private, ok := private.(*ecdh.PrivateKey); ok {
		return private.ECDH(public.(*ecdh.PublicKey))
	}
	own, err := private.(*ecdsa.PrivateKey).ECDH()
	if err != nil {
		return nil, err
	}
	other, err := public.(*ecdsa.PublicKey).ECDH()
	if err != nil {
		return nil, err
	}
	return own.ECDH(other)
}
