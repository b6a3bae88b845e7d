package store

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/y"
)

// SalvageOptions say what to salvage.
type SalvageOptions struct {
	// Dir is the folder of the damaged store. Nothing in it is changed; no other
	// process may have it meanwhile.
	Dir string
	// Into is a folder that does not exist, or is empty. It takes SalvageBytes bytes.
	Into string
	// Progress is called with the number of bytes read and their total; nil: it is not.
	Progress func(done, total int64)
}

// Salvaged is the readable part of a damaged store.
type Salvaged struct {
	// Store has the newest version that could be read of each key. It is for reading;
	// close it when done, and remove its folder.
	Store *Store
	// Newest is the newest commit of which something was read, Acknowledged the newest
	// one that was acknowledged, 0 where that is not known.
	Newest, Acknowledged Seq
	// Losses are what could not be read, file by file.
	Losses []Loss
}

// Loss is a part of a file that could not be read.
type Loss struct {
	File     string // path
	From, To int64  // its bytes, up to and without To; both 0: the whole file
	Cause    error
	// What may have been there: the keys of Badger from low to high, both included;
	// nil is no bound.
	low, high []byte
}

// noKey is above all keys.
var noKey = []byte{0xff}

// Doubtful reports whether what the store has of key may not be what it was: a newer
// version, or that it was deleted, may have been where nothing can be read.
func (s *Salvaged) Doubtful(key []byte) bool {
	whole := dataKey(nil, key)
	pieces := pieceKey(nil, key, 0)
	return slices.ContainsFunc(s.Losses, func(l Loss) bool {
		return l.overlaps(whole, whole) || l.overlaps(pieces[:len(pieces)-2], pieceKey(nil, key, math.MaxUint16))
	})
}

func (l *Loss) overlaps(low, high []byte) bool {
	return (l.high == nil || bytes.Compare(low, l.high) <= 0) && bytes.Compare(high, l.low) >= 0
}

// SalvageBytes returns how much disk space Salvage needs for its copy of the store in dir.
func SalvageBytes(dir string) (int64, error) {
	total := int64(256 << 20) // logs and tables that are on their way
	f := files{dir: filepath.Join(dir, badgerName)}
	paths, err := f.list(tableExt, walExt)
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, err
}

// Salvage copies the readable part of a damaged store, also of one that Open refuses, to
// a new store. It reads every block and every commit whose checksum is right, and goes on
// searching after a damaged one.
func Salvage(ctx context.Context, o SalvageOptions) (_ *Salvaged, err error) {
	lock, err := flockDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("salvage store %q: %w", o.Dir, err)
	}
	defer func() { err = errors.Join(err, unlockDir(lock)) }()
	v := &salvage{ctx: ctx, files: files{dir: filepath.Join(o.Dir, badgerName)}, progress: o.Progress, seen: map[Seq]bool{}}
	s, err := v.run(o)
	if err != nil {
		return nil, fmt.Errorf("salvage store %q: %w", o.Dir, err)
	}
	return s, nil
}

// salvage is a run of Salvage.
type salvage struct {
	ctx         context.Context
	files       files
	progress    func(done, total int64)
	done, total int64

	out          *badger.WriteBatch
	space        *space // for what out writes
	newest       Seq
	acknowledged Seq
	seen         map[Seq]bool // commits whose record of the log was read
	floor        Seq          // of the window, as the newest record says
	losses       []Loss
	// tails are the ends of logs that cannot be read and hold no commit behind: what a
	// crash leaves, or what was acknowledged.
	tails []Loss
}

func (v *salvage) run(o SalvageOptions) (_ *Salvaged, err error) {
	v.readMark(o.Dir)
	s := &Store{dir: o.Into, clock: time.Now, log: slog.New(slog.DiscardHandler), turns: newTurns(), mark: &mark{}}
	data := filepath.Join(o.Into, badgerName)
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	if err := s.openTables(data); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	v.space, s.space.ahead = &s.space, restoreAhead
	v.out = s.db.NewManagedWriteBatch()
	v.out.SetMaxPendingTxns(1)
	defer v.out.Cancel()
	if err := v.readAll(); err != nil {
		return nil, err
	}
	if err := v.out.Flush(); err != nil {
		return nil, err
	}
	v.judge()
	if err := v.dropPieces(s.db); err != nil {
		return nil, err
	}
	newest := v.newest + 1 // dropPieces writes there
	s.machine = &machine{db: s.db, mark: s.mark, applied: newest, window: newWindow(1, newest, newest)}
	s.applied.Store(uint64(newest))
	s.local = startLocalLog(s)
	return &Salvaged{Store: s, Newest: v.newest, Acknowledged: v.acknowledged, Losses: v.losses}, nil
}

func (v *salvage) readMark(dir string) {
	m, err := openMark(dir)
	if err != nil {
		v.lose(Loss{File: filepath.Join(dir, markName), Cause: err, low: noKey, high: noKey})
		return
	}
	v.acknowledged = m.least()
	_ = m.close()
}

func (v *salvage) lose(l Loss) { v.losses = append(v.losses, l) }

// readAll reads tables and logs.
func (v *salvage) readAll() error {
	all, err := v.files.list(tableExt)
	if err != nil {
		return err
	}
	logs, err := v.files.list(walExt)
	if err != nil {
		return err
	}
	for _, path := range append(slices.Clone(all), logs...) {
		if info, err := os.Stat(path); err == nil {
			v.total += info.Size()
		}
	}
	tables := all
	named, err := v.files.manifest(0)
	switch {
	case err != nil || named == nil || v.files.suspect != "":
		// Tables that were replaced cannot be told from the others.
		v.lose(Loss{File: filepath.Join(v.files.dir, badger.ManifestFilename), Cause: cmp.Or(err, errShort)})
	default:
		tables = nil
		for id := range named {
			tables = append(tables, filepath.Join(v.files.dir, fmt.Sprintf("%06d%s", id, tableExt)))
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
func (v *salvage) read(path string) ([]byte, error) {
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
		if v.progress != nil {
			v.progress(v.done, v.total)
		}
	}
	return all, nil
}

// put takes one version of a key. Its bytes must stay as they are.
func (v *salvage) put(key []byte, version Seq, deleted bool, userMeta byte, value []byte) error {
	v.newest = max(v.newest, version)
	switch {
	case version == 0 || len(key) == 0:
		return nil
	case bytes.Equal(key, logKey):
		v.record(version, value)
		return nil
	case key[0] != spaceData && key[0] != spacePieces:
		return nil
	}
	if err := v.space.admit(diskUseOf(1, int64(len(key)+len(value)))); err != nil {
		return unavailable(err)
	}
	if deleted {
		return v.out.DeleteAt(key, uint64(version))
	}
	return v.out.SetEntryAt(badger.NewEntry(key, value).WithMeta(userMeta), uint64(version))
}

// record takes a record of the log.
func (v *salvage) record(version Seq, value []byte) {
	var r logRecord
	if r.decode(value) == nil && r.seq == version {
		v.seen[version] = true
		v.floor = max(v.floor, r.floor)
	}
}

// table reads the blocks of a table, without its index: a block is what has a right
// checksum at its end. Keys are in order, so what is before and behind a gap tells what
// may have been in it.
func (v *salvage) table(path string) error {
	all, err := v.read(path)
	if err != nil {
		if v.ctx.Err() == nil {
			v.lose(Loss{File: path, Cause: err})
			err = nil
		}
		return err
	}
	end, cause := len(all), errChecksum
	if t, err := openTable(path); err == nil {
		end = int(t.blocks)
		_ = t.close()
	} else {
		cause = err
	}
	var last []byte // the key before
	var gap *Loss
	for at := 0; at < end; {
		n, entries := nextBlock(all[at:end])
		if entries == nil {
			if gap == nil {
				gap = &Loss{File: path, From: int64(at), Cause: cause, low: last}
			}
			at += n
			gap.To = int64(at)
			continue
		}
		if gap != nil {
			gap.high = userPart(entries[0].key)
			v.lose(*gap)
			gap = nil
		}
		for _, e := range entries {
			if err := v.put(userPart(e.key), versionOf(e.key), e.value.Meta&1 != 0, e.value.UserMeta, e.value.Value); err != nil {
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

// maxBlock is the length of the longest block: one value, its key and what is around.
const maxBlock = pieceBytes + walMaxKey + 4096

// nextBlock returns the length of the block that b begins with and what is in it; no
// entries and what to pass over if there is none.
func nextBlock(b []byte) (n int, entries []tableEntry) {
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
		return nil, errShort
	}
	return entries, nil
}

// log reads the commits of a write-ahead log, also those behind what cannot be read.
func (v *salvage) log(path string) error {
	all, err := v.read(path)
	if err != nil {
		if v.ctx.Err() == nil {
			v.lose(Loss{File: path, Cause: err})
			err = nil
		}
		return err
	}
	var open []*walEntry // of a commit whose end was not read yet
	at := min(walHead, len(all))
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
		next := nextEntry(all, at)
		if next < 0 {
			if zeros := make([]byte, 4096); !isZero(all[at:], zeros) {
				v.tails = append(v.tails, Loss{File: path, From: int64(at), To: int64(len(all)), Cause: errChecksum})
			}
			return nil
		}
		v.lose(Loss{File: path, From: int64(at), To: int64(next), Cause: errChecksum})
		at = next
	}
	return nil
}

// take takes an entry of a log. Entries of a commit count when its end was read, or the
// beginning of the next, which is written after it.
func (v *salvage) take(open []*walEntry, e *walEntry) ([]*walEntry, error) {
	if len(open) > 0 && (e.meta&walTx == 0 || e.version() != open[0].version()) {
		for _, e := range open {
			if err := v.put(userPart(e.key), e.version(), e.meta&1 != 0, e.userMeta, e.value); err != nil {
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
	return nil, v.put(userPart(e.key), e.version(), e.meta&1 != 0, e.userMeta, e.value)
}

// nextEntry returns where in a log the next whole entry begins behind at, -1 if there is
// none.
func nextEntry(all []byte, at int) int {
	for at++; at < len(all)-walVersion; at++ {
		if !mayBeEntry(all[at:]) {
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
func mayBeEntry(b []byte) bool {
	if meta := b[0]; meta&^1 != walTx && meta != walEnd && meta&^1 != 0 || b[1] > metaPieces {
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
	if key <= walVersion || key > walMaxKey || value > pieceBytes || life != 0 || int(key+value) > len(b)-at {
		return false
	}
	return bytes.IndexByte([]byte{spaceData, spacePieces, spaceMeta, walEndKey[0]}, b[at]) >= 0
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

// judge finds out what the ends of logs and missing commits mean.
func (v *salvage) judge() {
	if v.acknowledged == 0 || v.newest < v.acknowledged {
		v.losses = append(v.losses, v.tails...)
		if v.newest < v.acknowledged {
			v.lose(Loss{File: v.files.dir, Cause: fmt.Errorf("commit %d was acknowledged, and commit %d is the newest that can be read", v.acknowledged, v.newest)})
		}
	}
	log := slices.ContainsFunc(v.losses, func(l Loss) bool { return l.overlaps(logKey, logKey) })
	for seq := v.floor + 1; seq < v.newest && !log; seq++ {
		if !v.seen[seq] {
			v.lose(Loss{File: v.files.dir, Cause: fmt.Errorf("commit %d is missing", seq)})
			return
		}
	}
}

// dropPieces deletes values of which pieces are missing.
func (v *salvage) dropPieces(db *badger.DB) error {
	txn := db.NewTransactionAt(uint64(v.newest), false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceData}})
	defer it.Close()
	out := db.NewManagedWriteBatch()
	defer out.Cancel()
	for it.Rewind(); it.Valid(); it.Next() {
		item := it.Item()
		if item.UserMeta() != metaPieces {
			continue
		}
		if _, err := readValue(txn, item); err != nil {
			key := item.KeyCopy(nil)
			v.lose(Loss{File: v.files.dir, Cause: fmt.Errorf("a value of several pieces: %w", err), low: key, high: key})
			if err := out.DeleteAt(key, uint64(v.newest)+1); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// String says what of which file could not be read.
func (l Loss) String() string {
	if l.To == 0 {
		return fmt.Sprintf("%s: %v", l.File, l.Cause)
	}
	return fmt.Sprintf("%s: bytes %d to %d: %v", l.File, l.From, l.To-1, l.Cause)
}
