package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"runner.example/audit"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/runtime"
	"runner.example/schema"
	"runner.example/store"
)

// MaxEach is the most rows of one CallEach: they are one transaction.
const MaxEach = 100

// keyEach begins the keys of the positions of calls over rows: of runs that have not ended.
const keyEach = "each/"

// CallEach selects the rows for which a function is called: one batch, in the order of their ids.
// The position is stored in the transaction of the batch. So a call with the same arguments continues
// after it, also one of another client, until all rows are done.
type CallEach struct {
	Entity string      `json:"entity"`
	Where  []Condition `json:"where,omitempty"`
	// Function has one parameter without a default, which gets the id of a row.
	Function string `json:"function"`
	// Tenant is the only tenant whose rows the function reaches; empty: all.
	Tenant string `json:"tenant,omitempty"`
	// Limit is 1-100; 0: 100.
	Limit int `json:"limit,omitempty"`
	// Restart begins with the first row, also if there is a position.
	Restart bool `json:"restart,omitempty"`
	// CountOnly asks for the number of rows, and of those that were done before.
	CountOnly bool `json:"countOnly,omitempty"`
}

// EachDone is the result of one batch.
type EachDone struct {
	// Count is the number of rows that were done; with CountOnly, that of those to do, 0 if some
	// were done before.
	Count int `json:"count"`
	// Before is the number of rows that were done before, since the begin.
	Before int `json:"before"`
	// More: there may be rows after the batch.
	More bool `json:"more"`
	// Failed is the answer that refused the batch, if its status is 400 or above: then nothing was
	// done. FailedRow is the id of its row.
	Failed    *Called `json:"failed,omitempty"`
	FailedRow string  `json:"failedRow,omitempty"`
	// Retry: a smaller batch may succeed.
	Retry bool `json:"retry,omitempty"`
}

// CallEach calls a function for each of a batch of rows, in one transaction.
func (c *Client) CallEach(ctx context.Context, request CallEach) (EachDone, error) {
	return ask[EachDone](ctx, c, "data.each", request)
}

// eachPosition is how far a run has come.
type eachPosition struct {
	Where  []Condition `json:"where"`
	Tenant string      `json:"tenant"`
	// Cursor is that of the page after the last row that was done.
	Cursor string `json:"cursor"`
	Count  int    `json:"count"`
}

func (l *Local) callEach(ctx context.Context, who keystore.Authority, args CallEach) (done EachDone, err error) {
	if l.Runtime == nil {
		return done, fault.New(fault.Unavailable, "this node runs no functions")
	}
	if err := keystore.CheckLine("tenant", args.Tenant); err != nil {
		return done, err
	}
	switch {
	case args.Limit == 0:
		args.Limit = MaxEach
	case args.Limit < 0 || args.Limit > MaxEach:
		return done, fault.New(fault.Invalid, "limit must be between 1 and %d", MaxEach)
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
	answer, err := l.Runtime.CallEach(ctx, runtime.Each{
		FunctionCall: runtime.FunctionCall{Name: args.Function, Caller: e.who.Caller, RequestID: who.RequestID},
		Params:       e.params,
		Group:        eachPage,
		Also:         e.record,
	})
	switch {
	case err != nil:
		return done, err
	case e.failed != nil: // a query or a write of the operator, not of the function
		return done, e.failed
	case len(e.ids) == 0:
		return EachDone{Before: e.position.Count}, nil
	case answer.Status >= 400:
		done.Failed = &Called{RequestID: who.RequestID, Status: answer.Status, Code: answer.Code, Detail: answer.Detail, Headers: [][2]string{}, Body: answer.Body}
		done.FailedRow = e.ids[min(answer.N, len(e.ids)-1)]
		done.Retry = !answer.Sent && mayFitSmaller(answer.Code)
		if answer.Errors != nil {
			err = json.Unmarshal(answer.Errors, &done.Failed.Errors)
		}
		return done, err
	}
	return EachDone{Count: answer.N, Before: e.position.Count, More: e.next(answer.N) != ""}, nil
}

// mayFitSmaller reports whether fewer rows at a time may succeed where a batch has failed.
func mayFitSmaller(code string) bool {
	return slices.Contains([]fault.Code{fault.Conflict, fault.TooLarge, fault.HandlerTimeout}, fault.Code(code))
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
	return "", fault.New(fault.NotFound, "the schema declares no function %q%s", function, diag.DidYouMean(function, names))
}

// eachPage is the number of rows after which a batch may end early: their cursors are read before the
// function changes rows.
const eachPage = 5

// eachCall is one batch.
type eachCall struct {
	*Local
	who      keystore.Authority
	args     CallEach
	param    string
	where    []any
	position eachPosition // before the batch
	ids      []string
	// cursors are those after each page of eachPage rows; "" after the last row.
	cursors []string
	failed  error
}

func (e *eachCall) key() []byte { return []byte(keyEach + e.args.Entity + "." + e.args.Function) }

// find reads the position.
func (e *eachCall) find(tx *store.Tx) error {
	e.position = eachPosition{Where: e.args.Where, Tenant: e.args.Tenant}
	raw, err := tx.Get(e.key())
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && e.args.Restart:
		return nil
	case err != nil:
		return err
	}
	var stored eachPosition
	if err := json.Unmarshal(raw, &stored); err != nil {
		return fmt.Errorf("read the position of %s: %w", e.key(), err)
	}
	if slices.Equal(stored.Where, e.args.Where) && stored.Tenant == e.args.Tenant {
		e.position = stored
	}
	return nil
}

// count counts the rows, unless some were done before: then it is not known how many are left.
func (e *eachCall) count(tx *store.Tx, done *EachDone) error {
	if err := e.find(tx); err != nil {
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
	if err := e.find(tx); err != nil {
		return nil, err
	}
	e.ids, e.cursors = nil, nil
	query := map[string]any{"from": e.args.Entity, "select": []string{"id"}, "where": e.where, "orderBy": [][2]string{{"id", "asc"}}}
	for cursor := e.position.Cursor; len(e.ids) < e.args.Limit; {
		query["limit"] = min(eachPage, e.args.Limit-len(e.ids))
		if cursor != "" {
			query["cursor"] = cursor
		}
		text, err := e.onRows(tx, &e.who.Caller, "query", query)
		if err != nil {
			return nil, err
		}
		var found struct {
			Rows       []struct{ ID string }
			NextCursor string
		}
		if err := json.Unmarshal(text, &found); err != nil {
			return nil, err
		}
		for _, row := range found.Rows {
			params, err := marshal(map[string]string{e.param: row.ID})
			if err != nil {
				return nil, err
			}
			e.ids, all = append(e.ids, row.ID), append(all, params)
		}
		cursor = found.NextCursor
		e.cursors = append(e.cursors, cursor)
		if cursor == "" {
			break
		}
	}
	return all, nil
}

// next returns the cursor after n rows.
func (e *eachCall) next(n int) string {
	if n == 0 {
		return ""
	}
	return e.cursors[(n-1)/eachPage]
}

// record stores the position after n rows, and an audit record. After the last row there is none.
func (e *eachCall) record(tx *store.Tx, n int) (err error) {
	defer func() { e.failed = err }()
	if e.next(n) == "" {
		err = tx.Delete(e.key())
	} else {
		next := e.position
		next.Cursor, next.Count = e.next(n), next.Count+n
		var raw []byte
		if raw, err = json.Marshal(next); err == nil {
			err = tx.Set(e.key(), raw)
		}
	}
	if err != nil || n == 0 {
		return err
	}
	return audit.Append(tx, audit.Record{
		RequestID: e.who.RequestID, Actor: audit.ActorOf(e.who.Caller), Action: "data.each",
		Target: e.args.Entity, Result: audit.OK, Count: n, Reason: "function " + e.args.Function,
	})
}
