package webcrypto

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"encoding/binary"
	"math/big"
)

// RSASSA-PSS without a salt (RFC 8017, section 8.1). In Go's standard library, the salt length 0 means any length.

// encodePSS is EMSA-PSS-ENCODE without a salt (section 9.1.1) for a modulus of n bits. Without a salt it is
// deterministic, so it also serves to verify. It returns nil if the modulus is too short for the hash.
func encodePSS(h crypto.Hash, digest []byte, n int) []byte {
	bits := n - 1
	size := (bits + 7) / 8
	if size < h.Size()+2 {
		return nil
	}
	w := h.New()
	w.Write(make([]byte, 8))
	w.Write(digest)
	sum := w.Sum(nil)
	encoded := make([]byte, size)
	db := encoded[:size-h.Size()-1]
	db[len(db)-1] = 1
	for i, counter := 0, uint32(0); i < len(db); counter++ {
		w.Reset()
		w.Write(sum)
		w.Write(binary.BigEndian.AppendUint32(nil, counter))
		for _, b := range w.Sum(nil) {
			if i < len(db) {
				db[i] ^= b
				i++
			}
		}
	}
	db[0] &= 0xff >> (8*size - bits)
	copy(encoded[len(db):], sum)
	encoded[size-1] = 0xbc
	return encoded
}

// verifyUnsalted reports whether a signature without a salt is valid. Nothing in it is secret.
func verifyUnsalted(public *rsa.PublicKey, h crypto.Hash, digest, sig []byte) bool {
	encoded := encodePSS(h, digest, public.N.BitLen())
	s := new(big.Int).SetBytes(sig)
	if encoded == nil || len(sig) != public.Size() || s.Cmp(public.N) >= 0 {
		return false
	}
	return power(s, public).Cmp(new(big.Int).SetBytes(encoded)) == 0
}

func power(s *big.Int, public *rsa.PublicKey) *big.Int {
	return new(big.Int).Exp(s, big.NewInt(int64(public.E)), public.N)
}

// signUnsalted signs without a salt. The time of big.Int.Exp depends on its operands, so both are blinded: the
// message by a random factor, and the exponents by random multiples of the orders of the groups. The signature
// is verified before it is returned, as a wrong one would reveal the factors of the modulus.
func signUnsalted(private *rsa.PrivateKey, h crypto.Hash, digest []byte) ([]byte, error) {
	n := private.N
	encoded := encodePSS(h, digest, n.BitLen())
	if encoded == nil {
		return nil, fail(operation, "the key is too short for the hash")
	}
	var factor, inverse *big.Int
	for inverse == nil { // almost always once: only a multiple of p or q has no inverse
		var err error
		if factor, err = rand.Int(rand.Reader, n); err != nil {
			return nil, failed(err)
		}
		inverse = new(big.Int).ModInverse(factor, n)
	}
	blinded := power(factor, &private.PublicKey)
	blinded.Mul(blinded, new(big.Int).SetBytes(encoded))
	s, err := root(private, blinded)
	if err != nil {
		return nil, failed(err)
	}
	s.Mod(s.Mul(s, inverse), n)
	if !bytes.Equal(power(s, &private.PublicKey).FillBytes(make([]byte, len(encoded))), encoded) {
		return nil, fail(operation, "the members of the private key do not belong together")
	}
	return s.FillBytes(make([]byte, private.Size())), nil
}

// root is RSASP1 with the Chinese remainder theorem (section 5.2.1).
func root(private *rsa.PrivateKey, m *big.Int) (*big.Int, error) {
	p, q, of := private.Primes[0], private.Primes[1], &private.Precomputed
	a, err := residue(m, of.Dp, p)
	if err != nil {
		return nil, err
	}
	b, err := residue(m, of.Dq, q)
	if err != nil {
		return nil, err
	}
	a.Mod(a.Mul(a.Sub(a, b), of.Qinv), p)
	return b.Add(b, a.Mul(a, q)), nil
}

func residue(m, exponent, prime *big.Int) (*big.Int, error) {
	multiple, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil {
		return nil, err
	}
	order := new(big.Int).Sub(prime, big.NewInt(1))
	return multiple.Exp(new(big.Int).Mod(m, prime), order.Add(order.Mul(order, multiple), exponent), prime), nil
}
