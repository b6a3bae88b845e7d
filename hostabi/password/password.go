package password

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"

	"golang.org/x/crypto/argon2"

	"runner.example/internal/cost"
	"runner.example/internal/fault"
	"runner.example/internal/settings"
)

// Options are the parameters of new hashes, and a limit for those that are verified. They are
// settings (package settings), and must be set, by settings.FillZero, before a method is called.
type Options struct {
	// Memory is the memory cost of a new Argon2id hash, Passes the number of iterations. The
	// parallelism is 1. The defaults are those of the OWASP Password Storage Cheat Sheet. After a
	// change `password.verify` reports `rehash` for older hashes.
	Memory int64 `toml:"password.memory" unit:"size" default:"19mb" min:"7mb" max:"1gb" multiple:"1mb"`
	Passes int   `toml:"password.passes" default:"2" min:"1" max:"64"`
	// MaxMemory limits what verifying a hash may need, also one of other software. All hashing
	// together needs at most password.parallel times that.
	MaxMemory int64 `toml:"password.max_memory" unit:"size" default:"128mb" min:"7mb" max:"4gb" multiple:"1mb"`
}

// Validate reports parameters of new hashes that Parse would refuse. Those of Memory alone are limited
// by MaxMemory.
func (o Options) Validate() error {
	if _, seconds := o.current().needs(); seconds > maxSeconds {
		return fault.New(fault.Invalid,
			"[password] memory and passes: a hash would take about %.0f seconds of a processor, and could not be verified; the limit is %d: lower one of them",
			seconds, maxSeconds)
	}
	return nil
}

const (
	saltBytes = 16
	sumBytes  = 32
	lanes     = 1
)

// current are the parameters of new hashes.
func (o Options) current() argon2Hash {
	return argon2Hash{id: true, memory: uint32(o.Memory >> 10), passes: uint32(o.Passes), lanes: lanes}
}

// Hash returns the hash of a password with a new salt, as a PHC string.
func (o Options) Hash(password string) string {
	h := o.current()
	h.salt = make([]byte, saltBytes)
	rand.Read(h.salt) // never fails
	sum := argon2.IDKey([]byte(password), h.salt, h.passes, h.memory, h.lanes, sumBytes)
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.passes, h.lanes,
		b64.EncodeToString(h.salt), b64.EncodeToString(sum))
}

// Verdict is what Verify finds out.
type Verdict struct {
	// Valid: the hash is that of the password.
	Valid bool `json:"valid"`
	// Rehash: it is valid, and Hash would now use another algorithm or other parameters. Store
	// a new hash.
	Rehash bool `json:"rehash"`
}

// Hashed is a hash that was read, and is within the limits.
type Hashed struct {
	hash
	current bool // it has the algorithm and the parameters of new ones
}

// Parse reads a hash. The error is fault.Invalid for one that is malformed or of an unknown
// kind, and fault.TooLarge for one that needs more than the limits. It never contains a part
// of the hash.
func (o Options) Parse(text string) (*Hashed, error) {
	h, err := parse(text)
	if err != nil {
		return nil, err
	}
	if err := o.check(h, "verifying this hash"); err != nil {
		return nil, err
	}
	a, ok := h.(argon2Hash)
	return &Hashed{h, ok && a.like(o.current())}, nil
}

// check returns a fault.TooLarge if computing a hash needs more than the limits. what is the beginning of its message.
func (o Options) check(h hash, what string) error {
	memory, seconds := h.needs()
	if memory > o.MaxMemory {
		return fault.New(fault.TooLarge, "%s needs %s of memory; the limit is the %s of [password] max_memory: raise it",
			what, settings.FormatSize((memory+1<<20-1)>>20<<20), settings.FormatSize(o.MaxMemory))
	}
	if seconds > maxSeconds {
		return fault.New(fault.TooLarge, "%s would take about %.0f seconds of a processor; the limit is %d", what, seconds, maxSeconds)
	}
	return nil
}

// Scrypt returns a function that derives a key of length bytes from a password, with scrypt (RFC 7914) and its
// parameters N, r and p. The errors are those of Parse. The function is not interrupted.
func (o Options) Scrypt(salt []byte, n, r, p int64, length int) (func(password []byte) ([]byte, error), error) {
	h := scryptHash{salt: salt, sum: make([]byte, length)}
	if err := h.setCosts(n, r, p); err != nil {
		return nil, fault.New(fault.Invalid, "%v", err)
	}
	if err := o.check(h, "this key"); err != nil {
		return nil, err
	}
	return h.derive, nil
}

// maxSeconds is roughly the most time of a processor that verifying a hash may take.
const maxSeconds = 4

// Unknown stands for the hash of a user who does not exist: verifying it takes as long as
// verifying a new hash, and no password is valid.
func (o Options) Unknown() *Hashed {
	h := o.current()
	h.salt, h.sum = make([]byte, saltBytes), nil // of no password
	return &Hashed{h, true}
}

// Verify compares a password with the hash. m counts the work where it can be interrupted, and
// its error is the only one.
func (h *Hashed) Verify(password string, m *cost.Meter) (Verdict, error) {
	valid, err := h.matches([]byte(password), m)
	if err != nil {
		return Verdict{}, err
	}
	return Verdict{Valid: valid, Rehash: valid && !h.current}, nil
}

func equal(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }
