package entity

import (
	"context"
	"errors"
	"iter"

	"runner.example/internal/caller"
	"runner.example/internal/cost"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/schema"
	"runner.example/state/entity/catalog"
	"runner.example/state/entity/layout"
	"runner.example/state/entity/query"
	"runner.example/state/store"
)

// maxFreeRows is the number of rows of untyped mode that one operation may scan, because no
// index serves it.
const maxFreeRows = 10_000

// Access is the authority of one caller over rows in one transaction. One goroutine may use
// it; after Reset it may be used for another transaction.
type Access struct {
	Model  *Model
	Tx     *store.Tx
	Caller *caller.Caller
	// MaxRows is the number of rows that it may touch, found or not; beyond it operations
	// fail with Limit. Zero permits none.
	MaxRows int
	// Import lets a caller of kind system set ids and the times that the host otherwise
	// sets, for rows from elsewhere.
	Import bool
	// Context is checked at every row: when it has ended, operations fail with Deadline.
	// Nil never ends.
	Context context.Context
	// Work meters what operations compute. When it fails, they fail with Deadline, and the
	// transaction must not be committed. Nil never fails.
	Work *cost.Meter

	touched  int
	checked  bool                // the generation was compared
	snapshot uint64              // once checked: the last visible commit
	inserted map[string]struct{} // keys of rows inserted in this transaction
	ids      ids.Sequence
	lookedUp lookedUpRows
	pending  pendingRows

	key  []byte // scratch
	tail []byte // of a row that a rule looks up
	free [][]schema.Value
}

// Result is the answer of an operation.
type Result struct {
	// JSON is the answer. Do appends to JSON[:0].
	JSON []byte
	// Rows is the range of the value of "rows" in JSON, Row that of "row" or of the first
	// row; zero: none.
	Rows, Row [2]int
}

// Reset prepares the Access for another transaction, or for another run of the same one.
func (a *Access) Reset(m *Model, tx *store.Tx, who *caller.Caller, maxRows int) {
	a.Model, a.Tx, a.Caller, a.MaxRows, a.Import, a.Context, a.Work = m, tx, who, maxRows, false, nil, nil
	a.touched, a.checked, a.inserted, a.ids = 0, false, nil, ids.Sequence{}
	a.lookedUp.clear()
	a.pending = pendingRows{}
}

// Touched returns the number of rows touched since Reset.
func (a *Access) Touched() int { return a.touched }

// Do runs one operation of the guest ABI: "query", "get", "count", "aggregate", "insert", "update" or
// "delete". The arguments are one JSON object, which is not kept; out gets the answer. For an
// insert out may be nil: the rows are then not returned.
// Errors are faults: NotFound, Invalid, Denied, Conflict, Limit, TooLarge, Deadline,
// Unavailable (of the store, or ErrOutdated). After an error nothing has changed, and out
// is undefined.
func (a *Access) Do(op string, args []byte, out *Result) error {
	if out != nil {
		out.JSON, out.Rows, out.Row = out.JSON[:0], [2]int{}, [2]int{}
	}
	kind, ok := query.OperationOf(op)
	if !ok {
		return query.Invalidf("unknown operation %q", op)
	}
	if err := a.spend(query.ArgumentUnits * len(args)); err != nil {
		return err
	}
	read, err := query.ReadArguments(kind, args)
	if err != nil {
		return err
	}
	t := a.Model.tableNamed(read.Entity)
	if t == nil {
		return read.UnknownEntity(a.Model.names)
	}
	if err := a.check(); err != nil {
		return err
	}
	a.pending = pendingRows{table: t}
	auth := t.rights.For(a.ruleInput())
	auth.Work = a.Work
	if a.Import && a.Caller.Kind == caller.System {
		auth.AllowImport()
	}
	request, err := read.Request(&auth, a.Model.cursors)
	if err != nil {
		return err
	}
	o := operation{Access: a, op: kind, table: t, auth: &auth, out: out, query: request.Query}
	switch kind {
	case query.OpInsert:
		return o.insert(request.Inserted, read.IsList())
	case query.OpAggregate:
		return o.aggregate(request.Aggregation)
	}
	o.includes = a.includesOf(o.query, t, out)
	switch kind {
	case query.OpGet:
		return o.get()
	case query.OpCount:
		return o.count()
	case query.OpUpdate:
		return o.update(&request.Set)
	case query.OpDelete:
		return o.delete()
	default:
		return o.list()
	}
}

// operation is one running operation.
type operation struct {
	*Access
	op    query.Operation
	table *table
	auth  *query.Authority
	query *query.Query // nil in an insert
	out   *Result      // nil: an insert without an answer
	// includes are the relations whose rows the operation returns in its own.
	includes []*included
}

// ruleInput returns what rules can use beside rows.
func (a *Access) ruleInput() schema.RuleInput {
	return schema.RuleInput{Caller: a.Caller, Now: a.Tx.Now(), Related: a.related, Exists: a.exists}
}

// check compares the generation of the model with the store's, once in a transaction. After
// an activation the transaction fails or conflicts.
func (a *Access) check() error {
	if a.checked {
		return nil
	}
	generation, err := catalog.ReadGeneration(a.Tx)
	if err != nil {
		return storeFault(err)
	}
	if generation != a.Model.generation {
		return ErrOutdated
	}
	seen, err := a.Tx.Snapshot()
	if err != nil {
		return storeFault(err)
	}
	a.checked, a.snapshot = true, uint64(seen)
	return nil
}

// touch counts a row that is looked up or scanned.
func (a *Access) touch() error {
	if a.touched >= a.MaxRows {
		return fault.New(fault.Limit, "more than %d rows were touched: narrow the where, or let an index serve it", a.MaxRows)
	}
	a.touched++
	return a.alive()
}

// rowByteUnits is the cost of reading and answering a byte of a row, in units of a
// cost.Meter.
const rowByteUnits = 2

// alive fails when the operation's time is over. It counts the work for one row.
func (a *Access) alive() error {
	if a.Context != nil {
		if err := a.Context.Err(); err != nil {
			return query.TimeOver(err)
		}
	}
	return a.spend(query.RowUnits)
}

// spend counts work.
func (a *Access) spend(units int) error {
	if err := a.Work.Spend(units); err != nil {
		return query.TimeOver(err)
	}
	return nil
}

// storeFault converts an error of the store to a fault; a fault is returned unchanged.
func storeFault(err error) error {
	if _, ok := errors.AsType[*fault.Fault](err); ok {
		return err
	}
	return fault.Wrap(err, fault.Internal, "")
}

// newID returns a new id: a lower-case ULID of the transaction's time, greater than the
// previous one.
func (a *Access) newID() (string, error) {
	id, err := a.ids.Next(a.Tx.Now())
	if err != nil {
		return "", fault.Wrap(err, fault.Internal, "")
	}
	return id, nil
}

// ---- rows ----

// decode decodes the values of a row that was found.
func (a *Access) decode(t *table, r *layout.Row) error {
	if err := a.spend(rowByteUnits * len(r.Raw)); err != nil {
		return err
	}
	return t.DecodeRow(r)
}

// rowKey returns the key of a row, valid until the next call.
func (a *Access) rowKey(t *table, tail string) []byte {
	a.key = append(append(a.key[:0], t.Prefix...), tail...)
	return a.key
}

// read returns the row with that tail, false when there is none. It counts as touched
// either way. The caller owns the row.
func (a *Access) read(t *table, tail string) (layout.Row, bool, error) {
	r := layout.Row{Tail: tail, Values: make([]schema.Value, len(t.Slots))}
	found, err := a.readInto(t, &r)
	return r, found, err
}

// readInto reads the row of r.tail.
func (a *Access) readInto(t *table, r *layout.Row) (bool, error) {
	if err := a.touch(); err != nil {
		return false, err
	}
	return a.fetch(t, r)
}

// fetch is readInto of a row that is counted.
func (a *Access) fetch(t *table, r *layout.Row) (bool, error) {
	raw, err := a.Tx.Get(a.rowKey(t, r.Tail))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, storeFault(err)
	}
	r.Raw = layout.BorrowString(raw) // owned by this function
	return true, a.decode(t, r)
}

// bound returns the tenant that the caller is bound to in a table; false when rows of any
// tenant can be reached, or the table has no tenants.
func (a *Access) bound(t *table, anyTenant bool) (string, bool) {
	return a.Caller.Tenant, t.Tenant >= 0 && !anyTenant
}

// tails yields the tails of the rows that may have that id and that the caller may reach:
// that of its tenant or, for a caller of all tenants, those of all tenants that have one. A
// row with such a tail may not exist.
func (a *Access) tails(t *table, id string, anyTenant bool) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if tenant, bound := a.bound(t, anyTenant); bound || t.Tenant < 0 {
			yield(string(t.Tail(nil, tenant, id)), nil)
			return
		}
		prefix := layout.AppendEntry(append([]byte{}, t.Locator.Prefix...), schema.TextValue(id), false)
		none := true
		for item, err := range a.Tx.Scan(prefix, nil, false) {
			if err != nil {
				yield("", storeFault(err))
				return
			}
			none = false
			if !yield(string(item.Value), nil) {
				return
			}
		}
		if none { // counted like a row that does not exist
			if err := a.touch(); err != nil {
				yield("", err)
			}
		}
	}
}

// theOne reads the row with that id that passes, false when there is none. Ids from an
// identity provider may be equal in several tenants: when more than one of these passes,
// the result is a conflict.
func (a *Access) theOne(t *table, id string, anyTenant bool, passes func(*layout.Row) (bool, error)) (one layout.Row, found bool, err error) {
	for tail, err := range a.tails(t, id, anyTenant) {
		if err != nil {
			return one, false, err
		}
		r, exists, err := a.read(t, tail)
		if err == nil && exists {
			exists, err = passes(&r)
		}
		switch {
		case err != nil:
			return one, false, err
		case !exists:
		case found:
			return one, false, severalTenants(t)
		default:
			one, found = r, true
		}
	}
	return one, found, nil
}

func severalTenants(t *table) error {
	return fault.New(fault.Conflict, "several tenants have a %s with this id, and the tenant is not given", t.Name)
}

// take returns a buffer for a row's values; give returns it.
func (a *Access) take(t *table) []schema.Value {
	for i := len(a.free) - 1; i >= 0; i-- {
		if free := a.free[i]; cap(free) >= len(t.Slots) {
			a.free = append(a.free[:i], a.free[i+1:]...)
			return free[:len(t.Slots)]
		}
	}
	return make([]schema.Value, len(t.Slots))
}

func (a *Access) give(values []schema.Value) { a.free = append(a.free, values) }

// ---- lookups of related rows ----

// lookedUpRows are rows that relations refer to, as the transaction sees them. Rows of one
// page or of one insert often refer to the same rows.
type lookedUpRows struct {
	rows  map[rowName]lookedUpRow
	bytes int // of the stored rows whose values are kept
}

type rowName struct {
	table *table
	tail  string
}

type lookedUpRow struct {
	values []schema.Value // nil: the row does not exist
	kept   bool           // otherwise the row must be read again
}

// The limits of the rows that are remembered, and of those whose values are kept. The
// content of rows does not decide which are remembered, because it must not change the
// number of rows that count as touched.
const (
	maxLookedUp      = 256
	maxLookedUpBytes = 1 << 20
)

func (l *lookedUpRows) clear() {
	clear(l.rows)
	l.bytes = 0
}

// lookUp returns the values of the row with that tail, nil when there is none. The caller
// must not change them. A remembered row does not count as touched.
func (a *Access) lookUp(t *table, tail []byte) ([]schema.Value, error) {
	l := &a.lookedUp
	row, known := l.rows[rowName{t, string(tail)}]
	switch {
	case row.kept:
		return row.values, nil
	case !known:
		if err := a.touch(); err != nil {
			return nil, err
		}
		if len(l.rows) == maxLookedUp {
			l.clear()
		}
	}
	r := layout.Row{Tail: string(tail), Values: make([]schema.Value, len(t.Slots))}
	exists, err := a.fetch(t, &r)
	if err != nil {
		return nil, err
	}
	var values []schema.Value
	if exists {
		values = r.Values
	}
	if l.bytes+len(r.Raw) <= maxLookedUpBytes {
		row = lookedUpRow{values, true}
		l.bytes += len(r.Raw)
	}
	if l.rows == nil {
		l.rows = map[rowName]lookedUpRow{}
	}
	l.rows[rowName{t, r.Tail}] = row
	return values, nil
}

// related returns the value of a field of the row that a row's relation refers to.
func (a *Access) related(from []schema.Value, relation *schema.Field, id string, want *schema.Field) (schema.Value, error) {
	t := a.Model.tableNamed(relation.Type.Entity.Name)
	tail, err := a.tailOfRelated(t, from, relation, id)
	if err != nil || len(tail) == 0 {
		return schema.Value{}, err
	}
	if len(a.pending.order) > 0 {
		if values, decided := a.pending.of(t, string(tail)); decided {
			return valueOf(values, want), nil
		}
	}
	values, err := a.lookUp(t, tail)
	return valueOf(values, want), err
}

// valueOf returns the value of a field; null if the row does not exist.
func valueOf(values []schema.Value, want *schema.Field) schema.Value {
	if values == nil {
		return schema.Value{}
	}
	return values[want.Pos]
}

// tailOfRelated returns the tail of the row that a row's relation refers to, empty when there
// is none. It is in the tenant of the referring row. Only from a row without a tenant can a
// caller of all tenants reach any. It is valid until the next call.
func (a *Access) tailOfRelated(t *table, from []schema.Value, relation *schema.Field, id string) ([]byte, error) {
	tenant, owner := a.Caller.Tenant, a.Model.owners[relation]
	switch {
	case t.Tenant < 0:
	case owner.Tenant >= 0:
		tenant = from[owner.Tenant].Text()
	case t.rights.AnyTenantFor(a.Caller):
		a.tail = a.tail[:0]
		for tail, err := range a.tails(t, id, true) {
			if err != nil {
				return nil, err
			}
			if len(a.tail) > 0 {
				return nil, severalTenants(t)
			}
			a.tail = append(a.tail, tail...)
		}
		return a.tail, nil
	}
	a.tail = t.Tail(a.tail[:0], tenant, id)
	return a.tail, nil
}

// exists searches for a row that makes x.Where true. Policies do not apply to it, but the
// tenant does: a caller without a tenant finds nothing where rows have one.
func (a *Access) exists(x *schema.Exists, outer *schema.RuleInput) (bool, error) {
	t := a.Model.tableNamed(x.Entity.Name)
	inner := outer.ForExists()
	anyTenant := t.rights.AnyTenantFor(a.Caller)
	if tenant, bound := a.bound(t, anyTenant); bound && tenant == "" {
		return false, nil
	}
	w := planInput{anyTenant: anyTenant}
	for _, equality := range x.Equal {
		v, ok := equality.Value(&inner)
		if !ok {
			return false, nil
		}
		w.equal = append(w.equal, equalTo{equality.Field.Pos, v})
	}
	found := false
	look := func(values []schema.Value) (more bool, err error) {
		inner.Row = values
		truth, err := x.Where.Eval(&inner)
		found = truth == schema.True
		return !found, err
	}
	err := a.scan(t, a.plan(t, &w), func(r *layout.Row) (bool, error) {
		if _, decided := a.pending.of(t, r.Tail); decided {
			return true, nil
		}
		return look(r.Values)
	})
	if err != nil || found || t != a.pending.table {
		return found, err
	}
	tenant, bound := a.bound(t, anyTenant)
	for _, tail := range a.pending.order {
		values := a.pending.rows[tail]
		if values == nil || bound && values[t.Tenant].Text() != tenant {
			continue
		}
		if err := a.touch(); err != nil {
			return false, err
		}
		if more, err := look(values); err != nil || !more {
			return found, err
		}
	}
	return false, nil
}

// pendingRows has the changes that the running operation has decided for rows of its table.
// Rules see them: otherwise one list could insert rows that the rules forbid together.
type pendingRows struct {
	table *table
	rows  map[string][]schema.Value // by tail, in their new form; nil: deleted
	order []string                  // the tails
}

// of returns the new values of a row; false when they are not decided.
func (a *pendingRows) of(t *table, tail string) ([]schema.Value, bool) {
	if t != a.table {
		return nil, false
	}
	values, decided := a.rows[tail]
	return values, decided
}

// decide records the new values of a row, nil for a deletion.
func (a *pendingRows) decide(tail string, values []schema.Value) {
	if a.rows == nil {
		a.rows = map[string][]schema.Value{}
	}
	a.rows[tail] = values
	a.order = append(a.order, tail)
}
