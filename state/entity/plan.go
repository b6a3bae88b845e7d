package entity

import (
	"bytes"
	"errors"
	"slices"

	"runner.example/schema"
	"runner.example/state/entity/layout"
	"runner.example/state/entity/query"
	"runner.example/state/store"
)

// planInput is what is known about the rows of a search.
type planInput struct {
	anyTenant bool
	equal     []equalTo
	where     *query.Condition // nil: nothing
	// order is the requested order, ending with the id; nil: any.
	order []query.OrderTerm
	// defaultOrder: the query requests no order, so order is that of ids.
	defaultOrder bool
	after        []schema.Value // of order; nil: from the start
	ids          query.Span     // in which ids are
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
	if v, ok := w.where.Equal(slot); ok {
		return v, true
	}
	if list, ok := w.where.OneOf(slot); ok && len(list) == 1 {
		return list[0], true
	}
	return schema.Value{}, false
}

// foldedAt returns the required value of a column of folded texts; false when it is unknown.
func (w *planInput) foldedAt(c layout.Column) (schema.Value, bool) {
	if v, ok := w.at(c.Slot); ok {
		return c.Of(v), true
	}
	if w.where == nil {
		return schema.Value{}, false
	}
	return w.where.EqualFolded(c.Slot)
}

// plan is a way to scan all rows that may match, and few others.
type plan struct {
	// points are the tails of the rows, when their ids are known.
	points []string
	index  *layout.Index // nil: the rows' own keys
	ranges []keyRange
	// within is the prefix of the index if the operation scans several of its ranges, with this plan or
	// with others: see store.Tx.ScanRange. Otherwise it is nil.
	within []byte
	// reverse scans the ranges from their end.
	reverse bool
	// sorted: the rows come in the requested order.
	sorted bool
	rank   int
}

// keyRange has the keys from lo to before hi, all of which begin with prefix; a nil hi is
// unlimited.
type keyRange struct{ prefix, lo, hi []byte }

// The ranks of plans. A plan in order stops after a page; one that is not must scan all
// rows of its ranges. Equalities narrow the ranges most. If an order was requested, an
// index with that order and an equality is best. Otherwise the narrowest is best: few rows
// are quickly sorted by their ids.
const (
	rankAll     = 0
	rankOrder   = 20 // 2 more with a range
	rankAmong   = 26
	rankEqual   = 30 // 4 more for each equality, 2 more with a range, 1 more in order
	rankBoth    = 70 // likewise
	rankOnlyRow = 127
)

// rankOf returns the rank of a plan; the plan with the highest rank is used.
func rankOf(given int, narrowed, among, sorted, defaultOrder bool) int {
	rank := 0
	switch {
	case given > 0 && sorted && !defaultOrder:
		rank = rankBoth + 4*given
	case given > 0:
		rank = rankEqual + 4*given
	case among:
		rank = rankAmong
	case sorted || narrowed && defaultOrder:
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
	for _, x := range t.Indexes {
		if p, usable := a.planIndex(t, x, w); usable && (!ok || p.rank > best.rank) {
			best, ok = p, true
		}
	}
	return best // it exists: rows of all tenants have the locator
}

// planPoints serves inputs with the ids of the rows.
func (a *Access) planPoints(t *table, w *planInput) (plan, bool) {
	var ids []schema.Value
	if id, ok := w.at(t.ID); ok {
		ids = []schema.Value{id}
	} else if w.where != nil {
		ids, _ = w.where.OneOf(t.ID)
	}
	tenant, bound := a.bound(t, w.anyTenant)
	if len(ids) == 0 || t.Tenant >= 0 && !bound {
		return plan{}, false
	}
	p := plan{points: []string{}, sorted: true}
	for _, id := range ids {
		if id.Kind() == schema.KindText {
			p.points = append(p.points, string(t.Tail(nil, tenant, id.Text())))
		}
	}
	switch {
	case len(p.points) < 2 || w.order == nil:
	case w.order[0].Pos != t.ID:
		p.sorted = false
	case w.order[0].Desc:
		slices.Reverse(p.points)
	}
	return p, true
}

// planRows scans the rows of the table, or of the tenant.
func (a *Access) planRows(t *table, w *planInput) (plan, bool) {
	tenant, bound := a.bound(t, w.anyTenant)
	if t.Tenant >= 0 && !bound {
		return plan{}, false
	}
	prefix := t.Tail(slices.Clone(t.Prefix), tenant, "")
	r := keyRange{prefix: prefix}
	p := plan{rank: rankAll}
	if w.order == nil || w.order[0].Pos == t.ID {
		p.sorted, p.rank = true, rankOrder
		p.reverse = w.order != nil && w.order[0].Desc
		if w.after != nil {
			r.resume(append(slices.Clone(prefix), w.after[0].Text()...), p.reverse)
		}
	}
	if isID(w.ids.Low) {
		r.from(rowKey(prefix, w.ids.Low, w.ids.LowOpen))
	}
	if isID(w.ids.High) {
		r.below(rowKey(prefix, w.ids.High, !w.ids.HighOpen))
	}
	if isID(w.ids.Low) || isID(w.ids.High) {
		p.rank = rankOf(0, true, false, p.sorted, w.defaultOrder)
	}
	p.ranges = []keyRange{r}
	return p, true
}

// rowKey returns the key of a row of the prefix, or the least one behind it.
func rowKey(prefix []byte, id schema.Value, behind bool) []byte {
	key := append(slices.Clone(prefix), id.Text()...)
	if behind {
		key = append(key, 0)
	}
	return key
}

// isID reports whether a value may be an id.
func isID(v schema.Value) bool { return v.Kind() == schema.KindText && len(v.Text()) <= maxIDBytes }

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

// entryBytes is enough for most values that a plan knows.
const entryBytes = 96

// planIndex returns the plan that uses the index; false when the index does not serve the
// input, or only by scanning rows of other tenants.
func (a *Access) planIndex(t *table, x *layout.Index, w *planInput) (plan, bool) {
	if !x.IsBuiltAt(a.snapshot) {
		return plan{}, false
	}
	tenant, bound := a.bound(t, w.anyTenant)
	prefix := append(make([]byte, 0, len(x.Prefix)+entryBytes), x.Prefix...)
	if bound && x.TenantColumn < 0 {
		return plan{}, false
	}
	known := func(c layout.Column) (v schema.Value, ok bool) {
		switch {
		case bound && c.Slot == t.Tenant:
			return schema.TextValue(tenant), true
		case c.IgnoreCase:
			v, ok = w.foldedAt(c)
		default:
			v, ok = w.at(c.Slot)
		}
		return v, ok && t.holds(c.Slot, v)
	}
	equal, given, nulls := 0, 0, false
	for _, c := range x.Columns {
		v, ok := known(c)
		if !ok {
			break
		}
		if !bound || c.Slot != t.Tenant {
			given++
		}
		prefix = layout.AppendEntry(prefix, v, c.Desc)
		nulls = nulls || v.IsNull()
		equal++
	}
	p := plan{index: x, ranges: []keyRange{{prefix: prefix, lo: prefix}}}
	if x.Unique && !nulls && equal == len(x.Columns) {
		p.sorted, p.rank = true, rankOnlyRow
		return p, true
	}
	if id, ok := w.at(t.ID); ok && equal == len(x.Columns) && !x.Unique && t.holds(t.ID, id) {
		prefix = layout.AppendEntry(prefix, id, x.IDDesc())
		p.ranges[0] = keyRange{prefix: prefix, lo: prefix}
		p.sorted = w.order == nil || !slices.ContainsFunc(w.order, func(o query.OrderTerm) bool {
			return o.Pos == t.Tenant && o.Desc != x.IDDesc()
		})
		p.rank = rankOnlyRow
		return p, true
	}
	p.sorted, p.reverse = t.inOrder(x, equal, w.order)
	ranged, among := t.narrow(&p, x, equal, w.where)
	fixed := equal // how many columns have one value in each range
	if among {
		p.sorted = p.sorted && w.order == nil
		for fixed++; fixed < len(x.Columns); fixed++ {
			c := x.Columns[fixed]
			v, ok := known(c)
			if !ok {
				break
			}
			for i := range p.ranges {
				key := layout.AppendEntry(p.ranges[i].prefix, v, c.Desc)
				p.ranges[i] = keyRange{prefix: key, lo: key}
			}
		}
	}
	if bound && x.TenantColumn >= fixed {
		return plan{}, false
	}
	p.rank = rankOf(given, ranged || among, among, p.sorted, w.defaultOrder)
	if p.rank == rankAll && x != t.Locator {
		return plan{}, false
	}
	if p.sorted && w.after != nil && !among && !(x.Unique && nulls) {
		t.resume(&p, x, equal, prefix, w)
	}
	return p, true
}

// holds reports whether rows can have the value in the slot. Only then is its position
// among the entries known.
func (t *table) holds(slot int, v schema.Value) bool {
	if v.IsNull() || slot == t.ID || slot == t.Tenant {
		return v.IsNull() || v.Kind() == schema.KindText
	}
	f := t.Slots[slot].Field
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
	return v.Kind() == schema.KindText && len(v.Text()) < layout.MaxEntryBytes
}

// maxDecimalText is the length of a decimal of 38 digits with a sign, a point and a leading
// zero.
const maxDecimalText = 41

func placesOf(digits string) int {
	for i := range len(digits) {
		if digits[i] == '.' {
			return len(digits) - i - 1
		}
	}
	return 0
}

// inOrder reports whether the entries after the known first columns are in the requested
// order, or in its reverse.
func (t *table) inOrder(x *layout.Index, known int, order []query.OrderTerm) (sorted, reverse bool) {
	if order == nil {
		return true, false
	}
	var buf [8]layout.Column
	rest := append(append(buf[:0], x.Columns[known:]...), layout.Column{Slot: t.ID, Desc: x.IDDesc()})
	if t.Tenant >= 0 && x.TenantColumn < 0 {
		rest = append(rest, layout.Column{Slot: t.Tenant, Desc: x.IDDesc()})
	}
	n := 0
	for i := range order {
		term := &order[i]
		if slices.ContainsFunc(x.Columns[:known], func(c layout.Column) bool { return c.Slot == term.Pos && !c.IgnoreCase }) {
			continue
		}
		if n == len(rest) {
			return true, reverse // no two rows are equal up to here
		}
		if rest[n].Slot != term.Pos || rest[n].IgnoreCase || n > 0 && reverse != (rest[n].Desc != term.Desc) {
			return false, false
		}
		reverse = rest[n].Desc != term.Desc
		n++
	}
	return true, reverse // the order ends at columns in which no two rows are equal
}

// narrow restricts the plan's range by the condition on the first column after the known
// ones: to a range of values, or to several values.
func (t *table) narrow(p *plan, x *layout.Index, known int, where *query.Condition) (ranged, among bool) {
	switch {
	case where == nil:
		return false, false
	case known == len(x.Columns) && !x.Unique: // the ids of equal values
		s, ok := where.Within(t.ID)
		if ok {
			t.cut(&p.ranges[0], layout.Column{Slot: t.ID, Desc: x.IDDesc()}, s)
		}
		return ok, false
	case known == len(x.Columns):
		return false, false
	}
	c, prefix := x.Columns[known], p.ranges[0].prefix
	if list, ok := where.OneOf(c.Slot); ok && !c.IgnoreCase {
		p.ranges = p.ranges[:0]
		for _, v := range list {
			if t.holds(c.Slot, v) {
				key := layout.AppendEntry(slices.Clone(prefix), v, c.Desc)
				p.ranges = append(p.ranges, keyRange{prefix: key, lo: key})
			}
		}
		p.within = x.Prefix
		return false, true
	}
	s, ok := where.Within(c.Slot)
	if c.IgnoreCase {
		s, ok = where.WithinFolded(c.Slot)
	}
	if !ok {
		return false, false
	}
	r := &p.ranges[0]
	start := []byte{layout.EntryValue}
	if s.Prefix != "" && len(s.Prefix) < layout.MaxEntryBytes {
		start = layout.AppendTextStart(start, s.Prefix)
	}
	if c.Desc {
		layout.Invert(start)
	}
	start = append(slices.Clone(prefix), start...)
	r.from(slices.Clone(start))
	r.below(layout.PrefixEnd(start))
	t.cut(r, c, s)
	return true, false
}

// cut restricts a range to the values of its next column that are in the span.
func (t *table) cut(r *keyRange, c layout.Column, s query.Span) {
	edge := func(v schema.Value) []byte { return layout.AppendEntry(slices.Clone(r.prefix), v, c.Desc) }
	if !s.Low.IsNull() && t.holds(c.Slot, s.Low) {
		r.bound(edge(s.Low), c.Desc, s.LowOpen)
	}
	if !s.High.IsNull() && t.holds(c.Slot, s.High) {
		r.bound(edge(s.High), !c.Desc, s.HighOpen)
	}
}

// bound cuts the range at the entries that begin with edge: it keeps those above, or those
// below. Open excludes these entries.
func (r *keyRange) bound(edge []byte, above, open bool) {
	if above == open { // the edge itself is the limit
		if above {
			r.below(edge)
		} else {
			r.from(edge)
		}
		return
	}
	if next := layout.PrefixEnd(edge); above {
		r.below(next)
	} else if next != nil {
		r.from(next)
	}
}

// resume starts the plan after the end of the previous page.
func (t *table) resume(p *plan, x *layout.Index, known int, prefix []byte, w *planInput) {
	key := slices.Clone(prefix)
	value := func(slot int) (schema.Value, bool) {
		for i := range w.order {
			if w.order[i].Pos == slot {
				return w.after[i], t.holds(slot, w.after[i])
			}
		}
		return schema.Value{}, false
	}
	whole := x.Unique
	for _, c := range x.Columns[known:] {
		v, ok := value(c.Slot)
		if !ok {
			return // every row is compared with the end of the page anyway
		}
		whole = whole && !v.IsNull()
		key = layout.AppendEntry(key, v, c.Desc)
	}
	if !x.Unique { // an entry of a unique index has no id, unless a column is null
		id, ok := value(t.ID)
		if !ok {
			return
		}
		key = layout.AppendEntry(key, id, x.IDDesc())
		if tenant, ok := value(t.Tenant); ok && x.TenantColumn < 0 {
			key = layout.AppendEntry(key, tenant, x.IDDesc())
		}
	} else if !whole {
		return
	}
	p.ranges[0].resume(key, p.reverse)
}

// ---- scanning ----

// scan calls visit for the rows of a plan, and counts each as touched, until visit returns
// false. A row is valid only during the call.
func (a *Access) scan(t *table, p plan, visit func(*layout.Row) (bool, error)) error {
	r := layout.Row{Values: a.take(t)}
	defer a.give(r.Values)
	for _, r.Tail = range p.points {
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
		if more, err := a.scanRange(t, &p, &p.ranges[i], &r, visit); err != nil || !more {
			return err
		}
	}
	return nil
}

func (a *Access) scanRange(t *table, p *plan, r *keyRange, found *layout.Row,
	visit func(*layout.Row) (bool, error)) (bool, error) {
	r.from(r.prefix)
	r.below(layout.PrefixEnd(slices.Clone(r.prefix)))
	if r.hi != nil && bytes.Compare(r.lo, r.hi) >= 0 {
		return true, nil
	}
	empty := true
	for item, err := range a.Tx.ScanRange(p.within, r.lo, r.hi, p.reverse) {
		if err != nil {
			return false, storeFault(err)
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
	if empty { // counted like a row that does not exist
		return true, a.touch()
	}
	return true, nil
}

// load reads the row that an item is, or that an index entry refers to.
func (a *Access) load(t *table, x *layout.Index, r *layout.Row, item store.Item) error {
	if x == nil {
		r.Tail, r.Raw = layout.BorrowString(item.Key[len(t.Prefix):]), layout.BorrowString(item.Value)
		return a.decode(t, r)
	}
	r.Tail = layout.BorrowString(item.Value)
	raw, err := a.Tx.Get(a.rowKey(t, r.Tail))
	if errors.Is(err, store.ErrNotFound) {
		err = layout.ErrDamaged
	}
	if err != nil {
		return storeFault(err)
	}
	r.Raw = layout.BorrowString(raw)
	return a.decode(t, r)
}
