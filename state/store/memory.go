package store

import (
	"bytes"
	"slices"
	"sort"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/tidwall/btree"

	"runner.example/state/store/commitlog"
)

// memory is the content of a store in memory: a base, and the commits after it. Each commit has its own tree of
// user keys, which does not change: it shares with the tree before all nodes that the commit did not change.
// Values are not split.
type memory struct {
	base *base // nil: there is none

	mu      sync.Mutex
	trees   []commitTree // ascending by seq; the last is the newest commit, the first the oldest that has a reader
	records []logRecord  // ascending, that of the floor of the window and those after it

	// deletions are deletion marks that a later commit drops, in order. Only the goroutine that applies entries uses it.
	deletions []deletion
}

type commitTree struct {
	seq  Seq
	tree *tree
}

// tree has the newest version of each key. Its Copy takes constant time, and changes a field that readers do not use.
type tree = btree.Map[string, stored]

// stored is a value or a deletion mark. A deletion mark hides the key of the base, and has the commit of the deletion.
type stored struct {
	value   []byte // not changed
	seq     Seq
	deleted bool
}

type deletion struct {
	seq Seq
	key string
}

// newMemory returns the content t above the base b, as of the commit newest.
func newMemory(b *base, t *tree, newest logRecord) *memory {
	m := &memory{base: b, trees: []commitTree{{newest.Seq, t}}}
	if newest.Seq > 0 {
		m.records = append(m.records, newest)
	}
	return m
}

func (m *memory) at(seq Seq) snapshot {
	s := &memorySnapshot{tree: m.treeAt(seq)}
	if m.base != nil {
		s.base = m.base.store.db.NewTransactionAt(uint64(m.base.seq), false)
	}
	return s
}

func (m *memory) treeAt(seq Seq) *tree {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trees[m.find(seq)].tree
}

// copyAt returns a tree with the content of commit seq, which may be changed.
func (m *memory) copyAt(seq Seq) *tree {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trees[m.find(seq)].tree.Copy()
}

// find returns the index of the tree that a reader at seq sees.
func (m *memory) find(seq Seq) int {
	return sort.Search(len(m.trees), func(i int) bool { return m.trees[i].seq > seq }) - 1
}

func (m *memory) recordAt(seq Seq) (r logRecord, known bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.records, func(r logRecord) bool { return r.Seq == seq })
	if i < 0 {
		return r, false, nil
	}
	return m.records[i], true, nil
}

func (m *memory) commit(e *commitlog.Entry, r *logRecord, split map[string]int) error {
	t := m.copyAt(r.Seq)
	m.dropDeletions(t)
	for p := range e.Committed {
		for i := range p.Writes {
			w := &p.Writes[i]
			t.Set(w.Key, stored{w.Value, r.Seq, w.Deleted})
			if w.Deleted && m.base == nil {
				m.deletions = append(m.deletions, deletion{r.Seq, w.Key})
			}
			countPieces(w, split)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trees = append(m.trees, commitTree{r.Seq, t})
	m.records = append(m.records, *r)
	return nil
}

// dropDeletions drops from t the deletion marks that no reader needs: all readers are at later commits.
func (m *memory) dropDeletions(t *tree) {
	n := 0
	for ; n < len(m.deletions) && m.deletions[n].seq <= m.trees[0].seq; n++ {
		d := m.deletions[n]
		if v, _ := t.Get(d.key); v.deleted && v.seq == d.seq {
			t.Delete(d.key)
		}
	}
	m.deletions = m.deletions[n:]
}

func (m *memory) discard(floor Seq, readers *snapshots) {
	m.mu.Lock()
	defer m.mu.Unlock()
	oldest := readers.oldest(m.trees[len(m.trees)-1].seq)
	m.trees = slices.Delete(m.trees, 0, m.find(oldest))
	for len(m.records) > 0 && m.records[0].Seq < floor {
		m.records = m.records[1:]
	}
}

// memorySnapshot is a tree above the snapshot of a base.
type memorySnapshot struct {
	tree *tree
	base *badger.Txn // nil: there is none
}

func (s *memorySnapshot) get(key []byte) ([]byte, error) {
	switch v, ok := s.tree.Get(string(key[1:])); {
	case ok && !v.deleted:
		return append([]byte{}, v.value...), nil
	case !ok && s.base != nil:
		return tablesSnapshot{s.base}.get(key)
	}
	return nil, ErrNotFound
}

func (s *memorySnapshot) newIterator(prefix []byte, reverse bool) iterator {
	it := &memoryIterator{own: s.tree.Iter(), reverse: reverse}
	if s.base != nil {
		it.base = tablesSnapshot{s.base}.newIterator(prefix, reverse)
	}
	return it
}

func (s *memorySnapshot) read(it iterator) ([]byte, Seq, error) {
	m := it.(*memoryIterator)
	if m.atBase {
		return tablesSnapshot{s.base}.read(m.base)
	}
	v := m.own.Value()
	return v.value, v.seq, nil
}

// A reader at the commit of the base, or a later one, sees no version in the base that is newer.

func (s *memorySnapshot) wroteKey(key []byte, after Seq) bool {
	v, _ := s.tree.Get(string(key[1:]))
	return v.seq > after
}

func (s *memorySnapshot) wroteIn(from, to []byte, after Seq) (clash []byte) {
	s.tree.Ascend(string(from[1:]), func(key string, v stored) bool {
		if to[0] == spaceData && key >= string(to[1:]) {
			return false
		}
		if v.seq > after {
			clash = []byte(key)
		}
		return clash == nil
	})
	return clash
}

func (s *memorySnapshot) discard() {
	if s.base != nil {
		s.base.Discard()
	}
}

// memoryIterator merges the keys of a tree with those of a base. A key in the tree hides that of the base.
type memoryIterator struct {
	own     btree.MapIter[string, stored]
	left    bool     // own is at a key
	base    iterator // nil: there is none
	reverse bool
	atBase  bool   // the next key is that of base, or there is none
	key     []byte // buffer for keys of own
}

func (it *memoryIterator) Seek(key []byte) {
	switch all := key[0] != spaceData; { // the end of all keys
	case !it.reverse:
		it.left = !all && it.own.Seek(string(key[1:]))
	case all || !it.own.Seek(string(key[1:])):
		it.left = it.own.Last()
	case it.own.Key() == string(key[1:]):
		it.left = true
	default:
		it.left = it.own.Prev()
	}
	if it.base != nil {
		it.base.Seek(key)
	}
	it.settle()
}

func (it *memoryIterator) UserKey() []byte {
	switch {
	case !it.atBase:
		return it.key
	case it.base == nil:
		return nil
	}
	return it.base.UserKey()
}

func (it *memoryIterator) Next() {
	if it.atBase {
		it.base.Next()
	} else {
		it.step()
	}
	it.settle()
}

// step moves own.
func (it *memoryIterator) step() {
	if it.reverse {
		it.left = it.own.Prev()
	} else {
		it.left = it.own.Next()
	}
}

// settle moves past deletions, and decides which key is the next.
func (it *memoryIterator) settle() {
	for it.atBase = false; it.left; it.step() {
		it.key = append(it.key[:0], it.own.Key()...)
		if it.base != nil {
			if key := it.base.UserKey(); key != nil {
				order := bytes.Compare(it.key, key)
				if it.atBase = order != 0 && (order > 0) != it.reverse; it.atBase {
					return
				}
				if order == 0 {
					it.base.Next()
				}
			}
		}
		if !it.own.Value().deleted {
			return
		}
	}
	it.atBase = true
}

func (it *memoryIterator) Close() {
	if it.base != nil {
		it.base.Close()
	}
}
