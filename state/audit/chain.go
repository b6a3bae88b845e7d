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

	"runner.example/state/store"
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

// tail reads the records that are not sealed yet, gives each value to see as it
// comes, and returns the records in the chain's order.
func tail(tx *store.Tx, see func(key string, value []byte)) ([]link, error) {
	floor, err := floorOf(tx)
	if err != nil {
		return nil, err
	}
	var all []link
	for item, err := range tx.Scan(prefix, firstKey(floor), false) {
		if err != nil {
			return nil, fmt.Errorf("read the audit records: %w", err)
		}
		l := newLink(item.Version, item.Key, item.Value)
		see(l.key, item.Value)
		all = append(all, l)
	}
	slices.SortFunc(all, order)
	return all, nil
}

// Verify reads every record from the first to the last, computes the chain and returns
// its head. The error says which record was changed, removed or inserted, as far as the records
// themselves show it, or where a head in want, written down earlier, is not on the
// chain. ErrExpired matches when a wanted head is older than the checkpoint of records
// that Expire removed before it, and so proves nothing any more about what came before
// those.
func Verify(ctx context.Context, st *store.Store, want ...Head) (Head, error) {
	v := verifier{want: slices.Clone(want), gaps: map[Gap]bool{}}
	slices.SortFunc(v.want, func(a, b Head) int { return cmp.Compare(a.Count, b.Count) })
	err := st.View(ctx, func(tx *store.Tx) error { return v.run(tx) })
	return v.head, err
}

// verifier computes the chain.
type verifier struct {
	head Head
	want []Head // those that are still to come, in order
	// gaps are the gaps passed so far that no later checkpoint has reported yet.
	gaps map[Gap]bool
	// late says that a wanted head is too old; unless the chain is broken, it is what
	// is wrong.
	late error
}

func (v *verifier) run(tx *store.Tx) error {
	if err := v.compare(); err != nil {
		return err
	}
	for item, err := range tx.Scan(sealedPrefix, nil, false) {
		if err != nil {
			return fmt.Errorf("read the audit records: %w", err)
		}
		r, err := decodeRow(item.Key, item.Value)
		if err != nil {
			return err
		}
		if err := v.row(r); err != nil {
			return err
		}
	}
	checkpoints := map[string][]byte{}
	var unreadable error
	rest, err := tail(tx, func(key string, value []byte) {
		if isCheckpoint(value) {
			checkpoints[key] = bytes.Clone(value)
		} else if err := json.Unmarshal(value, &Record{}); err != nil && unreadable == nil {
			unreadable = fmt.Errorf("read the audit record of key %q: %w", key, err)
		}
	})
	err = cmp.Or(err, unreadable)
	if err != nil {
		return err
	}
	for _, l := range rest {
		v.head = v.head.then(l)
		if err := cmp.Or(v.checkpoint(checkpoints[l.key]), v.compare()); err != nil {
			return err
		}
	}
	for g := range v.gaps {
		return fmt.Errorf(
			"audit chain is broken: the records after %s up to %s were removed, and no checkpoint says so", g.From, g.To)
	}
	if len(v.want) > 0 {
		return fmt.Errorf("audit chain is broken: it ends after %d records, before the head %v: records were removed",
			v.head.Count, v.want[0])
	}
	return v.late
}

func (v *verifier) expired(head Head) {
	v.late = fmt.Errorf(
		"%w: head %v is older than the checkpoint of records that were removed before it; verify a newer head",
		ErrExpired, head)
}

// row goes on over one sealed record or gap.
func (v *verifier) row(r row) error {
	if first := r.head.Count - max(r.removed, 1) + 1; first != v.head.Count+1 {
		return fmt.Errorf("audit chain is broken: records %d to %d are missing", v.head.Count+1, first-1)
	}
	if r.removed > 0 {
		for len(v.want) > 0 && v.want[0].Count < r.head.Count {
			v.expired(v.want[0])
			v.want = v.want[1:]
		}
		v.gaps[Gap{v.head.String(), r.head.String()}] = true
		v.head = r.head
		return v.compare()
	}
	v.head = v.head.then(r.link())
	if v.head != r.head {
		return fmt.Errorf("audit chain is broken: record %d was changed: the chain is %v there and not %v",
			r.head.Count, v.head, r.head)
	}
	return cmp.Or(v.checkpoint(r.value), v.compare())
}

// checkpoint checks that a record can be read, and notes which gaps it reports; nil is
// a checkpoint that was read before and reports none.
func (v *verifier) checkpoint(value []byte) error {
	if value == nil {
		return nil
	}
	var r Record
	if err := json.Unmarshal(value, &r); err != nil {
		return fmt.Errorf("read the audit record %d: %w", v.head.Count, err)
	}
	for _, g := range r.Removed {
		delete(v.gaps, g)
	}
	return nil
}

func isCheckpoint(value []byte) bool { return bytes.Contains(value, []byte(`"removed":[`)) }

// compare checks the wanted heads of this place. A head proves the records before a
// gap only together with the checkpoint, so it has to be a head after that.
func (v *verifier) compare() error {
	for len(v.want) > 0 && v.want[0].Count == v.head.Count {
		if v.want[0] != v.head {
			return fmt.Errorf(
				"audit chain is broken: after %d records it is %v and not %v: a record up to there was changed, removed or inserted",
				v.head.Count, v.head, v.want[0])
		}
		if len(v.gaps) > 0 {
			v.expired(v.head)
		}
		v.want = v.want[1:]
	}
	return nil
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
// one of sequence number from; 0 and 1 are the first. The numbers of records that
// expired are left out.
func List(ctx context.Context, st *store.Store, from uint64, limit int) ([]Entry, error) {
	var out []Entry
	err := st.View(ctx, func(tx *store.Tx) error {
		for item, err := range tx.Scan(sealedPrefix, rowKey(from), false) {
			if len(out) == limit {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read the audit records: %w", err)
			}
			if out, err = appendRow(out, item); err != nil {
				return err
			}
		}
		rest, err := tailEntries(tx)
		for _, e := range rest {
			if e.Sequence >= from && len(out) < limit {
				out = append(out, e)
			}
		}
		return err
	})
	return out, err
}

// Newest returns the last limit records in the chain's order.
func Newest(ctx context.Context, st *store.Store, limit int) ([]Entry, error) {
	var out []Entry
	err := st.View(ctx, func(tx *store.Tx) error {
		rest, err := tailEntries(tx)
		if err != nil {
			return err
		}
		slices.Reverse(rest)
		out = rest[:min(len(rest), limit)]
		for item, err := range tx.Scan(sealedPrefix, nil, true) {
			if len(out) == limit {
				break
			}
			if err != nil {
				return fmt.Errorf("read the audit records: %w", err)
			}
			if out, err = appendRow(out, item); err != nil {
				return err
			}
		}
		slices.Reverse(out)
		return nil
	})
	return out, err
}

func appendRow(out []Entry, item store.Item) ([]Entry, error) {
	r, err := decodeRow(item.Key, item.Value)
	if err != nil {
		return nil, err
	}
	if r.removed > 0 {
		return out, nil
	}
	e, err := newEntry(r.head, r.value)
	return append(out, e), err
}

// tailEntries returns the records that are not sealed yet.
func tailEntries(tx *store.Tx) ([]Entry, error) {
	head, err := lastSealed(tx)
	if err != nil {
		return nil, err
	}
	values := map[string][]byte{}
	all, err := tail(tx, func(key string, value []byte) { values[key] = bytes.Clone(value) })
	if err != nil {
		return nil, err
	}
	out := make([]Entry, len(all))
	for i, l := range all {
		head = head.then(l)
		if out[i], err = newEntry(head, values[l.key]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func newEntry(head Head, value []byte) (Entry, error) {
	e := Entry{Sequence: head.Count, Hash: hex.EncodeToString(head.Hash[:])}
	if err := json.Unmarshal(value, &e.Record); err != nil {
		return Entry{}, fmt.Errorf("read the audit record %d: %w", head.Count, err)
	}
	return e, nil
}
