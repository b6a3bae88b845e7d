package audit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"runner.example/store"
)

// Head is a place in the chain: how many records, and the hash over them. The
// zero value is the head of no records.
type Head struct {
	Count uint64
	Hash  [sha256.Size]byte
}

// String writes the head as ParseHead reads it: "<count>:<hash in hex>".
func (h Head) String() string { return fmt.Sprintf("%d:%x", h.Count, h.Hash) }

// ParseHead reads what String wrote.
func ParseHead(text string) (Head, error) {
	count, hash, _ := strings.Cut(text, ":")
	n, err := strconv.ParseUint(count, 10, 64)
	sum, hexErr := hex.DecodeString(hash)
	if err != nil || hexErr != nil || len(sum) != sha256.Size {
		return Head{}, fmt.Errorf("audit head %q: want <count>:<64 hexadecimal digits>, as the log shows it", text)
	}
	return Head{n, [sha256.Size]byte(sum)}, nil
}

// link is a record as the chain sees it.
type link struct {
	version store.Seq
	key     string
	value   [sha256.Size]byte // its hash
}

func newLink(version store.Seq, key, value []byte) link {
	return link{version, string(key), sha256.Sum256(value)}
}

func order(a, b link) int {
	return cmp.Or(cmp.Compare(a.version, b.version), cmp.Compare(a.key, b.key))
}

// then returns the head with one more record.
func (h Head) then(l link) Head {
	buf := make([]byte, 0, 2*sha256.Size+4+len(l.key))
	buf = append(buf, h.Hash[:]...)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(l.key)))
	buf = append(buf, l.key...)
	buf = append(buf, l.value[:]...)
	return Head{h.Count + 1, sha256.Sum256(buf)}
}

// links reads all records and gives each to see as it comes, in order of their
// keys; it returns them in the chain's order.
func links(tx *store.Tx, see func(link)) ([]link, error) {
	var all []link
	for item, err := range tx.Scan(prefix, nil, false) {
		if err != nil {
			return nil, fmt.Errorf("read the audit records: %w", err)
		}
		l := newLink(item.Version, item.Key, item.Value)
		see(l)
		all = append(all, l)
	}
	slices.SortFunc(all, order)
	return all, nil
}

// Verify computes the chain from the records in st and returns its head. The
// error says where a head in want, written down earlier, is not on the chain:
// some record up to it was changed, removed or put in.
func Verify(ctx context.Context, st *store.Store, want ...Head) (Head, error) {
	var head Head
	err := st.View(ctx, func(tx *store.Tx) error {
		all, err := links(tx, func(link) {})
		if err != nil {
			return err
		}
		want := slices.Clone(want)
		slices.SortFunc(want, func(a, b Head) int { return cmp.Compare(a.Count, b.Count) })
		for i := 0; ; i++ {
			for len(want) > 0 && want[0].Count == head.Count {
				if !bytes.Equal(want[0].Hash[:], head.Hash[:]) {
					return fmt.Errorf("audit chain is broken: after %d records it is %v and not %v: a record up to there was changed, removed or put in", head.Count, head, want[0])
				}
				want = want[1:]
			}
			if i == len(all) {
				break
			}
			head = head.then(all[i])
		}
		if len(want) > 0 {
			return fmt.Errorf("audit chain is broken: it ends after %d records, before the head %v: records were removed", head.Count, want[0])
		}
		return nil
	})
	return head, err
}

// Entry is a record with its place in the chain. Its JSON form is the record's
// with two more members.
type Entry struct {
	// Sequence counts from 1.
	Sequence uint64 `json:"sequence"`
	Record
	// Hash is the chain's head after the record, in hex.
	Hash string `json:"hash"`
}

// List returns at most limit records in the chain's order, beginning with the
// one of sequence number from; 0 and 1 are the first.
func List(ctx context.Context, st *store.Store, from uint64, limit int) ([]Entry, error) {
	var out []Entry
	err := st.View(ctx, func(tx *store.Tx) error {
		all, err := links(tx, func(link) {})
		if err != nil {
			return err
		}
		var head Head
		for _, l := range all {
			if len(out) >= limit {
				break
			}
			if head = head.then(l); head.Count < from {
				continue
			}
			e, err := entryOf(tx, l, head)
			if err != nil {
				return err
			}
			out = append(out, e)
		}
		return nil
	})
	return out, err
}

func entryOf(tx *store.Tx, l link, head Head) (Entry, error) {
	value, err := tx.Get([]byte(l.key))
	if err != nil {
		return Entry{}, fmt.Errorf("read the audit record %d: %w", head.Count, err)
	}
	e := Entry{Sequence: head.Count, Hash: hex.EncodeToString(head.Hash[:])}
	if err := json.Unmarshal(value, &e.Record); err != nil {
		return Entry{}, fmt.Errorf("read the audit record %d: %w", head.Count, err)
	}
	return e, nil
}
