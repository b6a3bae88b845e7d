package webcrypto

import (
	"crypto/cipher"
	"crypto/subtle"
	"slices"

	"runner.example/internal/cost"
)

// gcm is GCM (SP 800-38D).
func (a *algorithm) gcm(block cipher.Block, data []byte, encrypts bool, m *cost.Meter) ([]byte, error) {
	const fullTag = 128
	tag, more := fullTag, []byte{}
	if a.TagLength != nil {
		tag = *a.TagLength
	}
	if a.AdditionalData != nil {
		more = *a.AdditionalData
	}
	switch {
	case a.IV == nil:
		return nil, missing("algorithm.iv")
	case len(*a.IV) == 0:
		return nil, fail(operation, "the iv must not be empty")
	case !slices.Contains([]int{32, 64, 96, 104, 112, 120, 128}, tag):
		return nil, fail(operation, "the tagLength must be 32, 64, 96, 104, 112, 120 or 128")
	case !encrypts && len(data) < tag/8:
		return nil, notEncrypted()
	}
	if err := m.Spend(len(more) + len(*a.IV)); err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithNonceSize(block, len(*a.IV))
	if err != nil {
		return nil, failed(err)
	}
	if encrypts {
		sealed := aead.Seal(nil, *a.IV, data, more)
		return sealed[:len(data)+tag/8], nil
	}
	if tag == fullTag {
		plain, err := aead.Open(nil, *a.IV, data, more)
		if err != nil {
			return nil, notEncrypted()
		}
		return plain, nil
	}
	if err := m.Spend(4 * len(data)); err != nil {
		return nil, err
	}
	return openShort(aead, *a.IV, data, more, tag/8)
}

// openShort decrypts data with a tag that is shorter than Go's standard library opens. The key stream is the
// same for encryption and decryption, so encrypting the ciphertext gives the text, and encrypting that gives
// the full tag.
func openShort(aead cipher.AEAD, iv, data, more []byte, tag int) ([]byte, error) {
	body, given := data[:len(data)-tag], data[len(data)-tag:]
	plain := aead.Seal(nil, iv, body, nil)[:len(body)]
	sealed := aead.Seal(nil, iv, plain, more)
	if subtle.ConstantTimeCompare(sealed[len(body):len(body)+tag], given) != 1 {
		return nil, notEncrypted()
	}
	return plain, nil
}
