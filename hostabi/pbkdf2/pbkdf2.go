package pbkdf2

import (
	"crypto/hmac"
	"crypto/subtle"
	"encoding/binary"
	"hash"

	"runner.example/internal/cost"
)

// iterationUnits is the cost of one HMAC of a short text, and byteUnits that of a byte of a long
// one, in units of a cost.Meter.
const (
	iterationUnits = 256
	byteUnits      = 2
)

// Key derives length bytes. The only error is that of the meter.
func Key(newHash func() hash.Hash, password, salt []byte, iterations, length int, m *cost.Meter) ([]byte, error) {
	prf := hmac.New(newHash, password)
	size := prf.Size()
	out := make([]byte, 0, (length+size-1)/size*size)
	u := make([]byte, 0, size)
	for block := uint32(1); len(out) < length; block++ {
		if err := m.Spend(iterationUnits + byteUnits*len(salt)); err != nil {
			return nil, err
		}
		prf.Reset()
		prf.Write(salt)
		prf.Write(binary.BigEndian.AppendUint32(nil, block))
		out = prf.Sum(out)
		sum := out[len(out)-size:]
		u = append(u[:0], sum...)
		for range iterations - 1 {
			if err := m.Spend(iterationUnits); err != nil {
				return nil, err
			}
			prf.Reset()
			prf.Write(u)
			u = prf.Sum(u[:0])
			subtle.XORBytes(sum, sum, u)
		}
	}
	return out[:length], nil
}
