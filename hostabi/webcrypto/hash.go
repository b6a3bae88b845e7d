package webcrypto

import (
	"crypto"
	"crypto/hmac"
	_ "crypto/sha1" // for crypto.SHA1
	_ "crypto/sha256"
	_ "crypto/sha512"
	"hash"
	"slices"

	"runner.example/internal/cost"
)

// HashNames are the hash functions, by the names that the standard gives them.
const HashNames = "SHA-1, SHA-256, SHA-384 or SHA-512"

var hashes = map[string]crypto.Hash{
	"SHA-1": crypto.SHA1, "SHA-256": crypto.SHA256, "SHA-384": crypto.SHA384, "SHA-512": crypto.SHA512,
}

// HashOf returns a hash function by its name.
func HashOf(name string) (new func() hash.Hash, ok bool) {
	h, ok := hashes[name]
	if !ok {
		return nil, false
	}
	return h.New, true
}

// hashUnits is the cost of hashing a byte.
const hashUnits = 2

// Sum hashes data, a part at a time. The only error is that of the meter.
func Sum(h hash.Hash, data []byte, m *cost.Meter) ([]byte, error) {
	for part := range slices.Chunk(data, cost.Every/hashUnits) {
		if err := m.Spend(hashUnits * len(part)); err != nil {
			return nil, err
		}
		h.Write(part)
	}
	return h.Sum(nil), nil
}

// HMAC signs data (RFC 2104). The only error is that of the meter.
func HMAC(newHash func() hash.Hash, key, data []byte, m *cost.Meter) ([]byte, error) {
	if h := newHash(); len(key) > h.BlockSize() { // as hmac.New does, but a part at a time
		var err error
		if key, err = Sum(h, key, m); err != nil {
			return nil, err
		}
	}
	return Sum(hmac.New(newHash, key), data, m)
}

// digestOf hashes data for a signature.
func digestOf(h crypto.Hash, data []byte, m *cost.Meter) ([]byte, error) {
	return Sum(h.New(), data, m)
}
