package store

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/dgraph-io/badger/v4"

	"runner.example/store/datadir"
)

// machine turns entries of the log into the state in Badger. It is for the goroutine that
// applies.
type machine struct {
	db      *badger.DB
	mark    *datadir.Mark
	applied Seq
	chain   digest
	window  window
	split   map[string]int // see stage
	buf     []byte         // for encoding entries
}

// logKey holds the state of the log, as of each version:
//
//	sequence number, 8 | floor of the window, 8 | digest of the entry, 32 | chain hash, 32
//
// chain hash = SHA-256(chain hash of the entry before | digest of this one),
// and all zero before the first.
var logKey = []byte{spaceMeta, 'l', 'o', 'g'}

type logRecord struct {
	seq, floor   Seq
	entry, chain digest
	// marked: the commit also wrote the mark, as all on disk do except those of versions
	// without a mark. It is the user byte of the key.
	marked bool
}

const metaMarked = 1

const logRecordLen = 8 + 8 + 2*sha256.Size

func (r *logRecord) encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, logRecordLen), uint64(r.seq))
	b = binary.BigEndian.AppendUint64(b, uint64(r.floor))
	return append(append(b, r.entry[:]...), r.chain[:]...)
}

func (r *logRecord) decode(b []byte) error {
	if len(b) != logRecordLen {
		return fmt.Errorf("log record of %d bytes, want %d", len(b), logRecordLen)
	}
	r.seq = Seq(binary.BigEndian.Uint64(b))
	r.floor = Seq(binary.BigEndian.Uint64(b[8:]))
	copy(r.entry[:], b[16:])
	copy(r.chain[:], b[16+sha256.Size:])
	return nil
}

// position returns the mark of a log that ends with r.
func (r *logRecord) position() datadir.Position {
	return datadir.Position{Seq: uint64(r.seq), Chain: r.chain}
}

// newMachine continues after the newest entry, which audit has found.
func newMachine(db *badger.DB, mark *datadir.Mark, windowSize int, newest logRecord) *machine {
	return &machine{
		db:      db,
		mark:    mark,
		applied: newest.seq,
		chain:   newest.chain,
		window:  newWindow(windowSize, newest.floor, newest.seq),
		split:   loadSplit(db, newest.seq),
	}
}

// audit checks that every entry down to the window's floor exists and follows from the one
// before, and that no data is newer. It returns the record of the newest entry, zero in an
// empty store, and that of entry marked, zero if it was discarded or does not exist.
func audit(db *badger.DB, marked Seq) (newest, at logRecord, err error) {
	txn := db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	it := txn.NewKeyIterator(logKey, badger.IteratorOptions{})
	defer it.Close()

	var next logRecord // the entry after the current one
	for it.Rewind(); it.Valid(); it.Next() {
		var r logRecord
		version := Seq(it.Item().Version())
		if err := it.Item().Value(r.decode); err != nil {
			return newest, at, fmt.Errorf("entry %d: %w", version, err)
		}
		r.marked = it.Item().UserMeta() == metaMarked
		switch {
		case r.seq != version:
			return newest, at, fmt.Errorf("entry %d says that it is entry %d", version, r.seq)
		case newest.seq == 0:
			newest = r
		case r.seq <= newest.floor && r.seq+1 != next.seq:
			return newest, at, nil // older entries may have been discarded
		case r.seq+1 != next.seq:
			return newest, at, fmt.Errorf("entry %d is missing", next.seq-1)
		case link(r.chain, next.entry) != next.chain:
			return newest, at, fmt.Errorf("entry %d does not follow from entry %d", next.seq, r.seq)
		}
		if r.seq == marked {
			at = r
		}
		next = r
	}
	if v := Seq(db.MaxVersion()); v != newest.seq {
		return newest, at, fmt.Errorf("data of version %d without its entry; the newest entry is %d", v, newest.seq)
	}
	if next.seq > newest.floor+1 {
		return newest, at, fmt.Errorf("entry %d is missing", next.seq-1)
	}
	if next.seq == 1 && link(digest{}, next.entry) != next.chain {
		return newest, at, errors.New("entry 1 is not the first of its chain")
	}
	return newest, at, nil
}

// decide sets the verdict of each proposal of e as entry seq and returns how many commit.
// It changes only the verdicts.
func (m *machine) decide(seq Seq, e *entry) (commits int) {
	var before []*proposal // those of e that commit
	keys, bytes := 0, 0
	for _, p := range e.proposals {
		p.seq, p.verdict = seq, m.judge(p, before)
		if p.verdict.outcome != committed {
			continue
		}
		k := 0
		for i := range p.writes {
			k += stagedKeys(&p.writes[i], m.split)
		}
		b := p.bytes + 16*k
		if keys+k > maxCommitKeys || bytes+b > maxCommitBytes {
			p.verdict = verdict{outcome: tooLarge}
			continue
		}
		keys, bytes = keys+k, bytes+b
		before = append(before, p)
	}
	return len(before)
}

// judge looks for writes after p's snapshot to anything p read: those of
// remembered entries and those of the proposals before it in its own entry.
func (m *machine) judge(p *proposal, before []*proposal) verdict {
	if len(p.reads) == 0 && len(p.spans) == 0 {
		return verdict{}
	}
	if m.window.tooOld(p.snap) {
		return verdict{outcome: tooOld}
	}
	for _, key := range p.reads {
		if m.window.wroteKey(key, p.snap) {
			return verdict{conflict, key}
		}
		for _, b := range before {
			if i := b.at(key); i < len(b.writes) && b.writes[i].key == key {
				return verdict{conflict, key}
			}
		}
	}
	for _, r := range p.spans {
		if key, ok := m.window.wroteIn(r, p.snap); ok {
			return verdict{conflict, key}
		}
		for _, b := range before {
			if i := b.at(string(r.lo)); i < len(b.writes) && r.below(b.writes[i].key) {
				return verdict{conflict, b.writes[i].key}
			}
		}
	}
	return verdict{}
}

// at returns the index of p's first write at or after key.
func (p *proposal) at(key string) int {
	return sort.Search(len(p.writes), func(i int) bool { return p.writes[i].key >= key })
}

// commit makes the proposals that decide accepted durable as version seq. After an error
// the outcome is unknown, and the machine must not be used.
func (m *machine) commit(seq Seq, e *entry) error {
	m.buf = e.encode(m.buf[:0])
	d := digest(sha256.Sum256(m.buf))
	if cap(m.buf) > 1<<20 {
		m.buf = nil
	}
	m.window.add(seq, e.committedKeys())
	r := logRecord{seq: seq, floor: m.window.floor, entry: d, chain: link(m.chain, d)}

	txn := m.db.NewTransactionAt(uint64(m.applied), true)
	defer txn.Discard()
	for _, p := range e.proposals {
		if p.verdict.outcome != committed {
			continue
		}
		for i := range p.writes {
			if err := stage(txn, &p.writes[i], m.split); err != nil {
				return err
			}
		}
	}
	if err := txn.SetEntry(badger.NewEntry(logKey, r.encode()).WithMeta(m.meta())); err != nil {
		return err
	}
	if err := txn.CommitAt(uint64(seq), nil); err != nil {
		return err
	}
	if err := m.mark.Advance(r.position()); err != nil {
		return err
	}
	m.applied, m.chain = seq, r.chain
	return nil
}

// meta returns the user byte of the log's record, which says whether commits write the mark.
func (m *machine) meta() byte {
	if !m.mark.Exists() {
		return 0
	}
	return metaMarked
}

// committedKeys returns the keys that e writes, ascending and unique.
func (e *entry) committedKeys() []string {
	var keys []string
	for _, p := range e.proposals {
		if p.verdict.outcome != committed {
			continue
		}
		for i := range p.writes {
			keys = append(keys, p.writes[i].key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
