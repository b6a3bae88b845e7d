package files

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/y"
)

// Loss is a part of a file that could not be read.
type Loss struct {
	File     string // path
	From, To int64  // its bytes, up to and without To; both 0: the whole file
	Cause    error
	// The range of Badger keys that may have been there, from Low to High, both included;
	// nil means unbounded.
	Low, High []byte
}

// Overlaps reports whether a Badger key from low to high may have been there.
func (l *Loss) Overlaps(low, high []byte) bool {
	return (l.High == nil || bytes.Compare(low, l.High) <= 0) && bytes.Compare(high, l.Low) >= 0
}

// Salvage reads the readable parts of damaged files: every block of a table and every
// commit of a log with a right checksum. After a damaged part it searches for the next
// readable one. It changes nothing.
type Salvage struct {
	Dir string // of Badger's files
	// Put gets each version of a key, not ordered. It may keep the bytes, and must not
	// change them. Its error ends Run.
	Put func(*Version) error
	// Progress, if not nil, gets the number of bytes read and their total.
	Progress func(done, total int64)
	// What the store writes: the first bytes of keys, the greatest user byte and the
	// length of the longest value. They identify entries after damage.
	KeyStarts    []byte
	MaxUserMeta  byte
	MaxValueSize int

	// Losses are the parts that could not be read, file by file. Tails are the unreadable
	// ends of logs that no commit follows: the rest of a crash, or lost commits. Run sets
	// both.
	Losses, Tails []Loss

	ctx         context.Context
	done, total int64
}

// Size returns the total size of the tables and logs in dir, in bytes, including holes.
func Size(dir string) (total int64, err error) {
	f := directory{dir: dir}
	paths, err := f.list(TableExt, LogExt)
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, err
}

// Run reads all files once. An unreadable part is a loss and not an error: an error is that
// of Put, the cause of ctx, or that the directory cannot be listed.
func (v *Salvage) Run(ctx context.Context) error {
	v.ctx = ctx
	return v.readAll()
}

func (v *Salvage) lose(l Loss) { v.Losses = append(v.Losses, l) }

// readAll reads tables and logs.
func (v *Salvage) readAll() error {
	f := directory{dir: v.Dir}
	all, err := f.list(TableExt)
	if err != nil {
		return err
	}
	logs, err := f.list(LogExt)
	if err != nil {
		return err
	}
	for _, path := range append(slices.Clone(all), logs...) {
		if info, err := os.Stat(path); err == nil {
			v.total += info.Size()
		}
	}
	tables := all
	named, err := f.manifest(0)
	switch {
	case err != nil || named == nil || f.suspect != "":
		// It is unknown which tables were replaced.
		v.lose(Loss{File: filepath.Join(v.Dir, badger.ManifestFilename), Cause: cmp.Or(err, ErrShort)})
	default:
		tables = nil
		for id := range named {
			tables = append(tables, TablePath(v.Dir, id))
		}
		slices.Sort(tables)
	}
	for _, path := range tables {
		if err := v.table(path); err != nil {
			return err
		}
	}
	for _, path := range logs {
		if err := v.log(path); err != nil {
			return err
		}
	}
	return nil
}

// read reads a file. Unreadable sectors become zeros, which do not have a right checksum.
func (v *Salvage) read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	all := make([]byte, info.Size())
	const sector = 4096
	for at := 0; at < len(all); {
		if v.ctx.Err() != nil {
			return nil, context.Cause(v.ctx)
		}
		n := min(1<<20, len(all)-at)
		if _, err := f.ReadAt(all[at:at+n], int64(at)); err != nil {
			for i := at; i < at+n; i += sector {
				part := all[i:min(i+sector, at+n)]
				if _, err := f.ReadAt(part, int64(i)); err != nil {
					clear(part)
				}
			}
		}
		at += n
		v.done += int64(n)
		if v.Progress != nil {
			v.Progress(v.done, v.total)
		}
	}
	return all, nil
}

// table reads the blocks of a table without its index: a block ends with a right checksum.
// Keys are ordered, so the keys before and after a gap bound those that may have been in it.
func (v *Salvage) table(path string) error {
	all, err := v.read(path)
	if err != nil {
		if v.ctx.Err() == nil {
			v.lose(Loss{File: path, Cause: err})
			err = nil
		}
		return err
	}
	end, cause := len(all), ErrChecksum
	if t, err := OpenTable(path); err == nil {
		end = int(t.BlockBytes)
		_ = t.Close()
	} else {
		cause = err
	}
	var last []byte // the key before
	var gap *Loss
	for at := 0; at < end; {
		n, entries := v.nextBlock(all[at:end])
		if entries == nil {
			if gap == nil {
				gap = &Loss{File: path, From: int64(at), Cause: cause, Low: last}
			}
			at += n
			gap.To = int64(at)
			continue
		}
		if gap != nil {
			gap.High = userPart(entries[0].key)
			v.lose(*gap)
			gap = nil
		}
		for _, e := range entries {
			if err := v.Put(&Version{userPart(e.key), versionOf(e.key), e.value.Meta&deleted != 0, e.value.UserMeta,
				e.value.Value}); err != nil {
				return err
			}
		}
		last = userPart(entries[len(entries)-1].key)
		at += n
	}
	if gap != nil {
		v.lose(*gap)
	}
	return nil
}

// userPart returns a key of Badger without its version.
func userPart(key []byte) []byte { return key[:max(0, len(key)-walVersion)] }

// tableEntry is one version of a key in a block.
type tableEntry struct {
	key   []byte
	value y.ValueStruct
}

// content returns the version in e.
func (e *walEntry) content() *Version {
	return &Version{userPart(e.key), e.version(), e.meta&deleted != 0, e.userMeta, e.value}
}

// nextBlock returns the length and the entries of the block that b begins with. If there is
// none, it returns how many bytes to skip, and no entries.
func (v *Salvage) nextBlock(b []byte) (n int, entries []tableEntry) {
	maxBlock := v.MaxValueSize + walMaxKey + 4096 // one value, its key and the rest of a block
	skip := len(b)
	for end := range blockEnds(b) {
		if skip == len(b) {
			skip = end
		}
		if end > maxBlock {
			break
		}
		if checkBlock(b[:end]) != nil {
			continue
		}
		if entries, err := readBlock(b[:end]); err == nil {
			return end, entries
		}
	}
	return skip, nil
}

// blockEnds yields where a block may end: after a checksum and its length.
func blockEnds(b []byte) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for at := 0; ; {
			i := bytes.Index(b[at:], []byte{0, 0, 0})
			if i < 0 {
				return
			}
			at += i + 1
			end := at + 3 // at-1 is where the length begins
			if end > len(b) {
				return
			}
			n := int(b[end-1])
			if start := end - 4 - n; n >= 2 && n <= 6 && start >= 4 && b[start] == 2<<3 && !yield(end) {
				return
			}
		}
	}
}

// readBlock returns the entries of a block whose checksum is right.
func readBlock(b []byte) (entries []tableEntry, err error) {
	defer func() {
		if p := recover(); p != nil {
			entries, err = nil, fmt.Errorf("the layout of the block is not valid: %v", p)
		}
	}()
	b = b[:len(b)-4-int(b[len(b)-1])]
	count := int(binary.BigEndian.Uint32(b[len(b)-4:]))
	b = b[:len(b)-4]
	offsets := b[len(b)-4*count:]
	b = b[:len(b)-4*count]
	const head = 4 // length shared with the first key, length of the rest
	var first []byte
	for i := range count {
		from, to := binary.NativeEndian.Uint32(offsets[4*i:]), uint32(len(b))
		if i+1 < count {
			to = binary.NativeEndian.Uint32(offsets[4*(i+1):])
		}
		e := b[from:to]
		same, rest := binary.NativeEndian.Uint16(e), binary.NativeEndian.Uint16(e[2:])
		key := slices.Concat(first[:same], e[head:head+rest])
		if i == 0 {
			first = key
		}
		var value y.ValueStruct
		value.Decode(e[head+rest:])
		entries = append(entries, tableEntry{key, value})
	}
	if len(entries) == 0 {
		return nil, ErrShort
	}
	return entries, nil
}

// log reads the commits of a write-ahead log, also those after unreadable parts.
func (v *Salvage) log(path string) error {
	all, err := v.read(path)
	if err != nil {
		if v.ctx.Err() == nil {
			v.lose(Loss{File: path, Cause: err})
			err = nil
		}
		return err
	}
	var open []*walEntry // of a commit whose end was not read yet
	at := min(LogHead, len(all))
	for at < len(all) {
		in := &walReader{r: bufio.NewReader(bytes.NewReader(all[at:]))}
		for {
			start := in.n
			e, err := in.next()
			if err != nil || e == nil {
				at += int(start)
				break
			}
			e.key, e.value = bytes.Clone(e.key), bytes.Clone(e.value)
			if open, err = v.take(open, e); err != nil {
				return err
			}
		}
		next := v.nextEntry(all, at)
		if next < 0 {
			if zeros := make([]byte, 4096); !isZero(all[at:], zeros) {
				v.Tails = append(v.Tails, Loss{File: path, From: int64(at), To: int64(len(all)), Cause: ErrChecksum})
			}
			return nil
		}
		v.lose(Loss{File: path, From: int64(at), To: int64(next), Cause: ErrChecksum})
		at = next
	}
	return nil
}

// take adds an entry of a log to the open commit. The entries of a commit are put when its
// end is read, or an entry of the next commit, which is written after it.
func (v *Salvage) take(open []*walEntry, e *walEntry) ([]*walEntry, error) {
	if len(open) > 0 && (e.meta&walTx == 0 || e.version() != open[0].version()) {
		for _, e := range open {
			if err := v.Put(e.content()); err != nil {
				return nil, err
			}
		}
		open = nil
	}
	switch {
	case e.meta&walTx != 0:
		return append(open, e), nil
	case e.meta&walEnd != 0:
		return nil, nil
	}
	return nil, v.Put(e.content())
}

// nextEntry returns where the next whole entry of a log begins after at, -1 if there is none.
func (v *Salvage) nextEntry(all []byte, at int) int {
	for at++; at < len(all)-walVersion; at++ {
		if !v.mayBeEntry(all[at:]) {
			continue
		}
		in := &walReader{r: bufio.NewReaderSize(bytes.NewReader(all[at:]), 16)}
		if e, _ := in.next(); e != nil {
			return at
		}
	}
	return -1
}

// mayBeEntry reports whether b may begin with an entry that the store wrote. It is cheap.
func (v *Salvage) mayBeEntry(b []byte) bool {
	if meta := b[0]; meta&^1 != walTx && meta != walEnd && meta&^1 != 0 || b[1] > v.MaxUserMeta {
		return false
	}
	at := 2
	var lengths [3]uint64
	for i := range lengths {
		n, size := binary.Uvarint(b[at:])
		if size <= 0 {
			return false
		}
		lengths[i], at = n, at+size
	}
	key, value, expiry := lengths[0], lengths[1], lengths[2]
	if key <= walVersion || key > walMaxKey || value > uint64(v.MaxValueSize) || expiry != 0 ||
		int(key+value) > len(b)-at {
		return false
	}
	return b[at] == walEndKey[0] || bytes.IndexByte(v.KeyStarts, b[at]) >= 0
}

func isZero(b, zeros []byte) bool {
	for len(b) > 0 {
		n := min(len(b), len(zeros))
		if !bytes.Equal(b[:n], zeros[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}
