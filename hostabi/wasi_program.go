package hostabi

import (
	"bytes"
	"io"

	"github.com/tetratelabs/wazero/api"
)

// The functions of WASI that do more for commands. Other guests have no arguments and no
// variables, and their standard input is empty.

func argumentSizes(c *Call, g guest) uint32   { return stringSizes(g, c.program.args) }
func argumentStrings(c *Call, g guest) uint32 { return giveStrings(c, g, c.program.args) }

func environmentSizes(c *Call, g guest) uint32   { return stringSizes(g, c.program.env) }
func environmentStrings(c *Call, g guest) uint32 { return giveStrings(c, g, c.program.env) }

// stringSizes writes the number of strings and of their bytes.
func stringSizes(g guest, block []byte) uint32 {
	return errnoOf(g.put32(0, uint32(bytes.Count(block, []byte{0}))) && g.put32(1, uint32(len(block))))
}

// giveStrings writes the strings where the second word points, and the pointer to each of
// them where the first word points.
func giveStrings(c *Call, g guest, block []byte) uint32 {
	if len(block) == 0 {
		return wasiOK
	}
	list, at := api.DecodeU32(g.words[0]), api.DecodeU32(g.words[1])
	count := uint32(bytes.Count(block, []byte{0}))
	pointers, ok1 := g.memory.Read(list, 4*count)
	room, ok2 := g.memory.Read(at, uint32(len(block)))
	switch {
	case !ok1 || !ok2:
		return wasiFault
	case !c.countMoved(len(pointers) + len(room)):
		return wasiIO
	}
	copy(room, block)
	for start := 0; start < len(block); {
		g.memory.WriteUint32Le(list, at+uint32(start))
		list += 4
		start += bytes.IndexByte(block[start:], 0) + 1
	}
	return wasiOK
}

// readInput reads standard input: the request's body of a command, else nothing. It returns
// as much at a time as a pipe.
func readInput(c *Call, g guest) uint32 {
	if api.DecodeU32(g.words[0]) != 0 {
		return wasiBadFD
	}
	if !c.program.running {
		return errnoOf(g.put32(3, 0))
	}
	part, err := c.nextPart()
	if err != nil && err != io.EOF {
		return wasiIO
	}
	read, errno := c.place(g, part, maxPart)
	if errno == wasiOK && !c.readsParts() && !c.countMoved(read) {
		errno = wasiIO
	}
	if errno != wasiOK {
		return errno
	}
	return errnoOf(g.put32(3, uint32(c.consumePart(read))))
}

// fill copies bytes, at most so many, to the buffers of a read, and returns how many.
func (c *Call) fill(g guest, from []byte, most int) (read int, errno uint32) {
	if read, errno = c.place(g, from, most); errno == wasiOK && !c.countMoved(read) {
		return 0, wasiIO
	}
	return read, errno
}

// place writes the next bytes to the parts of a read, and does not count them.
func (c *Call) place(g guest, from []byte, most int) (read int, errno uint32) {
	from = from[:min(len(from), most)]
	for i := uint64(0); i < g.parts() && read < len(from); i++ {
		room, ok := g.part(i, len(from)-read)
		if !ok {
			return 0, wasiFault
		}
		c.copy(room, from[read:])
		read += len(room)
	}
	return read, wasiOK
}
