package password

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	stdhash "hash"
	"strconv"
	"strings"

	"golang.org/x/crypto/argon2"

	"runner.example/internal/fault"
)

// Limits of a hash. A shorter sum would be found by chance.
const (
	maxTextBytes = 1024
	minSumBytes  = 16
	maxSumBytes  = 128
	maxSaltBytes = 256
	maxLanes     = 16
)

// known says which hashes parse reads.
const known = "Argon2id, Argon2i, bcrypt, scrypt and PBKDF2 are known, as PHC strings and as Django, passlib and Werkzeug write them"

func malformed(kind, what string) error {
	return fault.New(fault.Invalid, `member "hash" is not a valid hash of %s: %s`, kind, what)
}

// parse reads a hash. Its parameters are what the algorithm permits, and may be huge.
func parse(text string) (hash, error) {
	if len(text) > maxTextBytes {
		return nil, fault.New(fault.Invalid, `member "hash" is longer than %d bytes`, maxTextBytes)
	}
	rest, django := strings.CutPrefix(text, "argon2$")
	if django {
		text = "$" + rest
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(text, "$"), "$")
	switch {
	case strings.HasPrefix(text, "$argon2"):
		return parseArgon2(strings.Split(text[1:], "$"))
	case strings.HasPrefix(text, "$2"):
		return parseBcrypt(text, false)
	case strings.HasPrefix(text, "bcrypt$"):
		return parseBcrypt(strings.TrimPrefix(text, "bcrypt$"), false)
	case strings.HasPrefix(text, "bcrypt_sha256$"):
		return parseBcrypt(strings.TrimPrefix(text, "bcrypt_sha256$"), true)
	case strings.HasPrefix(text, "$scrypt$"), strings.HasPrefix(text, "scrypt$"), strings.HasPrefix(text, "scrypt:"):
		return parseScrypt(text)
	case strings.HasPrefix(name, "pbkdf2"):
		return parsePBKDF2(text)
	}
	return nil, fault.New(fault.Invalid, `member "hash" is not a hash of a known kind: %s`, known)
}

// parseArgon2 reads argon2id, v=19, m=…,t=…,p=…, salt, sum.
func parseArgon2(parts []string) (hash, error) {
	const kind = "Argon2"
	switch {
	case parts[0] == "argon2d":
		return nil, malformed(kind, "argon2d is not for passwords; argon2id and argon2i are known")
	case parts[0] != "argon2id" && parts[0] != "argon2i":
		return nil, malformed(kind, "argon2id and argon2i are known")
	case len(parts) != 5:
		return nil, malformed(kind, "the form is $argon2id$v=19$m=…,t=…,p=…$salt$hash")
	case parts[1] != "v="+strconv.Itoa(argon2.Version):
		return nil, malformed(kind, "the version must be v=19")
	}
	n, err := numbers(parts[2], "m", "t", "p")
	if err != nil {
		return nil, malformed(kind, err.Error())
	}
	h := argon2Hash{id: parts[0] == "argon2id", memory: uint32(n[0]), passes: uint32(n[1]), lanes: uint8(n[2])}
	switch {
	case n[2] < 1 || n[2] > maxLanes:
		return nil, malformed(kind, "p must be 1 to 16")
	case n[1] < 1:
		return nil, malformed(kind, "t must be 1 or more")
	case n[0] < 8*n[2]:
		return nil, malformed(kind, "m must be at least 8 times p")
	}
	if h.salt, h.sum, err = saltAndSum(base64.RawStdEncoding, parts[3], parts[4]); err != nil {
		return nil, malformed(kind, err.Error())
	}
	if len(h.salt) < 8 { // RFC 9106, section 3.1
		return nil, malformed(kind, "the salt must have at least 8 bytes")
	}
	return h, nil
}

// parseBcrypt reads $2b$12$, 22 characters of salt and 31 of the sum.
func parseBcrypt(text string, hashed bool) (hash, error) {
	const kind, alphabet = "bcrypt", "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	if len(text) != 60 || text[0] != '$' || text[1] != '2' || text[3] != '$' || text[6] != '$' {
		return nil, malformed(kind, "the form is $2b$12$ and 53 characters")
	}
	if minor := text[2]; minor != 'a' && minor != 'b' && minor != 'y' {
		return nil, malformed(kind, "$2a$, $2b$ and $2y$ are known")
	}
	cost, err := strconv.ParseUint(text[4:6], 10, 8)
	if err != nil || cost < 4 || cost > 31 {
		return nil, malformed(kind, "the cost must be 04 to 31")
	}
	if strings.Trim(text[7:], alphabet) != "" {
		return nil, malformed(kind, "the 53 characters must be of its base64")
	}
	return bcryptHash{text: text, cost: int(cost), hashed: hashed}, nil
}

// parseScrypt reads $scrypt$ln=…,r=…,p=…$salt$sum, scrypt$N$salt$r$p$sum and
// scrypt:N:r:p$salt$sum.
func parseScrypt(text string) (hash, error) {
	const kind = "scrypt"
	var h scryptHash
	var n []uint64
	var err error
	switch parts := strings.Split(text, "$"); {
	case parts[0] == "" && len(parts) == 5:
		if n, err = numbers(parts[2], "ln", "r", "p"); err != nil {
			return nil, malformed(kind, err.Error())
		}
		if n[0] > 32 {
			return nil, malformed(kind, "ln must be 1 to 32")
		}
		n[0] = 1 << n[0]
		h.salt, h.sum, err = saltAndSum(base64.RawStdEncoding, parts[3], parts[4])
	case parts[0] == "scrypt" && len(parts) == 6:
		if n, err = plainNumbers(parts[1], parts[3], parts[4]); err != nil {
			return nil, malformed(kind, err.Error())
		}
		h.salt, h.sum, err = saltAndSum(base64.StdEncoding, "", parts[5])
		h.salt = []byte(parts[2])
	case strings.HasPrefix(parts[0], "scrypt:") && len(parts) == 3:
		if n, err = plainNumbers(strings.Split(parts[0], ":")[1:]...); err == nil && len(n) != 3 {
			err = errors.New("there must be N, r and p")
		}
		if err != nil {
			return nil, malformed(kind, err.Error())
		}
		h.salt = []byte(parts[1])
		h.sum, err = hexSum(parts[2])
	default:
		return nil, malformed(kind,
			"the form is $scrypt$ln=…,r=…,p=…$salt$hash, scrypt$N$salt$r$p$hash or scrypt:N:r:p$salt$hash")
	}
	if err != nil {
		return nil, malformed(kind, err.Error())
	}
	const most = 1 << 40 // of what an int64 has without a sign
	if err := h.setCosts(int64(min(n[0], most)), int64(min(n[1], most)), int64(min(n[2], most))); err != nil {
		return nil, malformed(kind, err.Error())
	}
	return h, checkSalt(kind, h.salt)
}

// digests are the hash functions of PBKDF2, by their names in hashes.
var digests = map[string]func() stdhash.Hash{
	"": sha1.New, "sha1": sha1.New, "sha224": sha256.New224, "sha256": sha256.New,
	"sha384": sha512.New384, "sha512": sha512.New,
}

// parsePBKDF2 reads $pbkdf2-sha256$i=…$salt$sum, $pbkdf2-sha256$…$salt$sum,
// pbkdf2_sha256$…$salt$sum and pbkdf2:sha256:…$salt$sum.
func parsePBKDF2(text string) (hash, error) {
	const kind = "PBKDF2"
	var h pbkdf2Hash
	var digest, iterations string
	var err error
	switch parts := strings.Split(text, "$"); {
	case parts[0] == "" && len(parts) == 5:
		digest = strings.TrimPrefix(strings.TrimPrefix(parts[1], "pbkdf2"), "-")
		var phc bool
		if iterations, phc = strings.CutPrefix(parts[2], "i="); phc {
			iterations, _, _ = strings.Cut(iterations, ",l=") // the length of the sum, which shows it too
			h.salt, h.sum, err = saltAndSum(base64.RawStdEncoding, parts[3], parts[4])
		} else {
			plus := func(text string) string { return strings.ReplaceAll(text, ".", "+") } // passlib's alphabet
			h.salt, h.sum, err = saltAndSum(base64.RawStdEncoding, plus(parts[3]), plus(parts[4]))
		}
	case strings.HasPrefix(parts[0], "pbkdf2_") && len(parts) == 4:
		digest, iterations = strings.TrimPrefix(parts[0], "pbkdf2_"), parts[1]
		_, h.sum, err = saltAndSum(base64.StdEncoding, "", parts[3])
		h.salt = []byte(parts[2])
	case strings.HasPrefix(parts[0], "pbkdf2:") && len(parts) == 3:
		var ok bool
		if digest, iterations, ok = strings.Cut(strings.TrimPrefix(parts[0], "pbkdf2:"), ":"); !ok {
			return nil, malformed(kind, "there must be a digest and the iterations")
		}
		h.salt = []byte(parts[1])
		h.sum, err = hexSum(parts[2])
	default:
		return nil, malformed(kind,
			"the form is $pbkdf2-sha256$i=…$salt$hash, $pbkdf2-sha256$…$salt$hash, pbkdf2_sha256$…$salt$hash or pbkdf2:sha256:…$salt$hash")
	}
	if err != nil {
		return nil, malformed(kind, err.Error())
	}
	if h.newHash = digests[digest]; h.newHash == nil {
		return nil, malformed(kind, "the digest must be sha1, sha224, sha256, sha384 or sha512")
	}
	n, err := plainNumbers(iterations)
	if err != nil || n[0] < 1 {
		return nil, malformed(kind, "the iterations must be a whole number from 1 on")
	}
	h.iterations = int(n[0])
	return h, checkSalt(kind, h.salt)
}

func checkSalt(kind string, salt []byte) error {
	if len(salt) == 0 || len(salt) > maxSaltBytes {
		return malformed(kind, "the salt must have 1 to 256 bytes")
	}
	return nil
}

// numbers reads "a=1,b=2" with the members in this order.
func numbers(text string, names ...string) ([]uint64, error) {
	parts := strings.Split(text, ",")
	if len(parts) != len(names) {
		return nil, errors.New("the parameters must be " + strings.Join(names, "=…,") + "=…")
	}
	for i, name := range names {
		value, ok := strings.CutPrefix(parts[i], name+"=")
		if !ok {
			return nil, errors.New("the parameters must be " + strings.Join(names, "=…,") + "=…")
		}
		parts[i] = value
	}
	return plainNumbers(parts...)
}

// plainNumbers reads decimal numbers below 2^32 without leading zeros.
func plainNumbers(texts ...string) ([]uint64, error) {
	values := make([]uint64, len(texts))
	for i, text := range texts {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || strconv.FormatUint(n, 10) != text {
			return nil, errors.New("a parameter is not a whole number")
		}
		values[i] = n
	}
	return values, nil
}

func saltAndSum(encoding *base64.Encoding, salt, sum string) (s, h []byte, err error) {
	if strings.ContainsAny(salt+sum, "\r\n") { // which the decoder would skip
		return nil, nil, errors.New("salt and hash must be base64")
	}
	s, err1 := encoding.Strict().DecodeString(salt)
	h, err2 := encoding.Strict().DecodeString(sum)
	if err1 != nil || err2 != nil {
		return nil, nil, errors.New("salt and hash must be base64")
	}
	if len(s) > maxSaltBytes {
		return nil, nil, errors.New("the salt must have at most 256 bytes")
	}
	return s, h, checkSum(h)
}

func hexSum(text string) ([]byte, error) {
	sum, err := hex.DecodeString(text)
	if err != nil {
		return nil, errors.New("the hash must be hexadecimal")
	}
	return sum, checkSum(sum)
}

func checkSum(sum []byte) error {
	if len(sum) < minSumBytes || len(sum) > maxSumBytes {
		return errors.New("the hash must have 16 to 128 bytes")
	}
	return nil
}
