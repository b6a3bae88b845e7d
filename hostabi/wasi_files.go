package hostabi

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi/files"
)

// The files of a guest. Descriptor 3 is its root directory, which libraries look paths up in. All files
// are read-only, except the one that calls the host: see hostFile. A guest that is not a program has only the time
// zones of the machine.

const (
	// firstFile is the descriptor of the root directory.
	firstFile = 3
	// maxOpen is how many files a program may have open.
	maxOpen = 256
	// MaxPath is the longest path of a file, in bytes.
	MaxPath = 4096
	// FileTime is the time of all files, in nanoseconds: 1980, the first year that archives can have.
	FileTime = 315_532_800_000_000_000
)

// openedFile is an open file or directory.
type openedFile struct {
	path   []*files.Node // from the root to the file; nil: the descriptor is not in use
	offset int64
}

func (f *openedFile) node() *files.Node { return f.path[len(f.path)-1] }

// NewRoot returns a root that has the file that calls the host, and the time zones of the machine.
func NewRoot() *files.Root {
	r := files.NewRoot()
	err := r.Add(files.File{Path: HostFile, Host: true})
	if z := zones(); z != nil && err == nil {
		err = r.Mount(zonesAt, z)
	}
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return r
}

// handlerRoot is the path of the root of guests that are not programs. It has the time zones of the machine.
var handlerRoot = sync.OnceValue(func() []*files.Node {
	r := files.NewRoot()
	if z := zones(); z != nil {
		if err := r.Mount(zonesAt, z); err != nil {
			panic("BUG: " + err.Error())
		}
	}
	return []*files.Node{&r.Node}
})

// fileTable has the open files of a run, from firstFile on.
type fileTable struct {
	open  []openedFile
	host  hostMessages
	calls bool // the file that calls the host was opened
}

// reset closes all files.
func (t *fileTable) reset() {
	clear(t.open)
	t.open, t.calls = t.open[:0], false
	t.host.reset()
}

// begin opens the root of a guest that is not a program.
func (t *fileTable) begin() {
	t.reset()
	t.open = append(t.open, openedFile{path: handlerRoot()})
}

// OpenedHostFile reports whether the program has opened the file that calls the host.
func (c *Call) OpenedHostFile() bool { return c.files.calls }

// file returns the open file of a word; nil: there is none.
func (c *Call) file(g guest, word int) *openedFile {
	fd := int64(api.DecodeU32(g.words[word])) - firstFile
	if fd < 0 || fd >= int64(len(c.files.open)) || c.files.open[fd].path == nil {
		return nil
	}
	return &c.files.open[fd]
}

// directory returns the open directory of a word, or an errno.
func (c *Call) directory(g guest, word int) (*openedFile, uint32) {
	f := c.file(g, word)
	switch {
	case f == nil:
		return nil, badFile(c, g)
	case !f.node().IsDirectory():
		return nil, wasiNotDir
	}
	return f, wasiOK
}

// find returns the nodes on the way to a path of two words, which is relative to an open directory and must
// not leave it. If the last element is missing, missing is true.
func (c *Call) find(g guest, directory *openedFile, word int) (path []*files.Node, errno uint32) {
	text, ok := g.bytes(word)
	switch {
	case !ok:
		return nil, wasiFault
	case len(text) > MaxPath:
		return nil, wasiNameTooLong
	case len(text) == 0:
		return nil, wasiNoFile
	}
	path, err := files.Walk(directory.path, string(text))
	switch err {
	case files.ErrMissing:
		return nil, wasiNoFile
	case files.ErrNotDirectory:
		return nil, wasiNotDir
	case files.ErrOutside:
		return nil, wasiNotCapable
	}
	return path, wasiOK
}

// openPath opens a file or a directory.
func openPath(c *Call, g guest) uint32 {
	const create, mustBeDirectory, exclusive, truncate = 1, 2, 4, 8
	const mayWrite = 1 << 6
	directory, errno := c.directory(g, 0)
	if errno != wasiOK {
		return errno
	}
	flags := api.DecodeU32(g.words[4])
	path, errno := c.find(g, directory, 2)
	switch {
	case errno == wasiNoFile && flags&create != 0:
		return wasiROnly
	case errno != wasiOK:
		return errno
	}
	n := path[len(path)-1]
	switch {
	case flags&create != 0 && flags&exclusive != 0:
		return wasiExists
	case flags&mustBeDirectory != 0 && !n.IsDirectory():
		return wasiNotDir
	case !n.Host && !n.IsDirectory() && (flags&truncate != 0 || g.words[5]&mayWrite != 0):
		return wasiROnly
	}
	fd := slices.IndexFunc(c.files.open, func(f openedFile) bool { return f.path == nil })
	if fd < 0 {
		if len(c.files.open) == maxOpen {
			return wasiTooManyOpen
		}
		fd = len(c.files.open)
	}
	if !g.put32(8, uint32(fd+firstFile)) {
		return wasiFault
	}
	if fd == len(c.files.open) {
		c.files.open = append(c.files.open, openedFile{})
	}
	c.files.open[fd] = openedFile{path: path}
	c.files.calls = c.files.calls || n.Host
	return wasiOK
}

func closeFile(c *Call, g guest) uint32 {
	if f := c.file(g, 0); f != nil {
		*f = openedFile{}
		return wasiOK
	}
	return openFile(c, g)
}

// renumberFile moves a descriptor to another one, which is closed.
func renumberFile(c *Call, g guest) uint32 {
	from, to := c.file(g, 0), c.file(g, 1)
	if from == nil || to == nil {
		return badFile(c, g)
	}
	if from != to {
		*to, *from = *from, openedFile{}
	}
	return wasiOK
}

// rootOf returns the path of a directory that is open from the beginning; empty: it is none.
func (c *Call) rootOf(g guest) string {
	f := c.file(g, 0)
	switch {
	case f == nil || len(f.path) > 1:
		return ""
	case api.DecodeU32(g.words[0]) == firstFile:
		return "/"
	case api.DecodeU32(g.words[0]) == firstFile+1 && f.node() == zonesNode():
		return "/" + zonesAt
	}
	return ""
}

// rootSize writes a prestat: u32 0 for a directory · u32 length of its path.
func rootSize(c *Call, g guest) uint32 {
	path := c.rootOf(g)
	if path == "" {
		return badFile(c, g)
	}
	return errnoOf(g.put64(1, uint64(len(path))<<32))
}

func rootName(c *Call, g guest) uint32 {
	path := c.rootOf(g)
	switch {
	case path == "":
		return badFile(c, g)
	case uint64(api.DecodeU32(g.words[2])) < uint64(len(path)):
		return wasiInval
	}
	at, ok := g.memory.Read(api.DecodeU32(g.words[1]), uint32(len(path)))
	copy(at, path)
	return errnoOf(ok)
}

// listDirectory writes the entries of a directory that begin at a cookie, "." and ".." first:
//
//	u64 cookie of the next one · u64 number of the file · u32 length of the name · u8 type · u24 0 · name
//
// The last one is cut off at the end of the buffer.
func listDirectory(c *Call, g guest) uint32 {
	f, errno := c.directory(g, 0)
	if errno != wasiOK {
		return errno
	}
	room, ok := g.bytes(1)
	if !ok {
		return wasiFault
	}
	children := f.node().Children()
	above := f.node()
	if len(f.path) > 1 {
		above = f.path[len(f.path)-2]
	}
	written := 0
	for i := g.words[3]; i < uint64(len(children)+2) && written < len(room); i++ {
		name, n := ".", f.node()
		switch {
		case i == 1:
			name, n = "..", above
		case i > 1:
			n = children[i-2]
			name = n.Name
		}
		var head [24]byte
		binary.LittleEndian.PutUint64(head[:], i+1)
		binary.LittleEndian.PutUint64(head[8:], n.ID)
		binary.LittleEndian.PutUint32(head[16:], uint32(len(name)))
		head[20] = typeOf(n)
		written += copy(room[written:], head[:])
		written += copy(room[written:], name)
	}
	if !c.countMoved(written) {
		return wasiIO
	}
	return errnoOf(g.put32(4, uint32(written)))
}

// typeOf returns the WASI type of a file. The file that calls the host is a character device: it has no length and no
// offset.
func typeOf(n *files.Node) byte {
	switch {
	case n.IsDirectory():
		return directory
	case n.Host:
		return characterDevice
	}
	return regularFile
}

// putFile writes a filestat: u64 device · u64 number · u8 type · at 24: u64 links · u64 size · three times.
func (g guest) putFile(word int, n *files.Node) uint32 {
	room, ok := g.memory.Read(api.DecodeU32(g.words[word]), 64)
	if !ok {
		return wasiFault
	}
	clear(room)
	room[0], room[16], room[24] = 1, typeOf(n), 1
	binary.LittleEndian.PutUint64(room[8:], n.ID)
	binary.LittleEndian.PutUint64(room[32:], uint64(n.Size()))
	for at := 40; at < 64; at += 8 {
		binary.LittleEndian.PutUint64(room[at:], FileTime)
	}
	return wasiOK
}

func pathAttributes(c *Call, g guest) uint32 {
	directory, errno := c.directory(g, 0)
	if errno != wasiOK {
		return errno
	}
	path, errno := c.find(g, directory, 2)
	if errno != wasiOK {
		return errno
	}
	return g.putFile(4, path[len(path)-1])
}

// readOnly refuses functions that change the directory of their first word.
func readOnly(c *Call, g guest) uint32 {
	if _, errno := c.directory(g, 0); errno != wasiOK {
		return errno
	}
	return wasiROnly
}

// changePath is for functions that change the file of a path, or read it as a link.
func changePath(pathWord int, present uint32) wasiBody {
	return func(c *Call, g guest) uint32 {
		directory, errno := c.directory(g, 0)
		if errno != wasiOK {
			return errno
		}
		if _, errno := c.find(g, directory, pathWord); errno != wasiOK {
			return errno
		}
		return present
	}
}

// readPart reads a file from an offset into the buffers of a read, and returns how much.
func (c *Call) readPart(g guest, n *files.Node, offset int64) (read int, errno uint32) {
	switch {
	case n.IsDirectory():
		return 0, wasiIsDir
	case n.Host:
		return 0, wasiSPipe
	}
	content, err := n.Content()
	if err != nil {
		c.logInternal("fd_read", err)
		if c.start != nil {
			c.start.Unread = err
		}
		return 0, wasiIO
	}
	return c.fill(g, content[min(offset, int64(len(content))):], maxFilePart)
}

// maxFilePart is the most bytes that one read of a file moves.
const maxFilePart = 1 << 20

func readFile(c *Call, g guest) uint32 {
	f := c.file(g, 0)
	if f == nil {
		return readInput(c, g)
	}
	if f.node().Host {
		return c.files.host.readAnswer(c, g)
	}
	read, errno := c.readPart(g, f.node(), f.offset)
	if errno != wasiOK {
		return errno
	}
	f.offset += int64(read)
	return errnoOf(g.put32(3, uint32(read)))
}

func readFileAt(c *Call, g guest) uint32 {
	f := c.file(g, 0)
	switch {
	case f == nil:
		return noSeek(c, g)
	case int64(g.words[3]) < 0:
		return wasiInval
	}
	read, errno := c.readPart(g, f.node(), int64(g.words[3]))
	if errno != wasiOK {
		return errno
	}
	return errnoOf(g.put32(4, uint32(read)))
}

// seekFile moves the offset of a file.
func seekFile(c *Call, g guest) uint32 {
	f := c.file(g, 0)
	switch {
	case f == nil:
		return noSeek(c, g)
	case f.node().Host:
		return wasiSPipe
	case f.node().IsDirectory():
		return wasiIsDir
	}
	to, offset := int64(0), int64(g.words[1])
	switch api.DecodeU32(g.words[2]) {
	case io.SeekStart:
	case io.SeekCurrent:
		to = f.offset
	case io.SeekEnd:
		to = f.node().Size()
	default:
		return wasiInval
	}
	if offset > math.MaxInt64-to || to+offset < 0 {
		return wasiInval
	}
	if !g.put64(3, uint64(to+offset)) {
		return wasiFault
	}
	f.offset = to + offset
	return wasiOK
}

func tellFile(c *Call, g guest) uint32 {
	f := c.file(g, 0)
	switch {
	case f == nil:
		return noSeek(c, g)
	case f.node().Host:
		return wasiSPipe
	}
	return errnoOf(g.put64(1, uint64(f.offset)))
}

// knownFile is for functions that need an open file and do nothing.
func knownFile(c *Call, g guest) uint32 {
	if c.file(g, 0) != nil {
		return wasiOK
	}
	return badFile(c, g)
}

// readOnlyFile refuses functions that change an open file.
func readOnlyFile(c *Call, g guest) uint32 {
	if c.file(g, 0) != nil {
		return wasiROnly
	}
	return badFile(c, g)
}

// writeFile writes to the file that calls the host; nothing else can be written.
func (c *Call) writeFile(g guest, f *openedFile) uint32 {
	if !f.node().Host {
		return wasiBadFD
	}
	var message bytes.Buffer
	for i := uint64(0); i < g.parts() && message.Len() < maxFilePart; i++ {
		part, ok := g.part(i, maxFilePart-message.Len())
		if !ok {
			return wasiFault
		}
		message.Write(part)
	}
	_ = c.work.Spend(message.Len() / 4) // its error ends the run at the next message
	c.countMoved(message.Len())         // the function that the message calls tells when the limit is reached
	if !g.put32(3, uint32(message.Len())) {
		return wasiFault
	}
	c.files.host.write(c, message.Bytes())
	return wasiOK
}
