package files

import (
	"os"
	"reflect"
	"slices"
	"sync"
	"unsafe"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"

	"runner.example/internal/system/memory"
)

// This file reaches the tables that an open database uses.
//
// Badger checks the index of a table when it opens the table, and later reads it from the
// mapped file without a check. A byte that changes later, for example in the bloom filter,
// would hide keys without an error. So the pages of the index are replaced by a checked
// copy in memory, at the same addresses: later changes on the disk have no effect. macOS and
// Windows cannot do that; there only CheckTable finds such damage.

// maxPinned bounds the memory for indexes. They are about 3 % of the tables, so it is
// enough for 2 GB. Damage of further indexes is found only by CheckTable.
const maxPinned = 64 << 20

// Pins has the tables with indexes in memory, and their sizes in bytes. It is for one
// goroutine.
type Pins map[uint64]int

// Update pins the indexes of new tables of the database in dir, and removes those of deleted ones.
func (p Pins) Update(db *badger.DB, dir string) {
	tables := heldTables(db)
	total := 0
	for id, n := range p {
		if !slices.ContainsFunc(tables, func(t *table.Table) bool { return t.ID() == id }) {
			delete(p, id)
		}
		total += n
	}
	for _, t := range tables {
		if _, ok := p[t.ID()]; !ok {
			// An error means that the file is damaged, which CheckTable reports, or that
			// memory is short: then the index is not pinned.
			if n, err := pinIndex(t, TablePath(dir, t.ID()), maxPinned-total); err == nil {
				p[t.ID()] = n
				total += n
			}
		}
		_ = t.DecrRef()
	}
}

// heldTables returns all tables, each with a reference that keeps its file mapped. The
// caller must release it.
func heldTables(db *badger.DB) (all []*table.Table) {
	levels := controller(db).FieldByName("levels")
	for i := range levels.Len() {
		level := levels.Index(i).Elem()
		lock := readLock(level)
		tables := level.FieldByName("tables")
		for j := range tables.Len() {
			t := (*table.Table)(tables.Index(j).UnsafePointer())
			t.IncrRef()
			all = append(all, t)
		}
		lock.RUnlock()
	}
	return all
}

// pinIndex replaces the pages of the index of t if they are at most limit bytes, and
// returns their size.
func pinIndex(t *table.Table, path string, limit int) (int, error) {
	file, err := OpenTable(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	page := os.Getpagesize()
	from := int(file.BlockBytes) / page * page
	size := (len(t.Data) - from + page - 1) / page * page
	info, err := file.File.Stat()
	if err != nil {
		return 0, err
	}
	if size > limit || info.Size() != int64(len(t.Data)) {
		return 0, ErrShort
	}
	pages := unsafe.Slice(&t.Data[from], size) // up to the end of the last page
	err = memory.Replace(pages, func(copied []byte) error {
		_, err := file.File.ReadAt(copied[:len(t.Data)-from], int64(from))
		copy(copied[int(file.BlockBytes)-from:], file.RawIndex)
		return err
	})
	if err != nil {
		return 0, err
	}
	return size, nil
}

// Badger has no function that returns the tables being compacted, and its list of tables
// reads their indexes. So both are read from Badger's private fields; a test fails if
// these change.

// Compacting returns the ids of the tables that are being compacted.
func Compacting(db *badger.DB) (ids []uint64) {
	status := controller(db).FieldByName("cstatus")
	defer readLock(status).RUnlock()
	for _, id := range status.FieldByName("tables").MapKeys() {
		ids = append(ids, id.Uint())
	}
	return ids
}

// ReleaseBlocks unmaps the pages of the blocks of the tables that are being compacted. Those
// of the indexes may be pinned.
func ReleaseBlocks(db *badger.DB) {
	ids := Compacting(db)
	for _, t := range heldTables(db) {
		if slices.Contains(ids, t.ID()) {
			end := int(reflect.ValueOf(t).Elem().FieldByName("indexStart").Int())
			memory.Release(t.Data[:end/os.Getpagesize()*os.Getpagesize()])
		}
		_ = t.DecrRef()
	}
}

// TableIDs returns the ids of all tables.
func TableIDs(db *badger.DB) (ids []uint64) {
	levels := controller(db).FieldByName("levels")
	for i := range levels.Len() {
		ids = append(ids, levelIDs(levels.Index(i).Elem())...)
	}
	return ids
}

func levelIDs(level reflect.Value) (ids []uint64) {
	defer readLock(level).RUnlock()
	tables := level.FieldByName("tables")
	for i := range tables.Len() {
		ids = append(ids, tables.Index(i).Elem().FieldByName("id").Uint())
	}
	return ids
}

func controller(db *badger.DB) reflect.Value {
	return reflect.ValueOf(db).Elem().FieldByName("lc").Elem()
}

// readLock locks the lock that v embeds, for reading.
func readLock(v reflect.Value) *sync.RWMutex {
	lock := (*sync.RWMutex)(v.FieldByName("RWMutex").Addr().UnsafePointer())
	lock.RLock()
	return lock
}
