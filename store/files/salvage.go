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
	// What may have been there: the keys of Badger from Low to High, both included;
	// nil is no bound.
	Low, High []byte
}

// Overlaps reports whether one of the keys of Badger from low to high may have been
// there.
func (l *Loss) Overlaps(low, high []byte) bool {
	return (l.High == nil || bytes.Compare(low, l.High) <= 0) && bytes.Compare(high, l.Low) >= 0
}

// String says what of which file could not be read.
func (l Loss) String() string {
	if l.To == 0 {
		return fmt.Sprintf("%s: %v", l.File, l.Cause)
	}
	return fmt.Sprintf("%s: bytes %d to %d: %v", l.File, l.From, l.To-1, l.Cause)
}

// Salvage reads what can be read of Badger's files, whatever is damaged of them: every
// block of a table and every commit of a log whose checksum is right. It looks for more
// behind what is not. It changes nothing.
type Salvage struct {
	Dir string // of Badger's files
	// Put takes one version of a key, in no order. The bytes may be kept, and must not be
	// changed. Its error ends Run.
	Put func(*Version) error
	// Progress is told how many bytes of how many were read; nil: it is not.
	Progress func(done, total int64)
	// What was written: with which bytes keys may begin, the greatest user byte and the
	// length of the longest value. By that entries are found behind damage.
	KeyStarts    []byte
	MaxUserMeta  byte
	MaxValueSize int

	// Losses are what could not be read, file by file. Tails are the ends of logs that
	// cannot be read and hold no commit behind: what a crash leaves, or what was
	// acknowledged. Both are set by Run.
	Losses, Tails []Loss

	ctx         context.Context
	done, total int64
}

// Version is one version of a key of Badger.
type Version struct {
	Key      []byte
	Seq      uint64 // the commit that wrote it
	Deleted  bool
	UserMeta byte
	Value    []byte
}

// Size returns how long the tables and logs in dir are together, in bytes, holes
// included.
func Size(dir string) (total int64, err error) {
	f := folder{dir: dir}
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

// Run reads all files, once. What cannot be read is no error but among the losses: an
// error is that of Put, the cause of ctx, or that the folder cannot be listed.
func (v *Salvage) Run(ctx context.Context) error {
	v.ctx = ctx
	return v.readAll()
}

func (v *Salvage) lose(l Loss) { v.Losses = append(v.Losses, l) }

// readAll reads tables and logs.
func (v *Salvage) readAll() error {
	f := folder{dir: v.Dir}
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
		// Tables that were replaced cannot be told from the others.
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

// read reads a file. What the disk does not give is zeros, which have no right checksum.
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

// table reads the blocks of a table, without its index: a block is what has a right
// checksum at its end. Keys are in order, so what is before and behind a gap tells what
// may have been in it.
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
			if err := v.Put(&Version{userPart(e.key), versionOf(e.key), e.value.Meta&deleted != 0, e.value.UserMeta, e.value.Value}); err != nil {
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

// deleted is the bit of meta that says that a version deletes its key.
const deleted = 1

// content returns what e says about its key.
func (e *walEntry) content() *Version {
	return &Version{userPart(e.key), e.version(), e.meta&deleted != 0, e.userMeta, e.value}
}

// nextBlock returns the length of the block that b begins with and what is in it; no
// entries and what to pass over if there is none.
func (v *Salvage) nextBlock(b []byte) (n int, entries []tableEntry) {
	maxBlock := v.MaxValueSize + walMaxKey + 4096 // one value, its key and what is around
	pass := len(b)
	for end := range blockEnds(b) {
		if pass == len(b) {
			pass = end
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
	return pass, nil
}

// blockEnds yields where a block may end: behind a checksum and its length.
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
			entries, err = nil, fmt.Errorf("the layout of the block is wrong: %v", p)
		}
	}()
	b = b[:len(b)-4-int(b[len(b)-1])]
	count := int(binary.BigEndian.Uint32(b[len(b)-4:]))
	b = b[:len(b)-4]
	offsets := b[len(b)-4*count:]
	b = b[:len(b)-4*count]
	const head = 4 // how much of the key is that of the first, how much follows
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

// log reads the commits of a write-ahead log, also those behind what cannot be read.
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

// take takes an entry of a log. Entries of a commit count when its end was read, or the
// beginning of the next, which is written after it.
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

// nextEntry returns where in a log the next whole entry begins behind at, -1 if there is
// none.
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

// mayBeEntry reports whether an entry that the store writes may begin b. It costs little.
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
	key, value, life := lengths[0], lengths[1], lengths[2]
	if key <= walVersion || key > walMaxKey || value > uint64(v.MaxValueSize) || life != 0 || int(key+value) > len(b)-at {
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
