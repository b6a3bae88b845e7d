package entity

import (
	"bytes"
	"errors"
	"slices"

	"runner.example/schema"
	"runner.example/store"
)

// planInput is what is known about the rows of a search.
type planInput struct {
	anyTenant bool
	equal     []equalTo
	where     *condition // nil: nothing
	// order is the requested order, ending with the id; nil: any.
	order []orderTerm
	// loose: no order was requested; it is the order of ids.
	loose bool
	after []schema.Value // of order; nil: from the start
}

// equalTo is the required value of a slot.
type equalTo struct {
	slot  int
	value schema.Value
}

// at returns the required value of a slot; false when it is unknown.
func (w *planInput) at(slot int) (schema.Value, bool) {
	for _, e := range w.equal {
		if e.slot == slot {
			return e.value, true
		}
	}
	if w.where == nil {
		return schema.Value{}, false
	}
	if v, ok := w.where.equal(slot); ok {
		return v, true
	}
	if list, ok := w.where.oneOf(slot); ok && len(list) == 1 {
		return list[0], true
	}
	return schema.Value{}, false
}

// plan is a way to scan all rows that may match, and few others.
type plan struct {
	// points are the tails of the rows, when their ids are known.
	points []string
	index  *index // nil: the rows' own keys
	ranges []keyRange
	// reverse scans the ranges from their end.
	reverse bool
	// sorted: the rows come in the requested order.
	sorted bool
	rank   int
}

// keyRange has the keys from lo to before hi, all of which begin with prefix; a nil hi is
// unlimited.
type keyRange struct{ prefix, lo, hi []byte }

// The ranks of plans. A plan in order stops after a page, one that is not has to
// look at all rows of its ranges; equalities narrow these most. Where an order was
// asked for, an index that has it and an equality comes first. Where none was, the
// narrowest comes first: few rows are soon put in the order of their ids.
const (
	rankAll     = 0
	rankOrder   = 20 // 2 more with a range
	rankAmong   = 26
	rankEqual   = 30 // 4 more for each equality, 2 more with a range, 1 more in order
	rankBoth    = 70 // likewise
	rankOnlyRow = 127
)

// rankOf compares plans by what is known of them.
func rankOf(given int, narrowed, among, sorted, loose bool) int {
	rank := 0
	switch {
	case given > 0 && sorted && !loose:
		rank = rankBoth + 4*given
	case given > 0:
		rank = rankEqual + 4*given
	case among:
		rank = rankAmong
	case sorted || narrowed && loose:
		rank = rankOrder
	case narrowed:
		rank = rankAll + 1
	}
	if narrowed {
		rank += 2
	}
	if sorted && given > 0 {
		rank++
	}
	return rank
}

// plan chooses the scan. It depends on the input and on the built indexes, never on rows.
func (a *Access) plan(t *table, w *planInput) plan {
	if p, ok := a.planPoints(t, w); ok {
		return p
	}
	best, ok := a.planRows(t, w)
	for _, x := range t.indexes {
		if p, usable := a.planIndex(t, x, w); usable && (!ok || p.rank > best.rank) {
			best, ok = p, true
		}
	}
	return best // there is one: rows of all tenants have the locator
}

// planPoints serves inputs with the ids of the rows.
func (a *Access) planPoints(t *table, w *planInput) (plan, bool) {
	var ids []schema.Value
	if id, ok := w.at(t.id); ok {
		ids = []schema.Value{id}
	} else if w.where != nil {
		ids, _ = w.where.oneOf(t.id)
	}
	tenant, bound := a.bound(t, w.anyTenant)
	if len(ids) == 0 || t.tenant >= 0 && !bound {
		return plan{}, false
	}
	p := plan{points: []string{}, sorted: true}
	for _, id := range ids {
		if id.Kind() == schema.KindText {
			p.points = append(p.points, string(t.tail(nil, tenant, id.Text())))
		}
	}
	switch {
	case len(p.points) < 2 || w.order == nil:
	case w.order[0].pos != t.id:
		p.sorted = false
	case w.order[0].desc:
		slices.Reverse(p.points)
	}
	return p, true
}

// planRows scans the rows of the table, or of the tenant.
func (a *Access) planRows(t *table, w *planInput) (plan, bool) {
	tenant, bound := a.bound(t, w.anyTenant)
	if t.tenant >= 0 && !bound {
		return plan{}, false
	}
	prefix := t.tail(slices.Clone(t.prefix), tenant, "")
	r := keyRange{prefix: prefix}
	p := plan{rank: rankAll}
	if w.order == nil || w.order[0].pos == t.id {
		p.sorted, p.rank = true, rankOrder
		p.reverse = w.order != nil && w.order[0].desc
		if w.after != nil {
			r.resume(append(slices.Clone(prefix), w.after[0].Text()...), p.reverse)
		}
	}
	p.ranges = []keyRange{r}
	return p, true
}

// resume removes the keys up to this one, in the direction of the scan.
func (r *keyRange) resume(key []byte, reverse bool) {
	if reverse {
		r.below(key)
		return
	}
	r.from(append(key, 0))
}

func (r *keyRange) from(key []byte) {
	if bytes.Compare(key, r.lo) > 0 {
		r.lo = key
	}
}

// below sets the upper limit unless there is a lower one; nil is none.
func (r *keyRange) below(key []byte) {
	if key != nil && (r.hi == nil || bytes.Compare(key, r.hi) < 0) {
		r.hi = key
	}
}

// planIndex tells how the index serves what is wanted; false when it cannot, or
// not without looking at the rows of other tenants.
func (a *Access) planIndex(t *table, x *index, w *planInput) (plan, bool) {
	if built := x.builtAt.Load(); built == 0 || built > a.snapshot+1 {
		return plan{}, false
	}
	tenant, bound := a.bound(t, w.anyTenant)
	prefix := slices.Clone(x.prefix)
	equal, given, nulls := 0, 0, false
	for _, c := range x.columns {
		v := schema.TextValue(tenant)
		if !bound || c.slot != t.tenant {
			var ok bool
			if v, ok = w.at(c.slot); !ok || !t.holds(c.slot, v) {
				break
			}
			given++
		}
		prefix = appendEntry(prefix, v, c.desc)
		nulls = nulls || v.IsNull()
		equal++
	}
	if bound && (x.tenantColumn < 0 || x.tenantColumn >= equal) {
		return plan{}, false
	}
	p := plan{index: x, ranges: []keyRange{{prefix: prefix, lo: prefix}}}
	if x.unique && !nulls && equal == len(x.columns) {
		p.sorted, p.rank = true, rankOnlyRow
		return p, true
	}
	if id, ok := w.at(t.id); ok && equal == len(x.columns) && !x.unique && t.holds(t.id, id) {
		prefix = appendEntry(prefix, id, x.idDesc())
		p.ranges[0] = keyRange{prefix: prefix, lo: prefix}
		p.sorted = w.order == nil || !slices.ContainsFunc(w.order, func(o orderTerm) bool { return o.pos == t.tenant && o.desc != x.idDesc() })
		p.rank = rankOnlyRow
		return p, true
	}
	p.sorted, p.reverse = t.inOrder(x, equal, w.order)
	ranged, among := t.narrow(&p, x, equal, w.where)
	if among && w.order != nil {
		p.sorted = false
	}
	p.rank = rankOf(given, ranged || among, among, p.sorted, w.loose)
	if p.rank == rankAll && x != t.locator {
		return plan{}, false
	}
	if p.sorted && w.after != nil && !among && !(x.unique && nulls) {
		t.resume(&p, x, equal, prefix, w)
	}
	return p, true
}

// holds reports that the value is one that the slot's rows could hold: then its
// place among the entries is known.
func (t *table) holds(slot int, v schema.Value) bool {
	if v.IsNull() || slot == t.id || slot == t.tenant {
		return v.IsNull() || v.Kind() == schema.KindText
	}
	f := t.slots[slot].field
	switch f.Type.Kind {
	case schema.Int:
		return v.Kind() == schema.KindInt
	case schema.Float:
		return v.Kind() == schema.KindFloat
	case schema.Decimal:
		return v.Kind() == schema.KindDecimal && placesOf(v.Text()) == f.Type.Places && len(v.Text()) <= maxDecimalText
	case schema.Bool:
		return v.Kind() == schema.KindBool
	case schema.Time:
		return v.Kind() == schema.KindTime
	case schema.Date:
		return v.Kind() == schema.KindDate
	case schema.Duration:
		return v.Kind() == schema.KindDuration
	}
	return v.Kind() == schema.KindText && len(v.Text()) < maxEntryBytes
}

// maxDecimalText is a decimal of 38 digits with a sign, a point and a zero in
// front of it.
const maxDecimalText = 41

func placesOf(digits string) int {
	for i := range len(digits) {
		if digits[i] == '.' {
			return len(digits) - i - 1
		}
	}
	return 0
}

// inOrder reports that the entries behind the first columns, which are known,
// are in the order asked for, or in its reverse.
func (t *table) inOrder(x *index, known int, order []orderTerm) (sorted, reverse bool) {
	if order == nil {
		return true, false
	}
	rest := slices.Clone(x.columns[known:])
	rest = append(rest, indexColumn{t.id, x.idDesc()})
	if t.tenant >= 0 && x.tenantColumn < 0 {
		rest = append(rest, indexColumn{t.tenant, x.idDesc()})
	}
	n := 0
	for i := range order {
		term := &order[i]
		if slices.ContainsFunc(x.columns[:known], func(c indexColumn) bool { return c.slot == term.pos }) {
			continue
		}
		if n == len(rest) {
			return true, reverse // no two rows are equal up to here
		}
		if rest[n].slot != term.pos || n > 0 && reverse != (rest[n].desc != term.desc) {
			return false, false
		}
		reverse = rest[n].desc != term.desc
		n++
	}
	return true, reverse // the order ends where no two rows are equal
}

// narrow makes the plan's range one of the values that the first column behind
// the known ones may have, or several of those that it must have one of.
func (t *table) narrow(p *plan, x *index, known int, where *condition) (ranged, among bool) {
	if where == nil || known == len(x.columns) {
		return false, false
	}
	c, prefix := x.columns[known], p.ranges[0].prefix
	if list, ok := where.oneOf(c.slot); ok {
		p.ranges = p.ranges[:0]
		for _, v := range list {
			if t.holds(c.slot, v) {
				key := appendEntry(slices.Clone(prefix), v, c.desc)
				p.ranges = append(p.ranges, keyRange{prefix: key, lo: key})
			}
		}
		return false, true
	}
	s, ok := where.within(c.slot)
	if !ok {
		return false, false
	}
	r := &p.ranges[0]
	edge := func(v schema.Value) []byte { return appendEntry(slices.Clone(prefix), v, c.desc) }
	start := []byte{entryValue}
	if s.prefix != "" && len(s.prefix) < maxEntryBytes {
		start = appendTextStart(start, s.prefix)
	}
	if c.desc {
		invert(start)
	}
	start = append(slices.Clone(prefix), start...)
	r.from(slices.Clone(start))
	r.below(after(start))
	if !s.low.IsNull() && t.holds(c.slot, s.low) {
		r.bound(edge(s.low), c.desc, s.lowOpen)
	}
	if !s.high.IsNull() && t.holds(c.slot, s.high) {
		r.bound(edge(s.high), !c.desc, s.highOpen)
	}
	return true, false
}

// bound cuts the range off at the entries that begin with edge: above them, or
// below. Open: they lie outside themselves.
func (r *keyRange) bound(edge []byte, above, open bool) {
	if above == open { // the edge itself is the bound
		if above {
			r.below(edge)
		} else {
			r.from(edge)
		}
		return
	}
	if next := after(edge); above {
		r.below(next)
	} else if next != nil {
		r.from(next)
	}
}

// resume starts the plan behind the place where the page before ended.
func (t *table) resume(p *plan, x *index, known int, prefix []byte, w *planInput) {
	key := slices.Clone(prefix)
	value := func(slot int) (schema.Value, bool) {
		for i := range w.order {
			if w.order[i].pos == slot {
				return w.after[i], t.holds(slot, w.after[i])
			}
		}
		return schema.Value{}, false
	}
	whole := x.unique
	for _, c := range x.columns[known:] {
		v, ok := value(c.slot)
		if !ok {
			return // every row is asked whether it comes after anyway
		}
		whole = whole && !v.IsNull()
		key = appendEntry(key, v, c.desc)
	}
	if !x.unique { // of a unique index, what the known columns hold is not known here
		id, ok := value(t.id)
		if !ok {
			return
		}
		key = appendEntry(key, id, x.idDesc())
		if tenant, ok := value(t.tenant); ok && x.tenantColumn < 0 {
			key = appendEntry(key, tenant, x.idDesc())
		}
	} else if !whole {
		return
	}
	p.ranges[0].resume(key, p.reverse)
}

// ---- walking ----

// walk visits the rows of a plan, each counted as touched, until visit says no.
// A row is valid during the visit alone.
func (a *Access) walk(t *table, p plan, visit func(*row) (bool, error)) error {
	r := row{values: a.take(t)}
	defer a.give(r.values)
	for _, r.tail = range p.points {
		found, err := a.readInto(t, &r)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if more, err := visit(&r); err != nil || !more {
			return err
		}
	}
	for i := range p.ranges {
		if more, err := a.walkRange(t, &p, &p.ranges[i], &r, visit); err != nil || !more {
			return err
		}
	}
	return nil
}

func (a *Access) walkRange(t *table, p *plan, r *keyRange, found *row, visit func(*row) (bool, error)) (bool, error) {
	if r.hi != nil && bytes.Compare(r.lo, r.hi) >= 0 {
		return true, nil
	}
	from := r.lo
	if p.reverse {
		from = r.hi
	}
	empty := true
	for item, err := range a.Tx.Scan(r.prefix, from, p.reverse) {
		if err != nil {
			return false, storeFault(err)
		}
		high := r.hi != nil && bytes.Compare(item.Key, r.hi) >= 0
		if high && p.reverse {
			continue // hi itself
		}
		if high || bytes.Compare(item.Key, r.lo) < 0 {
			break
		}
		if err := a.touch(); err != nil {
			return false, err
		}
		empty = false
		if err := a.load(t, p.index, found, item); err != nil {
			return false, err
		}
		if more, err := visit(found); err != nil || !more {
			return false, err
		}
	}
	if empty { // looked for, like a row that is not there
		return true, a.touch()
	}
	return true, nil
}

// load reads the row that an item is, or leads to.
func (a *Access) load(t *table, x *index, r *row, item store.Item) error {
	if x == nil {
		r.tail, r.raw = borrow(item.Key[len(t.prefix):]), borrow(item.Value)
		return a.decode(t, r)
	}
	r.tail = borrow(item.Value)
	raw, err := a.Tx.Get(a.rowKey(t, r.tail))
	if errors.Is(err, store.ErrNotFound) {
		err = errRow
	}
	if err != nil {
		return storeFault(err)
	}
	r.raw = borrow(raw)
	return a.decode(t, r)
}
