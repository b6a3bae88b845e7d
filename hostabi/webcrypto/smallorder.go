package webcrypto

import (
	"bytes"
	"crypto/ed25519"
	"math/big"
	"slices"
)

// order8 is a coordinate y of points of order 8 of edwards25519. The eight points of small order have the coordinates
// y, -y, 0, 1 and -1.
const order8 = "7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7"

// smallOrder has these coordinates.
var smallOrder = func() []*big.Int {
	y, _ := new(big.Int).SetString(order8, 16)
	one := big.NewInt(1)
	return []*big.Int{new(big.Int), one, new(big.Int).Sub(fieldPrime, one), y, new(big.Int).Sub(fieldPrime, y)}
}()

// fieldPrime is 2^255 - 19.
var fieldPrime = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))

// hasSmallOrder reports whether an encoded point (RFC 8032, section 5.1.2) has a small order. The encoding may be
// non-canonical. Verification refuses these (Web Cryptography Level 2, Ed25519). Points are not secret.
func hasSmallOrder(point []byte) bool {
	if len(point) != ed25519.PublicKeySize {
		return false
	}
	b := bytes.Clone(point)
	b[len(b)-1] &= 0x7f // the sign of x
	slices.Reverse(b)
	y := new(big.Int).SetBytes(b)
	y.Mod(y, fieldPrime)
	return slices.ContainsFunc(smallOrder, func(small *big.Int) bool { return small.Cmp(y) == 0 })
}
