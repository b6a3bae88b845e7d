package layout

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/state/store"
)

// Row is one row in memory. During a scan all of it is borrowed.
type Row struct {
	Tail   string
	Raw    string         // as stored
	Values []schema.Value // by slot
}

// CloneRow copies a borrowed row.
func (t *Table) CloneRow(r *Row) (Row, error) {
	kept := Row{strings.Clone(r.Tail), strings.Clone(r.Raw), make([]schema.Value, len(r.Values))}
	if err := t.DecodeRow(&kept); err != nil {
		return kept, err
	}
	return kept, nil
}

// DecodeRow decodes the values of a row.
func (t *Table) DecodeRow(r *Row) error {
	if err := t.decode(r.Values, r.Raw); err != nil {
		return fault.Wrap(err, fault.Internal, "")
	}
	if err := t.ReadTail(r.Values, r.Tail); err != nil {
		return fault.Wrap(err, fault.Internal, "")
	}
	return nil
}

// ScanRows calls visit for all rows of a table until it returns false. Rows are borrowed.
func ScanRows(tx *store.Tx, t *Table, from []byte, visit func(*Row) (bool, error)) error {
	r := Row{Values: make([]schema.Value, len(t.Slots))}
	for item, err := range tx.Scan(t.Prefix, from, false) {
		if err != nil {
			return err
		}
		r.Tail, r.Raw = BorrowString(item.Key[len(t.Prefix):]), BorrowString(item.Value)
		if err := t.DecodeRow(&r); err != nil {
			return fmt.Errorf("read rows of %s: %w", t.Name, err)
		}
		if more, err := visit(&r); err != nil || !more {
			return err
		}
	}
	return nil
}

// ReadRow reads the row of a key, nil when there is none.
func ReadRow(tx *store.Tx, t *Table, key string) (*Row, error) {
	raw, err := tx.Get([]byte(key))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	r := &Row{Tail: key[len(t.Prefix):], Raw: BorrowString(raw), Values: make([]schema.Value, len(t.Slots))}
	return r, t.DecodeRow(r)
}

// BorrowString returns bytes as a string, which is valid until they change.
func BorrowString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// BorrowBytes returns a string as bytes, which must not be changed.
func BorrowBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
