package password

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	stdhash "hash"
	"math/bits"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/scrypt"

	"runner.example/hostabi/pbkdf2"
	"runner.example/internal/cost"
)

// hash is one kind of hash with its parameters.
type hash interface {
	// needs returns what computing it needs: bytes of memory, and roughly how many seconds of
	// a processor.
	needs() (memory int64, seconds float64)
	// matches computes it for a password, and compares.
	matches(password []byte, m *cost.Meter) (bool, error)
}

// argon2Hash is Argon2id or Argon2i.
type argon2Hash struct {
	id             bool
	memory, passes uint32 // memory in KiB
	lanes          uint8
	salt, sum      []byte
}

// like reports whether h has at least the salt and the sum of a new hash, and its parameters.
func (h argon2Hash) like(current argon2Hash) bool {
	return h.id == current.id && h.memory == current.memory && h.passes == current.passes && h.lanes == current.lanes &&
		len(h.salt) >= saltBytes && len(h.sum) >= sumBytes
}

// The seconds in this file are those of a processor of 2020, rounded up.
func (h argon2Hash) needs() (int64, float64) {
	const secondsPerGiB = 1 // filled once
	memory := int64(h.memory) << 10
	return memory, float64(memory) / (1 << 30) * float64(h.passes) * secondsPerGiB
}

func (h argon2Hash) matches(password []byte, _ *cost.Meter) (bool, error) {
	derive, size := argon2.IDKey, len(h.sum)
	if !h.id {
		derive = argon2.Key
	}
	if h.sum == nil { // of no password
		size = sumBytes
	}
	return equal(derive(password, h.salt, h.passes, h.memory, h.lanes, uint32(size)), h.sum), nil
}

// bcryptHash is bcrypt. It ignores what is beyond 72 bytes of a password, as all software does.
type bcryptHash struct {
	text   string // $2b$…
	cost   int
	hashed bool // the SHA-256 of the password is hashed, in hexadecimal
}

func (h bcryptHash) needs() (int64, float64) {
	const secondsAt10 = 0.08
	return 8 << 10, secondsAt10 / (1 << 10) * float64(uint64(1)<<h.cost)
}

func (h bcryptHash) matches(password []byte, _ *cost.Meter) (bool, error) {
	if h.hashed {
		sum := sha256.Sum256(password)
		password = []byte(hex.EncodeToString(sum[:]))
	}
	const most = 72
	if len(password) > most {
		password = password[:most]
	}
	err := bcrypt.CompareHashAndPassword([]byte(h.text), password)
	if err != nil && !errors.Is(err, bcrypt.ErrMismatchedHashAndPassword) {
		return false, err // which parse prevents
	}
	return err == nil, nil
}

// scryptHash is scrypt (RFC 7914).
type scryptHash struct {
	log2n, r, p int
	salt, sum   []byte
}

func (h scryptHash) needs() (int64, float64) {
	const (
		secondsPerGiB    = 4
		derivationPerGiB = 16 // of all blocks, by PBKDF2
	)
	block := int64(128 * h.r)
	filled := block << h.log2n // for each of p blocks in turn
	seconds := (secondsPerGiB*float64(filled) + derivationPerGiB*float64(block)) / (1 << 30) * float64(h.p)
	return filled + block*int64(h.p-1), seconds
}

func (h scryptHash) matches(password []byte, _ *cost.Meter) (bool, error) {
	sum, err := h.derive(password)
	return err == nil && equal(sum, h.sum), err // an error is what setCosts prevents
}

// derive returns the key of a password, as long as the sum.
func (h scryptHash) derive(password []byte) ([]byte, error) {
	return scrypt.Key(password, h.salt, 1<<h.log2n, h.r, h.p, len(h.sum))
}

// setCosts sets the parameters N, r and p.
func (h *scryptHash) setCosts(n, r, p int64) error {
	const most = 1 << 16 // of r and p, so that nothing overflows; the limits of needs are far below
	if n < 2 || n > 1<<32 || n&(n-1) != 0 {
		return errors.New("parameter N must be a power of two, from 2 to 2^32")
	}
	if r < 1 || r > most || p < 1 || p > most {
		return errors.New("parameters r and p must be 1 to 65536")
	}
	h.log2n, h.r, h.p = bits.TrailingZeros64(uint64(n)), int(r), int(p)
	return nil
}

// pbkdf2Hash is PBKDF2 with HMAC (RFC 8018).
type pbkdf2Hash struct {
	newHash    func() stdhash.Hash
	iterations int
	salt, sum  []byte
}

func (h pbkdf2Hash) needs() (int64, float64) {
	const secondsPerMillion = 0.8 // with SHA-512, of one block
	size := h.newHash().Size()
	blocks := (len(h.sum) + size - 1) / size
	return 0, float64(h.iterations) / 1e6 * secondsPerMillion * float64(blocks)
}

func (h pbkdf2Hash) matches(password []byte, m *cost.Meter) (bool, error) {
	sum, err := pbkdf2.Key(h.newHash, password, h.salt, h.iterations, len(h.sum), m)
	return err == nil && equal(sum, h.sum), err
}
