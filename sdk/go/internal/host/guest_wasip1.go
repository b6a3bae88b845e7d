//go:build wasip1

package host

import (
	"encoding/binary"
	"unsafe"

	"runner.example/sdk/go/internal/codec"
)

// Guest is the host of a module that the runner runs.
type Guest struct{}

// Method implements Host.
func (Guest) Method() string { s, _ := text(requestMethod); return s }

// Path implements Host.
func (Guest) Path() string { s, _ := text(requestPath); return s }

// Lookup implements Host.
func (Guest) Lookup(kind Kind, name string) (string, bool) {
	return text(func(buf unsafe.Pointer, capacity uint32) int32 {
		switch kind {
		case Param:
			return requestParam(name, buf, capacity)
		case Query:
			return requestQuery(name, buf, capacity)
		default:
			return requestHeader(name, buf, capacity)
		}
	})
}

// Pairs implements Host. Per pair the host writes two little-endian lengths
// and then both texts.
func (Guest) Pairs(kind Kind) []Pair {
	b := whole(func(buf unsafe.Pointer, capacity uint32) int32 { return requestPairs(uint32(kind), buf, capacity) })
	var pairs []Pair
	for len(b) >= 8 {
		name, value := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		b = b[8:]
		pairs = append(pairs, Pair{Name: string(b[:name]), Value: string(b[name : name+value])})
		b = b[name+value:]
	}
	return pairs
}

// Body implements Host.
func (Guest) Body() []byte {
	body, _ := pieces(requestBody)
	return body
}

// Read implements Host.
func (Guest) Read(buf []byte) (int, error) {
	n := requestRead(unsafe.Pointer(unsafe.SliceData(buf)), uint32(len(buf)))
	return int(n), errnoError(n)
}

// Context implements Host.
func (Guest) Context() []byte { return whole(context) }

// SetHeader implements Host.
func (Guest) SetHeader(name, value string) error { return errnoError(responseHeader(name, value)) }

// Send implements Host.
func (Guest) Send(status int, body []byte) error {
	return errnoError(responseSend(uint32(status), unsafe.Pointer(unsafe.SliceData(body)), uint32(len(body))))
}

// SendError implements Host.
func (Guest) SendError(status int, code, message string) error {
	return errnoError(responseError(uint32(status), code, message))
}

// Call implements Host.
func (Guest) Call(op string, args []byte) error {
	return callError(call(op, unsafe.Pointer(unsafe.SliceData(args)), uint32(len(args))))
}

// Start implements Host.
func (Guest) Start(op string, args []byte) (int, error) {
	n := callStart(op, unsafe.Pointer(unsafe.SliceData(args)), uint32(len(args)))
	return int(n), callError(n)
}

// Take implements Host.
func (Guest) Take(ticket int) error { return callError(callTake(uint32(ticket))) }

// callError is what a function of operations says when it returned n.
func callError(n int32) error {
	if n >= 0 {
		return nil
	}
	var e Error
	text, _ := pieces(callResult)
	if codec.Unmarshal(text, &e) != nil || e.Code == "" {
		return errnoError(n)
	}
	return &e
}

// Result implements Host.
func (Guest) Result() ([]byte, error) {
	text, n := pieces(callResult)
	return text, callError(n)
}

// SendResult implements Host.
func (Guest) SendResult(status int, part Part) error {
	return errnoError(responseSendResult(uint32(status), uint32(part)))
}

// Begin implements Host.
func (Guest) Begin(status int) error { return errnoError(responseBegin(uint32(status))) }

// Write implements Host.
func (Guest) Write(part []byte) error {
	return errnoError(responseWrite(unsafe.Pointer(unsafe.SliceData(part)), uint32(len(part))))
}

// KeepWrites implements Host.
func (Guest) KeepWrites() { keepWrites() }

// Log implements Host.
func (Guest) Log(level int, text string) { log(uint32(level), text) }

// text reads a value that the host gives whole; false when it is absent.
func text(read func(buf unsafe.Pointer, capacity uint32) int32) (string, bool) {
	var small [256]byte
	n := read(unsafe.Pointer(&small), uint32(len(small)))
	switch {
	case n < 0:
		return "", false
	case int(n) <= len(small):
		return string(small[:n]), true
	}
	big := make([]byte, n)
	if read(unsafe.Pointer(unsafe.SliceData(big)), uint32(n)) < 0 {
		return "", false
	}
	return unsafe.String(unsafe.SliceData(big), len(big)), true
}

// whole is text for bytes that are usually long.
func whole(read func(buf unsafe.Pointer, capacity uint32) int32) []byte {
	buf := make([]byte, 512)
	n := read(unsafe.Pointer(unsafe.SliceData(buf)), uint32(len(buf)))
	if n < 0 {
		return nil
	}
	if int(n) > len(buf) {
		buf = make([]byte, n)
		if read(unsafe.Pointer(unsafe.SliceData(buf)), uint32(n)) < 0 {
			return nil
		}
	}
	return buf[:n]
}

// pieces reads a value that the host gives from an offset: the answer is the
// rest from there, so a call with an empty buffer returns the length. It also returns the
// length, or the errno of the host.
func pieces(read func(offset uint32, buf unsafe.Pointer, capacity uint32) int32) ([]byte, int32) {
	n := read(0, nil, 0)
	if n <= 0 {
		return nil, n
	}
	buf := codec.Padded(int(n))
	if n = read(0, unsafe.Pointer(unsafe.SliceData(buf)), uint32(n)); n < 0 {
		return nil, n
	}
	return buf, n
}

func errnoError(n int32) error {
	if n >= 0 {
		return nil
	}
	return &Error{Code: errnoName(n)}
}
