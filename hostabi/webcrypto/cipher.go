package webcrypto

import (
	"crypto/aes"
	"crypto/cipher"
	"slices"

	"runner.example/hostabi/octets"
	"runner.example/internal/cost"
)

type cipherArgs struct {
	Algorithm *algorithm    `json:"algorithm"`
	Key       *key          `json:"key"`
	Data      *octets.Bytes `json:"data"`
}

func encrypt(args *cipherArgs, m *cost.Meter) (any, error) {
	gcm, err := args.gcm(m)
	if err != nil {
		return nil, err
	}
	return octets.Bytes(gcm.Seal(nil, *args.Algorithm.IV, *args.Data, *args.Algorithm.AdditionalData)), nil
}

func decrypt(args *cipherArgs, m *cost.Meter) (any, error) {
	gcm, err := args.gcm(m)
	if err != nil {
		return nil, err
	}
	plain, err := gcm.Open(nil, *args.Algorithm.IV, *args.Data, *args.Algorithm.AdditionalData)
	if err != nil { // which says nothing more, on purpose
		return nil, fail(operation, "the data is not what was encrypted with this key, iv and additionalData")
	}
	return octets.Bytes(plain), nil
}

// gcm checks the arguments, and fills additionalData in.
func (args *cipherArgs) gcm(m *cost.Meter) (cipher.AEAD, error) {
	a := args.Algorithm
	if err := a.isOf("to encrypt with", algGCM); err != nil {
		return nil, err
	}
	switch {
	case args.Data == nil:
		return nil, missing("data")
	case a.IV == nil:
		return nil, missing("algorithm.iv")
	case len(*a.IV) == 0:
		return nil, fail(operation, "the iv must not be empty")
	}
	if a.AdditionalData == nil {
		a.AdditionalData = &octets.Bytes{}
	}
	secret, err := args.Key.secret(a)
	if err != nil {
		return nil, err
	}
	if err := m.Spend(len(*args.Data) + len(*a.AdditionalData) + len(*a.IV)); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, fail(dataError, "a key of AES must have 128, 192 or 256 bits, not %d", 8*len(secret))
	}
	const usualIV, usualTag = 12, 128
	tag := usualTag
	if a.TagLength != nil {
		tag = *a.TagLength
	}
	switch {
	case !slices.Contains([]int{32, 64, 96, 104, 112, 120, 128}, tag):
		return nil, fail(operation, "the tagLength must be 96, 104, 112, 120 or 128")
	case tag < 96:
		return nil, fail(notSupported, "a tag of %d bits is too short to be safe: the tagLength must be 96 or more", tag)
	case tag == usualTag:
		return cipher.NewGCMWithNonceSize(block, len(*a.IV))
	case len(*a.IV) != usualIV:
		return nil, fail(notSupported, "with a tagLength below 128 the iv must have 12 bytes")
	}
	return cipher.NewGCMWithTagSize(block, tag/8)
}
