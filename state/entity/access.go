package entity

import (
	"context"
	"errors"

	"runner.example/internal/caller"
	"runner.example/internal/cost"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/schema"
	"runner.example/state/entity/catalog"
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
	// Part, if it is not 0, makes a delete of a caller of kind system one part of a longer one: see
	// deletePart.
	Part int
	// FileOf returns the file with that id, if the caller may write it into a row; nil: there are none. The blob of
	// the file must have a pin, or be that of a row that the transaction has read.
	FileOf func(id string) (schema.File, bool)
	// SawFile is called with each file of a row that the caller gets, and the field that has it; nil: it is not. It is
	// called also for rows that other rows then displace from a page, and that the caller may read.
	SawFile func(schema.File, FileOwner)
	// Observe is told of the rules that decide; nil: nobody is.
	Observe schema.Observer
	// Context is checked at every row: when it has ended, operations fail with Deadline.
	// Nil never ends.
	Context context.Context
	// Work meters what operations compute. When it fails, they fail with Deadline, and the
	// transaction must not be committed. Nil never fails.
	Work *cost.Meter

	readsNow  bool // a rule has read the time
	touched   int
	checked   bool                // the generation was compared
	snapshot  uint64              // once checked: the last visible commit
	inserted  map[string]struct{} // keys of rows inserted in this transaction
	ids       ids.Sequence
	lookedUp  lookedUpRows
	pending   pendingRows
	explained *Explanation // nil unless the query is explained

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
	a.Model, a.Tx, a.Caller, a.MaxRows, a.Import, a.Part, a.Context, a.Work = m, tx, who, maxRows, false, 0, nil, nil
	a.FileOf, a.SawFile = nil, nil
	a.readsNow, a.touched, a.checked, a.inserted, a.ids = false, 0, false, nil, ids.Sequence{}
	a.lookedUp.clear()
	a.pending = pendingRows{}
}

// ReadsNow reports whether a rule has read the time since Reset. The rows may then differ later without a commit.
func (a *Access) ReadsNow() bool { return a.readsNow }

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
	if err := a.run(kind, t, &read, out); err != nil {
		return about(t, err)
	}
	return nil
}

// about names the entity of an operation in an error about its rows or its arguments. Other errors may
// be compared, and are returned unchanged.
func about(t *table, err error) error {
	f, ok := err.(*fault.Fault)
	if !ok {
		return err
	}
	switch f.Code {
	case fault.NotFound, fault.Invalid, fault.Denied, fault.Conflict, fault.Limit:
		s := f.Subject
		s.Entity = t.Name
		return f.About(s)
	}
	return err
}

// run runs an operation whose arguments are read.
func (a *Access) run(kind query.Operation, t *table, read *query.Arguments, out *Result) error {
	auth := t.rights.For(a.ruleInput())
	auth.Work, auth.FileOf = a.Work, a.FileOf
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
	return schema.RuleInput{Caller: a.Caller, Now: a.Tx.Now(), ReadsNow: &a.readsNow, Related: a.related, Exists: a.exists, Observe: a.Observe}
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
		return fault.New(fault.Limit, "more than %d rows were read: narrow where, or add an index for it", a.MaxRows)
	}
	a.touched++
	return a.alive()
}

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
