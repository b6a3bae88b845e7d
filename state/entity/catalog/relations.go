package catalog

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// returned is a relation that was kept, so rows that it refers to may have been deleted.
type returned struct {
	slot   int
	entity *schema.Entity // that it refers to
	target *layout.Table
	// referred are hashes of the ids that the relation has, in order once the rows are scanned.
	referred []uint64
}

// isOfKept reports whether a new index is that of a relation that was kept. Deletes rely on such an
// index from the first moment on: rows may refer to others already, unlike in a new field.
func (s *survey) isOfKept(x *indexEntry) bool {
	return slices.ContainsFunc(s.relations, func(rel returned) bool {
		columns := []int64{int64(s.entry.field(s.entity.Fields[rel.slot].Name).Number)}
		if s.entry.Tenant != 0 {
			columns = append(columns, int64(s.entry.Tenant))
		}
		return x.same(indexEntry{Columns: columns})
	})
}

var idSeed = maphash.MakeSeed()

func hashID(id string) uint64 { return maphash.String(idSeed, id) }

// refer records what the relations of a row refer to.
func (s *survey) refer(values []schema.Value) {
	for i := range s.relations {
		rel := &s.relations[i]
		if v := values[rel.slot]; !v.IsNull() {
			rel.referred = append(rel.referred, hashID(v.Text()))
		}
	}
}

// inspectRelations reports the relations of a row that refer to no row.
func (s *survey) inspectRelations(tx *store.Tx, values []schema.Value, list *diag.List) error {
	for i := range s.relations {
		rel := &s.relations[i]
		v := values[rel.slot]
		if v.IsNull() {
			continue
		}
		found, err := refersToRow(tx, s.table, rel.target, values, v)
		if err != nil {
			return err
		}
		if !found {
			f := s.entity.Fields[rel.slot]
			list.Errorf("E607", f.Span,
				"%s.%s of row %s refers to %s %s, which was deleted while a release without the field was active: import that row again, or activate a release without the field and delete the row",
				s.entity.Name, f.Name, values[s.table.ID].Text(), rel.entity.Name, v.Text())
		}
	}
	return nil
}

// checkDeleted reports relations whose rows were deleted since the view, while writers are
// stopped. Nothing else can break a relation that was kept: no row could get one meanwhile. The
// rows are read again only if a relation had the id of a deleted row.
func (a *activation) checkDeleted(ctx context.Context, s *survey) error {
	if !a.anyReferred(s) {
		return nil
	}
	var list diag.List
	err := a.store.View(ctx, func(tx *store.Tx) error {
		return layout.ScanRows(tx, s.table, nil, func(r *layout.Row) (bool, error) {
			err := s.inspectRelations(tx, r.Values, &list)
			return len(list) < maxFindings, err
		})
	})
	if err == nil && list.HasErrors() {
		err = &ChangeError{list}
	}
	return err
}

// anyReferred reports whether a relation of the survey may refer to a row that was deleted since
// the view.
func (a *activation) anyReferred(s *survey) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range s.relations {
		rel := &s.relations[i]
		values := make([]schema.Value, len(rel.target.Slots))
		for key := range a.deleted {
			tail, of := strings.CutPrefix(key, string(rel.target.Prefix))
			if !of {
				continue
			}
			if rel.target.ReadTail(values, tail) != nil {
				return true // the scan reports it
			}
			if _, known := slices.BinarySearch(rel.referred, hashID(values[rel.target.ID].Text())); known {
				return true
			}
		}
	}
	return false
}
