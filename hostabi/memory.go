package hostabi

import (
	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi/abi"
)

// guest is the memory and the arguments of one host call, as i32 words in order.
type guest struct {
	memory memory
	words  []uint64
}

// memory is that of a guest, or the bytes of a message to the host's file.
type memory interface {
	Read(offset, bytes uint32) ([]byte, bool)
	ReadUint64Le(offset uint32) (uint64, bool)
	WriteUint32Le(offset, n uint32) bool
	WriteUint64Le(offset uint32, n uint64) bool
}

// tooLong is more than the length of any buffer.
const tooLong = 1 << 31

func (g guest) number(word int) int32 { return api.DecodeI32(g.words[word]) }

// bytes returns the memory that two words name. The slice is guest memory, valid until the
// host call returns. With the length 0 any pointer is valid.
func (g guest) bytes(word int) ([]byte, bool) {
	at, n := api.DecodeU32(g.words[word]), api.DecodeU32(g.words[word+1])
	if n == 0 {
		return nil, true
	}
	if n >= tooLong {
		return nil, false
	}
	return g.memory.Read(at, n)
}

// copyOut copies a value to the guest's buffer, if it fits, and returns its length.
func (c *Call) copyOut(buf, value []byte) int32 {
	if len(value) > len(buf) {
		return int32(len(value))
	}
	if !c.countMoved(len(value)) {
		return int32(abi.Limit)
	}
	c.copy(buf, value)
	return int32(len(value))
}

// maxCopy is how many bytes are copied between two checks of the meter.
const maxCopy = 256 << 10

// copy copies as much of value as fits in buf.
func (c *Call) copy(buf, value []byte) {
	n := min(len(buf), len(value))
	for ; n > maxCopy && c.work.Spend(maxCopy/4) == nil; n -= maxCopy {
		copy(buf, value[:maxCopy])
		buf, value = buf[maxCopy:], value[maxCopy:]
	}
	copy(buf[:min(n, maxCopy)], value)
}

// copyPiece copies value from offset on as far as it fits, and returns the length of value
// from offset on.
func (c *Call) copyPiece(buf, value []byte, offset int32) int32 {
	if offset < 0 {
		return int32(abi.Invalid)
	}
	rest := value[min(int(offset), len(value)):]
	if !c.countMoved(min(len(buf), len(rest))) {
		return int32(abi.Limit)
	}
	c.copy(buf, rest)
	return int32(len(rest))
}
