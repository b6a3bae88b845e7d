package webcrypto

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"

	"runner.example/internal/cost"
)

const (
	wrapBlock = 8    // the size of a block of AES-KW, in bytes
	wrapSteps = 6    // steps for each block
	wrapUnits = 32   // the cost of a step
	wrapEvery = 1024 // steps that are counted at a time
)

// wrapIV is the initial value (RFC 3394, section 2.2.3.1).
var wrapIV = []byte{0xa6, 0xa6, 0xa6, 0xa6, 0xa6, 0xa6, 0xa6, 0xa6}

// keyWrap wraps or unwraps a key (RFC 3394, sections 2.2.1 and 2.2.2).
func keyWrap(block cipher.Block, data []byte, wraps bool, m *cost.Meter) ([]byte, error) {
	blocks := len(data) / wrapBlock
	if !wraps {
		blocks--
	}
	if len(data)%wrapBlock != 0 || blocks < 2 {
		if wraps {
			return nil, fail(operation, "AES-KW can only wrap a multiple of 8 bytes, at least 16, not %d", len(data))
		}
		return nil, notEncrypted()
	}
	if wraps {
		return wrapped(block, data, m)
	}
	return unwrapped(block, data, m)
}

func wrapped(block cipher.Block, plain []byte, m *cost.Meter) ([]byte, error) {
	out := append(make([]byte, wrapBlock, wrapBlock+len(plain)), plain...)
	var b [aes.BlockSize]byte
	copy(b[:], wrapIV)
	for t := range uint64(wrapSteps * len(plain) / wrapBlock) {
		r := out[wrapBlock*(1+int(t)%(len(plain)/wrapBlock)):][:wrapBlock]
		copy(b[wrapBlock:], r)
		block.Encrypt(b[:], b[:])
		if err := step(&b, t+1, m); err != nil {
			return nil, err
		}
		copy(r, b[wrapBlock:])
	}
	copy(out, b[:wrapBlock])
	return out, nil
}

func unwrapped(block cipher.Block, data []byte, m *cost.Meter) ([]byte, error) {
	out := append([]byte(nil), data[wrapBlock:]...)
	var b [aes.BlockSize]byte
	copy(b[:], data[:wrapBlock])
	for t := uint64(wrapSteps * len(out) / wrapBlock); t > 0; t-- {
		r := out[wrapBlock*(int(t-1)%(len(out)/wrapBlock)):][:wrapBlock]
		copy(b[wrapBlock:], r)
		if err := step(&b, t, m); err != nil {
			return nil, err
		}
		block.Decrypt(b[:], b[:])
		copy(r, b[wrapBlock:])
	}
	if subtle.ConstantTimeCompare(b[:wrapBlock], wrapIV) != 1 {
		return nil, notEncrypted()
	}
	return out, nil
}

// step adds the number of a step to the first half of a block. The error is one of the meter.
func step(b *[aes.BlockSize]byte, t uint64, m *cost.Meter) error {
	binary.BigEndian.PutUint64(b[:], binary.BigEndian.Uint64(b[:])^t)
	if t%wrapEvery != 0 {
		return nil
	}
	return m.Spend(wrapEvery * wrapUnits)
}
