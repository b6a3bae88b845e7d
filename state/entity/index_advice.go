package entity

import (
	"slices"
	"strings"

	"runner.example/internal/caller"
	"runner.example/schema"
	"runner.example/state/entity/layout"
)

// manyRows is the number of rows above which a sort or a filter without an index is logged.
const manyRows = 1000

// logMissingIndex logs the index that would serve an operation which scanned that many rows,
// rejected of them by its where; sorted says that the scan had the requested order. Each index is
// logged once by each operation of a release. An operator's own queries are not logged.
func (o *operation) logMissingIndex(sorted bool, w *planInput, scanned, rejected int) {
	if scanned <= manyRows || o.table.Entity == nil || o.Model.logger == nil || o.Caller.Kind == caller.System {
		return
	}
	sorts := w.order != nil && !w.defaultOrder && !sorted
	if !sorts && rejected <= manyRows {
		return
	}
	index := o.missingIndex(w)
	if index == "" {
		return
	}
	op := o.op.String()
	if _, logged := o.Model.logged.LoadOrStore(op+" "+o.table.Name+" "+index, true); !logged {
		o.Model.logger.Warn("index missing; rows are scanned", "operation", op, "entity", o.table.Name,
			"rows", scanned, "add", index)
	}
}

// missingIndex returns the index that would serve the input, as it is declared; empty if there is
// none, or if the table has it.
func (o *operation) missingIndex(w *planInput) string {
	columns := o.indexFor(w)
	if len(columns) > 0 {
		if o.hasIndex(columns) {
			return ""
		}
		return "@@index(" + strings.Join(o.columnNames(columns), ", ") + ")"
	}
	for slot := range o.table.Slots {
		_, equal := w.where.EqualFolded(slot)
		_, within := w.where.WithinFolded(slot)
		if (equal || within) && o.mayIndex(slot) && !slices.ContainsFunc(o.table.Indexes, func(x *layout.Index) bool {
			return slices.Contains(x.Columns, layout.Column{Slot: slot, IgnoreCase: true})
		}) {
			return o.table.Slots[slot].Field.Name + " @index(ignoreCase)"
		}
	}
	return ""
}

// indexFor returns the columns of the index that would serve the input: the fields that must
// equal a value, and then those of the order, or one with a range or a list of values.
func (o *operation) indexFor(w *planInput) (columns []layout.Column) {
	var ranged []layout.Column
	for slot := range o.table.Slots {
		if !o.mayIndex(slot) {
			continue
		}
		if _, ok := w.at(slot); ok {
			columns = append(columns, layout.Column{Slot: slot})
		} else if _, ok := w.where.Within(slot); ok && ranged == nil {
			ranged = []layout.Column{{Slot: slot}}
		} else if _, ok := w.where.OneOf(slot); ok && ranged == nil {
			ranged = []layout.Column{{Slot: slot}}
		}
	}
	if w.order == nil || w.defaultOrder {
		return append(columns, ranged...)
	}
	for _, term := range w.order {
		if term.Pos == o.table.ID || term.Pos == o.table.Tenant {
			break // every index ends with them
		}
		if !o.mayIndex(term.Pos) {
			return nil
		}
		if !slices.ContainsFunc(columns, func(c layout.Column) bool { return c.Slot == term.Pos }) {
			columns = append(columns, layout.Column{Slot: term.Pos, Desc: term.Desc})
		}
	}
	return columns
}

// mayIndex reports whether a declared index may have the field as a column, beside the id and
// the tenant, which all have.
func (o *operation) mayIndex(slot int) bool {
	f := o.table.Slots[slot].Field
	if f == nil || slot == o.table.ID || slot == o.table.Tenant || f.Type.List {
		return false
	}
	switch f.Type.Kind {
	case schema.JSON, schema.Bytes, schema.FileKind, schema.ToMany:
		return false
	}
	return true
}

// hasIndex reports whether the table has the index. Then it is being built, or the planner
// has found another one better.
func (o *operation) hasIndex(columns []layout.Column) bool {
	return slices.ContainsFunc(o.table.Indexes, func(x *layout.Index) bool {
		own := slices.DeleteFunc(slices.Clone(x.Columns), func(c layout.Column) bool {
			return c.Slot == o.table.ID || c.Slot == o.table.Tenant
		})
		return slices.Equal(own, columns)
	})
}

func (o *operation) columnNames(columns []layout.Column) []string {
	var names []string
	for _, c := range columns {
		name := o.table.Slots[c.Slot].Field.Name
		if c.Desc {
			name += " desc"
		}
		names = append(names, name)
	}
	return names
}
