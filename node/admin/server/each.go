package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/runtime"
	"runner.example/schema"
	"runner.example/state/audit"
	"runner.example/state/store"
)

// keyEach is the prefix of the keys that store the positions of unfinished runs. A run is identified by
// its entity, function, conditions and tenant.
const keyEach = "each/"

// eachPosition is how far a run has come.
type eachPosition struct {
	// Last is the id of the last row that was done, Until that of the last row at the begin.
	Last  string `json:"last"`
	Until string `json:"until"`
	// Count is the number of calls.
	Count int `json:"count"`
}

func (l *Local) callEach(ctx context.Context, who keystore.Authority, args admin.CallEach) (done admin.EachDone, err error) {
	if l.Runtime == nil {
		return done, fault.New(fault.Unavailable, "this node runs no functions")
	}
	if err := keystore.CheckLine("tenant", args.Tenant); err != nil {
		return done, err
	}
	switch {
	case args.Limit == 0:
		args.Limit = admin.MaxEach
	case args.Limit < 0 || args.Limit > admin.MaxEach:
		return done, fault.New(fault.Invalid, "limit must be between 1 and %d", admin.MaxEach)
	case args.Restart && args.Continue:
		return done, fault.New(fault.Invalid, "restart and continue exclude each other")
	}
	e := eachCall{Local: l, who: who, args: args}
	if e.param, err = l.rowParam(args.Function, args.Entity); err != nil {
		return done, err
	}
	if e.where, err = l.conditions(args.Entity, args.Where); err != nil {
		return done, err
	}
	e.who.Caller.Tenant = args.Tenant
	if args.CountOnly {
		return done, l.Store.View(ctx, func(tx *store.Tx) error { return e.count(tx, &done) })
	}
	if err := l.Store.View(ctx, e.findEnd); err != nil {
		return done, err
	}
	answer, err := l.Runtime.CallEach(ctx, runtime.Each{
		FunctionCall: runtime.FunctionCall{Name: args.Function, Caller: e.who.Caller, RequestID: who.RequestID},
		Params:       e.params,
		Skip:         e.skip,
		AfterCalls:   e.record,
	})
	switch {
	case err != nil:
		return done, err
	case e.failed != nil: // a query or a write of the operator, not of the function
		return done, e.failed
	case len(e.ids) == 0:
		return admin.EachDone{Before: e.position.Count}, nil
	case answer.Status >= 400:
		done.Failed = &admin.Called{RequestID: who.RequestID, Status: answer.Status, Code: answer.Code, Detail: answer.Detail, Headers: [][2]string{}, Body: answer.Body}
		done.FailedRow = e.ids[min(answer.N, len(e.ids)-1)]
		done.Retry = !answer.Sent && mayFitSmaller(answer)
		if answer.Errors != nil {
			err = json.Unmarshal(answer.Errors, &done.Failed.Errors)
		}
		return done, err
	}
	return admin.EachDone{Count: answer.N - e.skipped, Before: e.position.Count, More: e.more(answer.N)}, nil
}

// mayFitSmaller reports whether fewer rows at a time may succeed where a batch has failed.
func mayFitSmaller(answer runtime.EachAnswer) bool {
	switch fault.Code(answer.Code) {
	case fault.WriteConflict:
		return true
	case fault.TooLarge, fault.HandlerTimeout: // of more than the first call
		return answer.N > 0
	}
	return false
}

// rowParam returns the name of the function's parameter for the id of a row.
func (l *Local) rowParam(function, entity string) (string, error) {
	m, err := l.model()
	if err != nil {
		return "", err
	}
	if _, err := l.declared(entity); err != nil {
		return "", err
	}
	var names []string
	for _, f := range m.Schema().Functions {
		if names = append(names, f.Name); f.Name != function {
			continue
		}
		var required []*schema.Field
		for _, p := range f.Params {
			if !p.MayOmit() {
				required = append(required, p)
			}
		}
		if len(required) == 1 {
			t := &required[0].Type
			isText := slices.Contains([]schema.TypeKind{schema.ID, schema.String, schema.Text}, t.Kind)
			if !t.List && (isText || t.Kind == schema.Relation && t.Entity.Name == entity) {
				return required[0].Name, nil
			}
		}
		return "", fault.New(fault.Invalid, "%s cannot be called with the id of a row: it needs one parameter for it, and defaults for others: %s(row: %s)", function, function, entity)
	}
	return "", runtime.UnknownFunction(function, names)
}

// eachCall is one batch.
type eachCall struct {
	*Local
	who      keystore.Authority
	args     admin.CallEach
	param    string
	where    []any
	end      string       // the id of the last row, if a run begins
	position eachPosition // before the batch
	ids      []string
	full     bool // there may be rows after ids
	skipped  int  // of ids
	failed   error
}

func (e *eachCall) key() ([]byte, error) {
	rows, err := json.Marshal([]any{e.args.Where, e.args.Tenant})
	sum := sha256.Sum256(rows)
	return fmt.Appendf(nil, "%s%s.%s/%x", keyEach, e.args.Entity, e.args.Function, sum[:16]), err
}

// find reads the position. ok is false if there is none.
func (e *eachCall) find(tx *store.Tx) (ok bool, err error) {
	e.position = eachPosition{}
	key, err := e.key()
	if err != nil {
		return false, err
	}
	raw, err := tx.Get(key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case e.args.Restart:
		return false, nil
	}
	if err := json.Unmarshal(raw, &e.position); err != nil {
		return false, fmt.Errorf("read the position of %s: %w", key, err)
	}
	return true, nil
}

// findEnd reads the id of the last row. The transaction of the calls must not do that: each insert of
// another request would conflict with it.
func (e *eachCall) findEnd(tx *store.Tx) error {
	found, err := e.find(tx)
	if err != nil || found || e.args.Continue {
		return err
	}
	last, err := e.query(tx, []any{}, "desc", 1)
	if len(last) > 0 {
		e.end = last[0]
	}
	return err
}

// count counts the rows, unless some were done before: then it is not known how many are left.
func (e *eachCall) count(tx *store.Tx, done *admin.EachDone) error {
	if _, err := e.find(tx); err != nil {
		return err
	}
	if done.Before = e.position.Count; done.Before > 0 {
		return nil
	}
	text, err := e.onRows(tx, &e.who.Caller, "count", map[string]any{"from": e.args.Entity, "where": e.where})
	if err != nil {
		return err
	}
	return json.Unmarshal(text, done)
}

// params finds the rows of the batch.
func (e *eachCall) params(tx *store.Tx) (all [][]byte, err error) {
	defer func() { e.failed = err }()
	e.ids, e.full, e.skipped = nil, false, 0
	found, err := e.find(tx)
	switch {
	case err != nil:
		return nil, err
	case !found && e.end == "":
		return nil, nil
	case !found:
		e.position.Until = e.end
	}
	where := append(slices.Clone(e.where), []any{"id", "<=", e.position.Until})
	if e.position.Last != "" {
		where = append(where, []any{"id", ">", e.position.Last})
	}
	if e.ids, err = e.query(tx, where, "asc", e.args.Limit); err != nil {
		return nil, err
	}
	e.full = len(e.ids) == e.args.Limit
	for _, id := range e.ids {
		params, err := admin.Marshal(map[string]string{e.param: id})
		if err != nil {
			return nil, err
		}
		all = append(all, params)
	}
	return all, nil
}

// query returns the ids of rows in the order of the ids.
func (e *eachCall) query(tx *store.Tx, where []any, order string, limit int) (ids []string, err error) {
	text, err := e.onRows(tx, &e.who.Caller, "query", map[string]any{
		"from": e.args.Entity, "select": []string{"id"}, "where": where, "orderBy": [][2]string{{"id", order}}, "limit": limit,
	})
	if err != nil {
		return nil, err
	}
	var found struct{ Rows []struct{ ID string } }
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, err
	}
	for _, row := range found.Rows {
		ids = append(ids, row.ID)
	}
	return ids, nil
}

// skip reports whether an earlier call of the batch has deleted a row, or changed it so that it does
// not match any more.
func (e *eachCall) skip(tx *store.Tx, n int) (bool, error) {
	if n == 0 {
		return false, nil
	}
	left, err := e.query(tx, append(slices.Clone(e.where), []any{"id", "=", e.ids[n]}), "asc", 1)
	if err != nil {
		e.failed = err
		return false, err
	}
	if len(left) == 0 {
		e.skipped++
	}
	return len(left) == 0, nil
}

// more reports whether there may be rows after the first n of the batch.
func (e *eachCall) more(n int) bool { return n < len(e.ids) || e.full && n > 0 }

// record stores the position after n rows, and an audit record. After the last row there is none.
func (e *eachCall) record(tx *store.Tx, n int) (err error) {
	defer func() { e.failed = err }()
	key, err := e.key()
	if err != nil {
		return err
	}
	if !e.more(n) {
		err = tx.Delete(key)
	} else {
		next := e.position
		next.Last, next.Count = e.ids[n-1], next.Count+n-e.skipped
		var raw []byte
		if raw, err = json.Marshal(next); err == nil {
			err = tx.Set(key, raw)
		}
	}
	if err != nil || n == e.skipped {
		return err
	}
	record := e.who.Record("data.each", e.args.Entity)
	record.Count, record.Reason = n-e.skipped, "function "+e.args.Function
	return audit.Append(tx, record)
}
