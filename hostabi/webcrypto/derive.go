package webcrypto

import (
	"crypto/hkdf"

	"runner.example/hostabi/octets"
	"runner.example/hostabi/pbkdf2"
	"runner.example/internal/cost"
)

type deriveArgs struct {
	Algorithm *algorithm `json:"algorithm"`
	Key       *key       `json:"key"`
	Length    *int       `json:"length"` // in bits
}

// maxDerivedBits is the most that is derived at once; of HKDF it may be less.
const maxDerivedBits = 1 << 20

// maxInfoBytes limits the info of HKDF, which is hashed with every block; OpenSSL has this limit
// too.
const maxInfoBytes = 1024

func deriveBits(args *deriveArgs, m *cost.Meter) (any, error) {
	a := args.Algorithm
	if err := a.isOf("to derive with", algPBKDF2, algHKDF); err != nil {
		return nil, err
	}
	secret, err := args.Key.secret(a)
	if err != nil {
		return nil, err
	}
	h, err := a.hash()
	if err != nil {
		return nil, err
	}
	if a.Salt == nil {
		return nil, missing("algorithm.salt")
	}
	if args.Length == nil || *args.Length <= 0 || *args.Length%8 != 0 || *args.Length > maxDerivedBits {
		return nil, fail(operation, "the length must be a multiple of 8 bits, from 8 to %d", maxDerivedBits)
	}
	bytes := *args.Length / 8
	if a.Name == algHKDF {
		if a.Info == nil {
			return nil, missing("algorithm.info")
		}
		if len(*a.Info) > maxInfoBytes {
			return nil, fail(operation, "the info must have at most %d bytes", maxInfoBytes)
		}
		if err := m.Spend(ecUnits + hashUnits*(len(secret)+bytes*(2+len(*a.Info)/h.Size()))); err != nil {
			return nil, err
		}
		out, err := hkdf.Key(h.New, secret, *a.Salt, string(*a.Info), bytes)
		if err != nil {
			return nil, fail(operation, "HKDF gives at most %d bits with %s", 8*255*h.Size(), a.Hash)
		}
		return octets.Bytes(out), nil
	}
	if a.Iterations == nil {
		return nil, missing("algorithm.iterations")
	}
	if *a.Iterations < 1 {
		return nil, fail(operation, "the iterations must be 1 or more")
	}
	out, err := pbkdf2.Key(h.New, secret, *a.Salt, *a.Iterations, bytes, m)
	if err != nil {
		return nil, err
	}
	return octets.Bytes(out), nil
}
