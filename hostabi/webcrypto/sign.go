package webcrypto

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"math/big"

	"runner.example/hostabi/octets"
	"runner.example/internal/cost"
)

type signArgs struct {
	Algorithm *algorithm    `json:"algorithm"`
	Key       *key          `json:"key"`
	Data      *octets.Bytes `json:"data"`
	Signature *octets.Bytes `json:"signature"` // of verify
}

// check returns an error unless the arguments are there, and of an algorithm that signs.
func (args *signArgs) check(verifies bool) error {
	if err := args.Algorithm.checkOneOf("of signatures", algHMAC, algECDSA, algEd25519, algPSS, algPKCS1); err != nil {
		return err
	}
	switch {
	case args.Key == nil:
		return missing("key")
	case args.Data == nil:
		return missing("data")
	case verifies && args.Signature == nil:
		return missing("signature")
	case !verifies && args.Signature != nil:
		return fail(typeError, "unknown member %q", "signature")
	}
	return nil
}

func sign(args *signArgs, m *cost.Meter) (any, error) {
	if err := args.check(false); err != nil {
		return nil, err
	}
	out, err := signed(args, m)
	if err != nil {
		return nil, err
	}
	return octets.Bytes(out), nil
}

func signed(args *signArgs, m *cost.Meter) ([]byte, error) {
	a, k := args.Algorithm, args.Key
	if a.Name == algHMAC {
		return args.mac(m)
	}
	pair, err := k.pair(a, privateKey, m)
	if err != nil {
		return nil, err
	}
	if private, ok := pair.(ed25519.PrivateKey); ok {
		if err := m.Spend(2 * hashUnits * len(*args.Data)); err != nil {
			return nil, err
		}
		return ed25519.Sign(private, *args.Data), nil
	}
	if a.Name != algECDSA {
		a.Hash = k.Algorithm.Hash
	}
	h, err := a.hash()
	if err != nil {
		return nil, err
	}
	digest, err := digestOf(h, *args.Data, m)
	if err != nil {
		return nil, err
	}
	switch private := pair.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, private, digest)
		if err != nil {
			return nil, failed(err)
		}
		out := make([]byte, 2*curves[k.Algorithm.NamedCurve].bytes)
		r.FillBytes(out[:len(out)/2])
		s.FillBytes(out[len(out)/2:])
		return out, nil
	case *rsa.PrivateKey:
		return a.signRSA(private, h, digest)
	}
	return nil, fail(dataError, "the key is not one of %s", a.Name)
}

func (a *algorithm) signRSA(private *rsa.PrivateKey, h crypto.Hash, digest []byte) (out []byte, err error) {
	if a.Name == algPKCS1 {
		out, err = rsa.SignPKCS1v15(nil, private, h, digest)
	} else {
		options, bad := a.pss()
		if bad != nil {
			return nil, bad
		}
		if options.SaltLength == 0 {
			return signUnsalted(private, h, digest)
		}
		out, err = rsa.SignPSS(rand.Reader, private, h, digest, options)
	}
	if err != nil {
		return nil, failed(err)
	}
	return out, nil
}

// failed is the error of a computation that a key of the algorithm does not permit, such as a salt that
// is longer than the key.
func failed(err error) error { return fail(operation, "%v", err) }

// mac is a signature of HMAC.
func (args *signArgs) mac(m *cost.Meter) ([]byte, error) {
	secret, err := args.Key.secret(args.Algorithm)
	if err != nil {
		return nil, err
	}
	h, err := args.Key.Algorithm.hash()
	if err != nil {
		return nil, err
	}
	return HMAC(h.New, secret, *args.Data, m)
}

// tooMuchSalt fits into no key: it is as long as the longest one.
const tooMuchSalt = maxRSA / 8

func (a *algorithm) pss() (*rsa.PSSOptions, error) {
	switch {
	case a.SaltLength == nil:
		return nil, missing("algorithm.saltLength")
	case *a.SaltLength < 0:
		return nil, fail(typeError, "member %q must not be negative", "algorithm.saltLength")
	}
	// SignPSS draws the salt before it looks whether it fits into the key.
	return &rsa.PSSOptions{SaltLength: min(*a.SaltLength, tooMuchSalt)}, nil
}

func verify(args *signArgs, m *cost.Meter) (any, error) {
	if err := args.check(true); err != nil {
		return nil, err
	}
	valid, err := verified(args, m)
	if err != nil {
		return nil, err
	}
	return validity{valid}, nil
}

func verified(args *signArgs, m *cost.Meter) (bool, error) {
	a, k, sig := args.Algorithm, args.Key, *args.Signature
	if a.Name == algHMAC {
		mac, err := args.mac(m)
		return err == nil && hmac.Equal(mac, sig), err
	}
	pair, err := k.pair(a, publicKey, m)
	if err != nil {
		return false, err
	}
	if public, ok := pair.(ed25519.PublicKey); ok {
		if err := m.Spend(hashUnits * len(*args.Data)); err != nil {
			return false, err
		}
		if hasSmallOrder(public) || len(sig) == ed25519.SignatureSize && hasSmallOrder(sig[:ed25519.PublicKeySize]) {
			return false, nil
		}
		return ed25519.Verify(public, *args.Data, sig), nil
	}
	if a.Name != algECDSA {
		a.Hash = k.Algorithm.Hash
	}
	h, err := a.hash()
	if err != nil {
		return false, err
	}
	digest, err := digestOf(h, *args.Data, m)
	if err != nil {
		return false, err
	}
	switch public := pair.(type) {
	case *ecdsa.PublicKey:
		half := curves[k.Algorithm.NamedCurve].bytes
		if len(sig) != 2*half {
			return false, nil
		}
		r, s := new(big.Int).SetBytes(sig[:half]), new(big.Int).SetBytes(sig[half:])
		return ecdsa.Verify(public, digest, r, s), nil
	case *rsa.PublicKey:
		if a.Name == algPKCS1 {
			return rsa.VerifyPKCS1v15(public, h, digest, sig) == nil, nil
		}
		options, err := a.pss()
		if err != nil {
			return false, err
		}
		if options.SaltLength == 0 {
			return verifyUnsalted(public, h, digest, sig), nil
		}
		return rsa.VerifyPSS(public, h, digest, sig, options) == nil, nil
	}
	return false, fail(dataError, "the key is not one of %s", a.Name)
}
