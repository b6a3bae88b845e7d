package webcrypto

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/subtle"
	"math/big"

	"runner.example/hostabi/octets"
	"runner.example/internal/cost"
)

type cipherArgs struct {
	Algorithm *algorithm    `json:"algorithm"`
	Key       *key          `json:"key"`
	Data      *octets.Bytes `json:"data"`
}

func encrypt(args *cipherArgs, m *cost.Meter) (any, error) { return args.run(true, m) }
func decrypt(args *cipherArgs, m *cost.Meter) (any, error) { return args.run(false, m) }

func (args *cipherArgs) run(encrypts bool, m *cost.Meter) (any, error) {
	a := args.Algorithm
	if err := a.checkOneOf("to encrypt with", algCBC, algCTR, algGCM, algKW, algOAEP); err != nil {
		return nil, err
	}
	if args.Data == nil {
		return nil, missing("data")
	}
	var out []byte
	var err error
	if a.Name == algOAEP {
		out, err = args.oaep(encrypts, m)
	} else {
		out, err = args.aes(encrypts, m)
	}
	if err != nil {
		return nil, err
	}
	return octets.Bytes(out), nil
}

func (args *cipherArgs) aes(encrypts bool, m *cost.Meter) ([]byte, error) {
	a, data := args.Algorithm, *args.Data
	secret, err := args.Key.secret(a)
	if err != nil {
		return nil, err
	}
	if err := m.Spend(2 * len(data)); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, fail(dataError, "a key of AES must have 128, 192 or 256 bits, not %d", 8*len(secret))
	}
	switch a.Name {
	case algCBC:
		return a.cbc(block, data, encrypts)
	case algCTR:
		return a.ctr(block, data)
	case algKW:
		return keyWrap(block, data, encrypts, m)
	}
	return a.gcm(block, data, encrypts, m)
}

// notEncrypted is the error of data that cannot be decrypted. It gives no reason, because reasons help attackers.
func notEncrypted() error {
	return fail(operation, "the data is not what was encrypted with this key and algorithm")
}

// oaep is RSAES-OAEP (RFC 8017, section 7.1). Its hash is that of the key.
func (args *cipherArgs) oaep(encrypts bool, m *cost.Meter) ([]byte, error) {
	a, kind := args.Algorithm, privateKey
	if encrypts {
		kind = publicKey
	}
	pair, err := args.Key.pair(a, kind, m)
	if err != nil {
		return nil, err
	}
	h, err := args.Key.Algorithm.hash()
	if err != nil {
		return nil, err
	}
	var label []byte
	if a.Label != nil {
		label = *a.Label
	}
	if err := m.Spend(hashUnits * len(label)); err != nil {
		return nil, err
	}
	if !encrypts {
		plain, err := rsa.DecryptOAEP(h.New(), nil, pair.(*rsa.PrivateKey), *args.Data, label)
		if err != nil {
			return nil, notEncrypted()
		}
		return plain, nil
	}
	out, err := rsa.EncryptOAEP(h.New(), rand.Reader, pair.(*rsa.PublicKey), *args.Data, label)
	if err != nil {
		return nil, failed(err)
	}
	return out, nil
}

// cbc is CBC with the padding of PKCS #7 (RFC 2315, section 10.3).
func (a *algorithm) cbc(block cipher.Block, data []byte, encrypts bool) ([]byte, error) {
	switch {
	case a.IV == nil:
		return nil, missing("algorithm.iv")
	case len(*a.IV) != aes.BlockSize:
		return nil, fail(operation, "the iv must have 16 bytes, not %d", len(*a.IV))
	}
	if encrypts {
		padding := aes.BlockSize - len(data)%aes.BlockSize
		out := make([]byte, len(data)+padding)
		for i := copy(out, data); i < len(out); i++ {
			out[i] = byte(padding)
		}
		cipher.NewCBCEncrypter(block, *a.IV).CryptBlocks(out, out)
		return out, nil
	}
	if len(data) == 0 || len(data)%aes.BlockSize != 0 {
		return nil, notEncrypted()
	}
	out := make([]byte, len(data))
	cipher.NewCBCDecrypter(block, *a.IV).CryptBlocks(out, data)
	padding, ok := paddingOf(out[len(out)-aes.BlockSize:])
	if ok != 1 {
		return nil, notEncrypted()
	}
	return out[:len(out)-padding], nil
}

// paddingOf returns the length of the padding of the last block, and 1 if it is valid, in constant time.
func paddingOf(last []byte) (padding, ok int) {
	p := last[len(last)-1]
	padding = int(p)
	ok = subtle.ConstantTimeLessOrEq(1, padding) & subtle.ConstantTimeLessOrEq(padding, len(last))
	for i := range last {
		within := subtle.ConstantTimeLessOrEq(len(last)-i, padding)
		ok &= subtle.ConstantTimeSelect(within, subtle.ConstantTimeByteEq(last[i], p), 1)
	}
	return padding, ok
}

// ctr is CTR with a counter in the last bits of the block, which begins again at 0 after its last value
// (SP 800-38A, B.1).
func (a *algorithm) ctr(block cipher.Block, data []byte) ([]byte, error) {
	switch {
	case a.Counter == nil:
		return nil, missing("algorithm.counter")
	case a.Length == nil:
		return nil, missing("algorithm.length")
	case len(*a.Counter) != aes.BlockSize:
		return nil, fail(operation, "the counter must have 16 bytes, not %d", len(*a.Counter))
	case *a.Length < 1 || *a.Length > 128:
		return nil, fail(operation, "the length of the counter must be 1 to 128 bits, not %d", *a.Length)
	}
	values := new(big.Int).Lsh(big.NewInt(1), uint(*a.Length))
	blocks := big.NewInt(int64((len(data) + aes.BlockSize - 1) / aes.BlockSize))
	if blocks.Cmp(values) > 0 {
		return nil, fail(operation, "the data has more blocks than a counter of %d bits has values", *a.Length)
	}
	first := new(big.Int).SetBytes(*a.Counter)
	counter := new(big.Int).Mod(first, values)
	out := make([]byte, len(data))
	head := len(data)
	if left := new(big.Int).Sub(values, counter); left.Cmp(blocks) < 0 {
		head = aes.BlockSize * int(left.Int64())
		again := first.Sub(first, counter).FillBytes(make([]byte, aes.BlockSize))
		cipher.NewCTR(block, again).XORKeyStream(out[head:], data[head:])
	}
	cipher.NewCTR(block, *a.Counter).XORKeyStream(out[:head], data[:head])
	return out, nil
}
