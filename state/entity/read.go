package entity

import (
	"slices"
	"strconv"
	"strings"

	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/state/entity/layout"
	"runner.example/state/entity/query"
)

// Limits of one answer.
const (
	maxResultBytes = 16 << 20
	// maxSortBytes limits the memory of rows that must be sorted.
	maxSortBytes = 2 * maxResultBytes
)

// maxIDBytes is the length of the longest id.
const maxIDBytes = 64

// mayRead reports whether the caller may read the row.
func (o *operation) mayRead(values []schema.Value) (bool, error) {
	if o.table.Entity == nil {
		return o.auth.MayReadUntyped(o.table.object(values))
	}
	return o.auth.MayRead(values)
}

// asked returns the row's values as conditions and orders name them.
func (o *operation) asked(values []schema.Value) []schema.Value {
	if o.table.Entity == nil {
		return o.table.object(values).AppendValues(nil, o.query.Names, o.Work)
	}
	return values
}

// matches reports whether the row, with its values as conditions name them, matches the
// query's where.
func (o *operation) matches(asked []schema.Value) (bool, error) {
	ok := o.query.Where.Match(asked, o.Work)
	return ok, o.spend(0)
}

// planInput returns what the query says about its rows.
func (o *operation) planInput(ordered bool) *planInput {
	w := &planInput{anyTenant: o.auth.AnyTenant, where: &o.query.Where}
	if ordered {
		w.order, w.after, w.defaultOrder = o.query.Order, o.query.After, o.query.RequestedTerms == 0
	}
	w.ids, _ = w.where.Within(o.table.ID)
	if o.table.Entity == nil { // members have no slots, except the id
		w.where = nil
		if id, ok := o.query.Where.Equal(layout.UntypedID); ok {
			w.equal = []equalTo{{layout.UntypedID, id}}
		}
	}
	return w
}

// search visits the rows of the plan for w that the caller may read and that match the
// query's where, with the values as the query names them.
func (o *operation) search(p plan, w *planInput, visit func(r *layout.Row, asked []schema.Value) (bool, error)) error {
	scanned, hidden, rejected := 0, 0, 0
	explained := o.explained
	o.explained = nil // what is searched meanwhile is included, and not explained
	err := o.scan(o.table, p, func(r *layout.Row) (bool, error) {
		if scanned++; o.table.Entity == nil && scanned > maxFreeRows {
			return false, o.tooManyFree()
		}
		if ok, err := o.mayRead(r.Values); err != nil || !ok {
			hidden++
			return err == nil, err
		}
		asked := o.asked(r.Values)
		if ok, err := o.matches(asked); err != nil || !ok {
			rejected++
			return err == nil, err
		}
		return visit(r, asked)
	})
	o.logMissingIndex(p.sorted, w, scanned, rejected)
	if explained != nil {
		o.explain(explained, &p, w)
		explained.Scanned, explained.Hidden, explained.Rejected = scanned, hidden, rejected
		if sorts := w.order != nil && !w.defaultOrder && !p.sorted; o.table.Entity != nil && (sorts || rejected > 0) {
			explained.Missing = o.missingIndex(w)
		}
	}
	return err
}

func (o *operation) tooManyFree() error {
	return fault.New(fault.Limit, "more than %d rows of %s were scanned: declare it as an entity with an index",
		maxFreeRows, o.table.Name)
}

// get returns one row by its id. A row that does not exist and one that the caller may not
// read give the same answer.
func (o *operation) get() error {
	none := query.NotFound(o.table.Name)
	if len(o.query.ID) > maxIDBytes {
		return none
	}
	r, found, err := o.theOne(o.table, o.query.ID, o.auth.AnyTenant, func(r *layout.Row) (bool, error) {
		return o.mayRead(r.Values)
	})
	if err != nil {
		return err
	}
	if !found {
		return none
	}
	o.out.JSON = append(o.out.JSON, `{"row":`...)
	o.out.Row[0] = len(o.out.JSON)
	o.out.JSON = o.appendRow(o.out.JSON, r.Values)
	if err := o.appendIncluded(r.Values); err != nil {
		return err
	}
	o.out.Row[1] = len(o.out.JSON)
	o.out.JSON = append(o.out.JSON, '}')
	return nil
}

// count returns the number of rows, at most the query's limit.
func (o *operation) count() error {
	n, more := 0, false
	w := o.planInput(false)
	err := o.search(o.plan(o.table, w), w, func(*layout.Row, []schema.Value) (bool, error) {
		if more = o.isLimited() && n == o.query.Limit; more {
			return false, nil
		}
		n++
		return true, nil
	})
	o.answerCount(n, more)
	o.out.JSON = append(o.out.JSON, '}')
	return err
}

// isLimited reports whether a count, an update or a delete names how many rows it is about.
func (o *operation) isLimited() bool { return o.query.Limit > 0 }

// answerCount begins the answer of a count, an update or a delete.
func (o *operation) answerCount(n int, more bool) {
	o.out.JSON = strconv.AppendInt(append(o.out.JSON, `{"count":`...), int64(n), 10)
	if o.isLimited() {
		o.out.JSON = strconv.AppendBool(append(o.out.JSON, `,"more":`...), more)
	}
}

// list returns a page.
func (o *operation) list() error {
	w := o.rowsOf()
	last, err := o.listRows(w)
	if err != nil {
		return err
	}
	return w.endPage(last)
}

// listRows writes the rows of a page. last is the row after which another page begins, nil
// when there is none.
func (o *operation) listRows(w *rowWriter) (last []schema.Value, err error) {
	input := o.planInput(true)
	return o.listPlanned(o.plan(o.table, input), input, w)
}

func (o *operation) listPlanned(p plan, input *planInput, w *rowWriter) (last []schema.Value, err error) {
	if p.sorted {
		return o.listSorted(p, input, w)
	}
	return o.listUnsorted(p, input, w)
}

// listSorted writes the rows in the order of the scan.
func (o *operation) listSorted(p plan, input *planInput, w *rowWriter) (last []schema.Value, err error) {
	more := false
	err = o.search(p, input, func(r *layout.Row, asked []schema.Value) (bool, error) {
		switch {
		case !o.query.IsAfter(asked):
			return true, nil
		case w.n == o.query.Limit:
			more = true
			return false, nil
		}
		if err := w.add(r.Values); err != nil {
			return false, err
		}
		if w.n == o.query.Limit {
			last = o.place(asked)
		}
		return w.n < o.query.Limit || !w.included, nil
	})
	if !more {
		last = nil
	}
	return last, err
}

// place copies the values that the query orders by.
func (o *operation) place(asked []schema.Value) []schema.Value {
	place := make([]schema.Value, len(asked))
	for i := range o.query.Order {
		pos := o.query.Order[i].Pos
		place[pos] = ownText(asked[pos])
	}
	return place
}

// ownText copies the text of a value.
func ownText(v schema.Value) schema.Value {
	switch v.Kind() {
	case schema.KindText:
		return schema.TextValue(strings.Clone(v.Text()))
	case schema.KindDecimal:
		return schema.DecimalValue(strings.Clone(v.Text()))
	case schema.KindBytes:
		return schema.BytesValue(strings.Clone(v.Text()))
	case schema.KindJSON:
		return schema.JSONValue(strings.Clone(v.Text()))
	case schema.KindFile:
		f := v.File()
		f.ID, f.Name, f.Type = strings.Clone(f.ID), strings.Clone(f.Name), strings.Clone(f.Type)
		return schema.FileValue(f)
	}
	return v
}

// kept is a row that may be on the page.
type kept struct {
	place []schema.Value
	json  []byte
	// values has those that includes need; nil without includes.
	values []schema.Value
}

// listUnsorted scans all rows and keeps the first of them.
func (o *operation) listUnsorted(p plan, input *planInput, w *rowWriter) (last []schema.Value, err error) {
	page := o.query.Limit + 1 // one more shows whether another page follows
	var rows []kept           // sorted
	size := 0
	err = o.search(p, input, func(r *layout.Row, asked []schema.Value) (bool, error) {
		full := len(rows) == page
		if !o.query.IsAfter(asked) || full && o.query.CompareRows(asked, rows[page-1].place) >= 0 {
			return true, nil
		}
		if full {
			size -= len(rows[page-1].json)
			rows = rows[:page-1]
		}
		at, _ := slices.BinarySearchFunc(rows, asked, func(k kept, asked []schema.Value) int {
			return o.query.CompareRows(k.place, asked)
		})
		rows = slices.Insert(rows, at, kept{o.place(asked), o.appendRow(nil, r.Values), o.including(r.Values)})
		if size += len(rows[at].json); size > maxSortBytes {
			return false, fault.New(fault.Limit,
				"more than %d MiB of rows must be sorted: select fewer fields, set a smaller limit, or add an index for orderBy",
				maxSortBytes>>20)
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	if len(rows) == page {
		rows = rows[:page-1]
		last = rows[page-2].place
	}
	for i := range rows {
		if err := o.spend(query.RowUnits + len(rows[i].json)); err != nil {
			return nil, err
		}
		if err := w.addKept(&rows[i]); err != nil {
			return nil, err
		}
	}
	return last, nil
}

// ---- results ----

// rowWriter writes the "rows" of an answer.
type rowWriter struct {
	*operation
	n int
	// included: the rows are included in another row.
	included bool
}

// rowsOf begins "rows" after the present content of the answer.
func (o *operation) rowsOf() *rowWriter {
	if len(o.out.JSON) == 0 {
		o.out.JSON = append(o.out.JSON, '{')
	}
	o.out.JSON = append(o.out.JSON, `"rows":`...)
	o.out.Rows[0] = len(o.out.JSON)
	o.out.JSON = append(o.out.JSON, '[')
	return &rowWriter{operation: o}
}

// add writes a row with the selected fields.
func (w *rowWriter) add(values []schema.Value) error {
	w.begin()
	w.out.JSON = w.appendRow(w.out.JSON, values)
	return w.done(values)
}

func (w *rowWriter) addKept(row *kept) error {
	w.begin()
	w.out.JSON = append(w.out.JSON, row.json...)
	return w.done(row.values)
}

func (w *rowWriter) begin() {
	if w.n > 0 {
		w.out.JSON = append(w.out.JSON, ',')
		return
	}
	if !w.included {
		w.out.Row[0] = len(w.out.JSON)
	}
}

// done ends a row with what it includes.
func (w *rowWriter) done(values []schema.Value) error {
	if err := w.appendIncluded(values); err != nil {
		return err
	}
	if w.n == 0 && !w.included {
		w.out.Row[1] = len(w.out.JSON)
	}
	w.n++
	if len(w.out.JSON) > maxResultBytes {
		return fault.New(fault.TooLarge, "the rows of the result are larger than %d MiB: select fewer fields, or request fewer rows",
			maxResultBytes>>20)
	}
	return nil
}

// end closes "rows".
func (w *rowWriter) end() {
	w.out.JSON = append(w.out.JSON, ']')
	w.out.Rows[1] = len(w.out.JSON)
}

// endPage closes the answer of a query; last is the row after which another page begins,
// nil when there is none.
func (w *rowWriter) endPage(last []schema.Value) error {
	w.end()
	w.out.JSON = append(w.out.JSON, `,"nextCursor":`...)
	if last == nil {
		w.out.JSON = append(w.out.JSON, `null}`...)
		return nil
	}
	cursor, err := w.query.NextCursor(last, w.Model.cursors, w.Caller)
	if err != nil {
		return err
	}
	w.out.JSON = append(query.AppendText(w.out.JSON, cursor), '}')
	return nil
}

// appendRow appends the row as the query selects.
func (o *operation) appendRow(dst []byte, values []schema.Value) []byte {
	if o.table.Entity == nil {
		return o.query.AppendObject(dst, o.table.object(values))
	}
	o.saw(values, o.query.Selected)
	return o.table.appendFields(dst, values, o.query.Selected)
}

// saw tells of the files at the positions, which the caller gets.
func (o *operation) saw(values []schema.Value, positions []int) {
	if o.SawFile == nil || !o.table.MayHaveFiles() {
		return
	}
	for _, pos := range positions {
		if v := values[pos]; v.Kind() == schema.KindFile {
			o.SawFile(ownText(v).File(), o.table.fileOwner(values, pos))
		}
	}
}

// appendFields appends an object of the fields at the positions.
func (t *table) appendFields(dst []byte, values []schema.Value, positions []int) []byte {
	dst = append(dst, '{')
	for i, pos := range positions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = t.Slots[pos].Field.Type.AppendJSON(append(dst, t.labels[pos]...), values[pos])
	}
	return append(dst, '}')
}
