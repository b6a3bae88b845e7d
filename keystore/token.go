package keystore

import (
	"crypto/rand"
	"hash/crc32"

	"runner.example/internal/secret"
)

// A token is
//
//	<prefix>_<30 random characters><6 characters of their CRC-32>
//
// with base62 characters after the underscore. 62^30 is 178 bits.
const (
	alphabet    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	randomLen   = 30
	checksumLen = 6
	minPrefix   = 2
	maxPrefix   = 8
	maxTokenLen = maxPrefix + 1 + randomLen + checksumLen
)

// NewToken returns a new token with the given prefix: 2-8 lower-case letters or digits,
// the first a letter. With any other prefix ValidToken refuses it.
func NewToken(prefix string) secret.Token {
	token := make([]byte, 0, maxTokenLen)
	token = append(token, prefix...)
	token = append(token, '_')
	token = appendRandom(token, randomLen)
	sum := checksum(token[len(token)-randomLen:])
	return secret.NewToken(string(append(token, sum[:]...)))
}

// appendRandom appends n characters of the alphabet, all equally likely: 248 is the largest
// multiple of 62 in a byte, and bytes from there on are discarded.
func appendRandom(dst []byte, n int) []byte {
	var pool [2 * randomLen]byte
	for {
		rand.Read(pool[:]) // never fails: the process ends when there is no randomness
		for _, b := range pool {
			if n == 0 {
				return dst
			}
			if b < 248 {
				dst = append(dst, alphabet[b%62])
				n--
			}
		}
	}
}

// ValidToken reports whether b has the form of a token and the right checksum. It says
// nothing about whether a key has that token.
func ValidToken(b []byte) bool {
	prefix := len(b) - 1 - randomLen - checksumLen
	if prefix < minPrefix || prefix > maxPrefix || b[prefix] != '_' {
		return false
	}
	for i, c := range b[:prefix] {
		letter, digit := 'a' <= c && c <= 'z', '0' <= c && c <= '9'
		if !letter && (!digit || i == 0) {
			return false
		}
	}
	random, sum := b[prefix+1:prefix+1+randomLen], b[prefix+1+randomLen:]
	for _, c := range random {
		if !('0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z') {
			return false
		}
	}
	return checksum(random) == [checksumLen]byte(sum)
}

// holdsToken reports whether text contains a token.
func holdsToken(text string) bool {
	const tail = 1 + randomLen + checksumLen
	for i := range len(text) - tail + 1 {
		if text[i] != '_' {
			continue
		}
		for prefix := minPrefix; prefix <= min(maxPrefix, i); prefix++ {
			if ValidToken([]byte(text[i-prefix : i+tail])) {
				return true
			}
		}
	}
	return false
}

// checksum returns the CRC-32 (IEEE) of the random characters in base62, with
// leading zeros.
func checksum(random []byte) (sum [checksumLen]byte) {
	crc := crc32.ChecksumIEEE(random)
	for i := checksumLen - 1; i >= 0; i-- {
		sum[i] = alphabet[crc%62]
		crc /= 62
	}
	return sum
}
