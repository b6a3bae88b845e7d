package hostabi

import (
	"bytes"

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
	p := &c.program
	if !p.running {
		return errnoOf(g.put32(3, 0))
	}
	rest := c.Request.Body[p.read:]
	rest = rest[:min(len(rest), maxPart)]
	read := 0
	for i := uint64(0); i < g.parts() && read < len(rest); i++ {
		room, ok := g.part(i, len(rest)-read)
		if !ok {
			return wasiFault
		}
		read += copy(room, rest[read:])
	}
	if !c.countMoved(read) {
		return wasiIO
	}
	p.read += read
	return errnoOf(g.put32(3, uint32(read)))
}

// rootFile is the open directory "/" of a command. It is empty, and nothing can be created in
// it. Without it libraries return other errors for every path, which programs do not
// understand as a missing file.
const rootFile = 3

// isRoot reports whether the file of a word is the root. It has no state, so closing it has no
// effect.
func (c *Call) isRoot(g guest, word int) bool {
	return c.program.running && api.DecodeU32(g.words[word]) == rootFile
}

func closeFile(c *Call, g guest) uint32 {
	if c.isRoot(g, 0) {
		return wasiOK
	}
	return openFile(c, g)
}

// rootSize writes a prestat: u32 0 for a directory · u32 length of its name.
func rootSize(c *Call, g guest) uint32 {
	if !c.isRoot(g, 0) {
		return badFile(c, g)
	}
	return errnoOf(g.put64(1, 1<<32))
}

func rootName(c *Call, g guest) uint32 {
	switch {
	case !c.isRoot(g, 0):
		return badFile(c, g)
	case api.DecodeU32(g.words[2]) < 1:
		return wasiInval
	}
	return errnoOf(g.memory.WriteByte(api.DecodeU32(g.words[1]), '/'))
}

// listRoot writes no entry.
func listRoot(c *Call, g guest) uint32 {
	if !c.isRoot(g, 0) {
		return badFile(c, g)
	}
	return errnoOf(g.put32(4, 0))
}

// noFile is for functions that need an existing file.
func noFile(c *Call, g guest) uint32 {
	if !c.isRoot(g, 0) {
		return badFile(c, g)
	}
	return wasiNoFile
}

// readOnly is for functions that create a file.
func readOnly(c *Call, g guest) uint32 {
	if !c.isRoot(g, 0) {
		return badFile(c, g)
	}
	return wasiROnly
}

// isDot reports whether the third and fourth words are the path of the root itself.
func (g guest) isDot() bool {
	at, n := api.DecodeU32(g.words[2]), api.DecodeU32(g.words[3])
	b, ok := g.memory.ReadByte(at)
	return ok && n == 1 && b == '.'
}

func pathAttributes(c *Call, g guest) uint32 {
	if c.isRoot(g, 0) && g.isDot() {
		return g.putAttributes(4, directory)
	}
	return noFile(c, g)
}

func openPath(c *Call, g guest) uint32 {
	const create = 1
	switch {
	case !c.isRoot(g, 0):
		return badFile(c, g)
	case g.isDot():
		return errnoOf(g.put32(8, rootFile))
	case api.DecodeU32(g.words[4])&create != 0:
		return wasiROnly
	}
	return wasiNoFile
}

// left returns how many bytes of the request's body standard input still has.
func (c *Call) left() int {
	if !c.program.running {
		return 0
	}
	return len(c.Request.Body) - c.program.read
}
