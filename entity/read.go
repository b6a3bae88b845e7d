package entity

import (
	"slices"
	"strconv"
	"strings"

	"runner.example/internal/fault"
	"runner.example/schema"
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
	if o.table.entity == nil {
		return o.auth.mayReadFree(o.table.object(values))
	}
	return o.auth.mayRead(values)
}

// asked returns the row's values as conditions and orders name them.
func (o *operation) asked(values []schema.Value) []schema.Value {
	if o.table.entity == nil {
		return o.table.object(values).appendValues(nil, o.query.names, o.Work)
	}
	return values
}

// planInput returns what the query says about its rows.
func (o *operation) planInput(ordered bool) *planInput {
	w := &planInput{anyTenant: o.auth.anyTenant, where: &o.query.where}
	if ordered {
		w.order, w.after, w.loose = o.query.order, o.query.after, o.query.written == 0
	}
	if o.table.entity == nil { // members have no slots, except the id
		w.where = nil
		if id, ok := o.query.where.equal(freeID); ok {
			w.equal = []equalTo{{freeID, id}}
		}
	}
	return w
}

// search visits the rows that the caller may read and that match the query's where, with
// the values as the query names them.
func (o *operation) search(p plan, visit func(r *row, asked []schema.Value) (bool, error)) error {
	looked := 0
	return o.walk(o.table, p, func(r *row) (bool, error) {
		if looked++; o.table.entity == nil && looked > maxFreeRows {
			return false, o.tooManyFree()
		}
		if ok, err := o.mayRead(r.values); err != nil || !ok {
			return err == nil, err
		}
		asked := o.asked(r.values)
		if ok, err := o.matches(asked); err != nil || !ok {
			return err == nil, err
		}
		return visit(r, asked)
	})
}

func (o *operation) tooManyFree() error {
	return fault.New(fault.Limit, "more than %d rows of %s were scanned: declare it as an entity with an index", maxFreeRows, o.table.name)
}

// get answers one row by its id. A row that does not exist and one that the caller may not
// read give the same answer.
func (o *operation) get() error {
	none := notFound(o.table.name)
	if len(o.query.id) > maxIDBytes {
		return none
	}
	r, found, err := o.theOne(o.table, o.query.id, o.auth.anyTenant, func(r *row) (bool, error) { return o.mayRead(r.values) })
	if err != nil {
		return err
	}
	if !found {
		return none
	}
	o.out.JSON = append(o.out.JSON, `{"row":`...)
	o.out.Row[0] = len(o.out.JSON)
	o.out.JSON = o.appendRow(o.out.JSON, r.values)
	o.out.Row[1] = len(o.out.JSON)
	o.out.JSON = append(o.out.JSON, '}')
	return nil
}

// count answers the number of rows.
func (o *operation) count() error {
	n := 0
	err := o.search(o.plan(o.table, o.planInput(false)), func(*row, []schema.Value) (bool, error) {
		n++
		return true, nil
	})
	o.out.JSON = append(strconv.AppendInt(append(o.out.JSON, `{"count":`...), int64(n), 10), '}')
	return err
}

// list answers a page.
func (o *operation) list() error {
	p := o.plan(o.table, o.planInput(true))
	w := o.rowsOf()
	if p.sorted {
		return o.listSorted(p, w)
	}
	return o.listUnsorted(p, w)
}

// listSorted writes the rows in the order of the scan.
func (o *operation) listSorted(p plan, w *rowWriter) error {
	var last []schema.Value
	more := false
	err := o.search(p, func(r *row, asked []schema.Value) (bool, error) {
		switch {
		case !o.query.isAfter(asked):
			return true, nil
		case w.n == o.query.limit:
			more = true
			return false, nil
		}
		if err := w.add(r.values); err != nil {
			return false, err
		}
		if w.n == o.query.limit {
			last = o.place(asked)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	if !more {
		last = nil
	}
	return w.endPage(last)
}

// place copies the values that the query orders by.
func (o *operation) place(asked []schema.Value) []schema.Value {
	place := make([]schema.Value, len(asked))
	for i := range o.query.order {
		pos := o.query.order[i].pos
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
	}
	return v
}

// kept is a row that may be on the page.
type kept struct {
	place []schema.Value
	json  []byte
}

// listUnsorted scans all rows and keeps the first of them.
func (o *operation) listUnsorted(p plan, w *rowWriter) error {
	page := o.query.limit + 1 // one more shows whether another page follows
	var rows []kept           // sorted
	size := 0
	err := o.search(p, func(r *row, asked []schema.Value) (bool, error) {
		full := len(rows) == page
		if !o.query.isAfter(asked) || full && o.query.compareRows(asked, rows[page-1].place) >= 0 {
			return true, nil
		}
		if full {
			size -= len(rows[page-1].json)
			rows = rows[:page-1]
		}
		at, _ := slices.BinarySearchFunc(rows, asked, func(k kept, asked []schema.Value) int {
			return o.query.compareRows(k.place, asked)
		})
		rows = slices.Insert(rows, at, kept{o.place(asked), o.appendRow(nil, r.values)})
		if size += len(rows[at].json); size > maxSortBytes {
			return false, fault.New(fault.Limit, "more than %d MiB of rows must be sorted: select fewer fields, set a smaller limit, or add an index for orderBy", maxSortBytes>>20)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	var last []schema.Value
	if len(rows) == page {
		rows = rows[:page-1]
		last = rows[page-2].place
	}
	for i := range rows {
		if err := o.spend(rowUnits + len(rows[i].json)); err != nil {
			return err
		}
		if err := w.addJSON(rows[i].json); err != nil {
			return err
		}
	}
	return w.endPage(last)
}

// ---- answers ----

// rowWriter writes the "rows" of an answer.
type rowWriter struct {
	*operation
	n int
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
	return w.done()
}

func (w *rowWriter) addJSON(object []byte) error {
	w.begin()
	w.out.JSON = append(w.out.JSON, object...)
	return w.done()
}

func (w *rowWriter) begin() {
	if w.n > 0 {
		w.out.JSON = append(w.out.JSON, ',')
		return
	}
	w.out.Row[0] = len(w.out.JSON)
}

func (w *rowWriter) done() error {
	if w.n == 0 {
		w.out.Row[1] = len(w.out.JSON)
	}
	w.n++
	if len(w.out.JSON) > maxResultBytes {
		return fault.New(fault.TooLarge, "the rows are longer than %d MiB: select fewer fields, or request fewer rows", maxResultBytes>>20)
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
	cursor, err := w.query.nextCursor(last, w.Model.cursors, w.Caller)
	if err != nil {
		return err
	}
	w.out.JSON = append(appendText(w.out.JSON, cursor), '}')
	return nil
}

// appendRow appends the row as the query selects.
func (o *operation) appendRow(dst []byte, values []schema.Value) []byte {
	if o.table.entity == nil {
		return o.table.appendObject(dst, values, o.query)
	}
	return o.table.appendFields(dst, values, o.query.selected)
}

// appendFields appends an object of the fields at the positions.
func (t *table) appendFields(dst []byte, values []schema.Value, positions []int) []byte {
	dst = append(dst, '{')
	for i, pos := range positions {
		if i > 0 {
			dst = append(dst, ',')
		}
		s := &t.slots[pos]
		dst = s.field.Type.AppendJSON(append(dst, s.label...), values[pos])
	}
	return append(dst, '}')
}

// appendObject appends an untyped row as the query selects: the requested members in this
// order, or all that the caller may read.
func (t *table) appendObject(dst []byte, values []schema.Value, q *query) []byte {
	dst = append(dst, '{')
	start := len(dst)
	put := func(name string, raw []byte) {
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(append(appendText(dst, name), ':'), raw...)
	}
	id := appendText(nil, values[freeID].Text())
	object := borrowBytes(values[freeObject].Text())
	if q.members == nil {
		if q.only == nil || slices.Contains(q.only, "id") {
			put("id", id)
		}
		for name, raw := range membersOf(object) {
			if q.only == nil || slices.Contains(q.only, name) {
				put(name, raw)
			}
		}
		return append(dst, '}')
	}
	found := make([][]byte, len(q.members))
	for name, raw := range membersOf(object) {
		if i, ok := q.memberAt[name]; ok {
			found[i] = raw
		}
	}
	if i, ok := q.memberAt["id"]; ok {
		found[i] = id
	}
	for i, raw := range found {
		if raw != nil {
			put(q.members[i], raw)
		}
	}
	return append(dst, '}')
}
