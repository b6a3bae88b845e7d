package server

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/schema"
	"runner.example/state/audit"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// maxOperatorRows is the most rows that one operation of an operator may read: there is no
// limit but its context.
const maxOperatorRows = math.MaxInt

// changeBatch is the number of rows that one transaction of an operator changes.
const changeBatch = 500

// onRows runs one operation on rows for an operator.
func (l *Local) onRows(tx *store.Tx, who *caller.Caller, op string, args any) ([]byte, error) {
	return l.onPart(tx, who, op, args, 0)
}

// onPart runs one operation on rows for an operator, a delete only in part: see entity.Access.
func (l *Local) onPart(tx *store.Tx, who *caller.Caller, op string, args any, part int) ([]byte, error) {
	text, err := admin.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("encode the arguments of %s: %w", op, err)
	}
	access, err := l.access(tx, who)
	if err != nil {
		return nil, err
	}
	var out entity.Result
	access.Part = part
	err = access.Do(op, text, &out)
	return out.JSON, err
}

// access returns the authority of an operator in a transaction.
func (l *Local) access(tx *store.Tx, who *caller.Caller) (*entity.Access, error) {
	m, err := l.model()
	if err != nil {
		return nil, err
	}
	access := &entity.Access{}
	access.Reset(m, tx, who, maxOperatorRows)
	return access, nil
}

func (l *Local) model() (*entity.Model, error) {
	if l.Model == nil {
		return nil, fault.New(fault.Unavailable, "this node has no rows")
	}
	m, err := l.Model()
	if err == nil && m == nil {
		err = fault.New(fault.NotReady, "no release is active")
	}
	return m, err
}

// ofTenant restricts the operator to the rows of one tenant, in schemas without entities.
func (l *Local) ofTenant(who *caller.Caller, tenant *string) error {
	if tenant == nil {
		return nil
	}
	m, err := l.model()
	switch {
	case err != nil:
		return err
	case m.Schema().Typed:
		return fault.New(fault.Invalid, "tenant is for schemas without entities; here the entity may have a tenant field")
	}
	*who = caller.Caller{Kind: caller.Session, UserID: who.UserID, Tenant: *tenant}
	return nil
}

func (l *Local) getRow(ctx context.Context, who keystore.Authority, args admin.RowID) (row json.RawMessage, err error) {
	if err := l.ofTenant(&who.Caller, args.Tenant); err != nil {
		return nil, err
	}
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		text, err := l.onRows(tx, &who.Caller, "get", map[string]any{"from": args.Entity, "id": args.ID})
		if fault.CodeOf(err) == fault.NotFound {
			return fault.New(fault.NotFound, "there is no %s with the id %q", args.Entity, args.ID).
				WithHint("runner data list " + args.Entity + " shows its rows")
		}
		if err != nil {
			return err
		}
		var answer struct {
			Row json.RawMessage `json:"row"`
		}
		err = json.Unmarshal(text, &answer)
		row = answer.Row
		return err
	})
	return row, err
}

func (l *Local) listRows(ctx context.Context, who keystore.Authority, args admin.ListRows) (page admin.RowPage, err error) {
	query, err := l.queryOf(&who.Caller, args)
	if err != nil {
		return page, err
	}
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		text, err := l.onRows(tx, &who.Caller, "query", query)
		if err != nil {
			return err
		}
		page = admin.RowPage{}
		if err := json.Unmarshal(text, &page); err != nil {
			return err
		}
		if args.Files {
			for _, f := range l.filesOf(args.Entity, page.Rows) {
				page.Files = append(page.Files, f.FileOfRow)
			}
		}
		if args.Text {
			return l.writeText(args.Entity, &page)
		}
		return nil
	})
	return page, err
}

// queryOf returns the arguments of the query of a page, and restricts the operator to the tenant that args name.
func (l *Local) queryOf(who *caller.Caller, args admin.ListRows) (query map[string]any, err error) {
	if err := l.ofTenant(who, args.Tenant); err != nil {
		return nil, err
	}
	query = map[string]any{"from": args.Entity}
	if args.Limit != 0 {
		query["limit"] = args.Limit
	}
	if args.Cursor != "" {
		query["cursor"] = args.Cursor
	}
	if len(args.OrderBy) > 0 {
		query["orderBy"] = args.OrderBy
	}
	query["where"], err = l.conditions(args.Entity, args.Where)
	return query, err
}

// explainRows reads a page as the operator or another caller, and explains the query.
func (l *Local) explainRows(ctx context.Context, who keystore.Authority, args admin.ExplainRows) (found admin.ExplainedRows, err error) {
	query, err := l.queryOf(&who.Caller, args.ListRows)
	if err != nil {
		return found, err
	}
	if err := l.actAs(&who.Caller, args); err != nil {
		return found, err
	}
	text, err := admin.Marshal(query)
	if err != nil {
		return found, err
	}
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		access, err := l.access(tx, &who.Caller)
		if err != nil {
			return err
		}
		access.Context = ctx
		var out entity.Result
		explained, err := access.Explain(text, &out)
		if fault.CodeOf(err) == fault.Denied && args.As != "" && args.CallerTenant == "" {
			return fault.Of(err).WithHint("give the caller the tenant of its rows: --caller-tenant acme")
		}
		if err != nil {
			return err
		}
		var page admin.RowPage
		if err := json.Unmarshal(out.JSON, &page); err != nil {
			return err
		}
		found = admin.ExplainedRows{Explanation: *explained, Returned: len(page.Rows), More: page.NextCursor != ""}
		return nil
	})
	return found, err
}

// actAs replaces an operator by the caller that args describe.
func (l *Local) actAs(who *caller.Caller, args admin.ExplainRows) error {
	if args.As == "" {
		if args.User != "" || args.Roles != nil || args.CallerTenant != "" {
			return fault.New(fault.Invalid, "user, roles and callerTenant need as (--as): use the name of a scope, session or anonymous")
		}
		return nil
	}
	if args.Tenant != nil {
		return fault.New(fault.Invalid, "tenant cannot be used with as: use callerTenant (--caller-tenant)")
	}
	m, err := l.model()
	if err != nil {
		return err
	}
	*who = caller.Caller{UserID: args.User, Roles: args.Roles, Tenant: args.CallerTenant}
	switch args.As {
	case "session":
		who.Kind = caller.Session
	case "anonymous":
	default:
		if m.Schema().Scope(args.As) == nil {
			return fault.New(fault.NotFound, "the schema has no scope %q: use the name of a scope, session or anonymous", args.As)
		}
		who.Kind, who.Scope = caller.APIKey, args.As
	}
	return nil
}

// writeText replaces the page's rows by text.
func (l *Local) writeText(name string, page *admin.RowPage) error {
	e, err := l.declared(name)
	if err != nil {
		return err
	}
	var fields []*schema.Field
	for _, f := range e.Fields {
		if f.Type.Kind != schema.ToMany {
			fields = append(fields, f)
			page.Header = append(page.Header, f.Name)
		}
	}
	for _, row := range page.Rows {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(row, &members); err != nil {
			return err
		}
		cells := make([]string, len(fields))
		for i, f := range fields {
			cells[i] = textOf(f, members[f.Name])
		}
		page.Cells = append(page.Cells, cells)
	}
	page.Rows = []json.RawMessage{}
	return nil
}

// textOf formats a field's value as ParseText reads it; null is the empty string.
func textOf(f *schema.Field, value json.RawMessage) string {
	var text string
	switch {
	case string(value) == "null":
		return ""
	case f.Type.Kind != schema.JSON && !f.Type.List && json.Unmarshal(value, &text) == nil:
		return text
	}
	return string(value)
}

// declared returns the entity with that name. Its rows have declared fields.
func (l *Local) declared(name string) (*schema.Entity, error) {
	m, err := l.model()
	if err != nil {
		return nil, err
	}
	e := m.Schema().Entity(name)
	if e == nil {
		return nil, fault.New(fault.Invalid, "%s has no declared fields: its rows are exported and imported as JSON lines, and changed only by handlers", name)
	}
	return e, nil
}

func (l *Local) updateRows(ctx context.Context, who keystore.Authority, args admin.ChangeRows) (done admin.ChangedRows, err error) {
	if args.Cascade {
		return done, fault.New(fault.Invalid, "cascade is only for deletes: remove it")
	}
	set := map[string]json.RawMessage{}
	e, err := l.declared(args.Entity)
	if err != nil {
		return done, err
	}
	for name, text := range args.Set {
		f := e.Field(name)
		if f == nil {
			return done, fault.New(fault.Invalid, "set: %s has no field %q%s", args.Entity, name, diag.DidYouMean(name, e.FieldNames()))
		}
		v, err := f.Type.ParseText(text)
		if err != nil {
			return done, fault.New(fault.Invalid, "set: %s %v", name, err)
		}
		set[name] = f.Type.AppendJSON(nil, v)
	}
	return l.changeRows(ctx, who, &args, "data.update", func(ids []any) (string, map[string]any) {
		return "update", map[string]any{"in": args.Entity, "set": set, "where": ids}
	})
}

func (l *Local) deleteRows(ctx context.Context, who keystore.Authority, args admin.ChangeRows) (admin.ChangedRows, error) {
	if len(args.Set) > 0 {
		return admin.ChangedRows{}, fault.New(fault.Invalid, "set is for updates")
	}
	return l.changeRows(ctx, who, &args, "data.delete", func(ids []any) (string, map[string]any) {
		return "delete", map[string]any{"from": args.Entity, "where": ids}
	})
}

// changeRows finds the next batch of rows, and changes each by the operation that change
// returns for it.
func (l *Local) changeRows(ctx context.Context, who keystore.Authority, args *admin.ChangeRows, action string, change func(ids []any) (string, map[string]any)) (done admin.ChangedRows, err error) {
	where, err := l.conditions(args.Entity, args.Where)
	if err != nil {
		return done, err
	}
	query := map[string]any{"from": args.Entity, "select": []string{"id"}, "where": where, "orderBy": [][2]string{{"id", "asc"}}, "limit": changeBatch}
	if args.Cursor != "" {
		query["cursor"] = args.Cursor
	}
	_, err = l.Store.Update(ctx, func(tx *store.Tx) error {
		done = admin.ChangedRows{}
		text, err := l.onRows(tx, &who.Caller, "query", query)
		if err != nil {
			return err
		}
		var found struct {
			Rows       []struct{ ID string }
			NextCursor string
		}
		if err := json.Unmarshal(text, &found); err != nil || len(found.Rows) == 0 {
			return err
		}
		ids := []string{}
		for _, row := range found.Rows {
			ids = append(ids, row.ID)
		}
		op, request := change([]any{[]any{"id", "in", ids}})
		part := 0
		if args.Cascade {
			part = changeBatch
		}
		if text, err = l.onPart(tx, &who.Caller, op, request, part); err != nil {
			return err
		}
		if err := json.Unmarshal(text, &done); err != nil {
			return err
		}
		if done.NextCursor = found.NextCursor; done.More {
			done.NextCursor = args.Cursor
		}
		record := who.Record(action, args.Entity)
		record.Count = done.Count + done.Following
		return audit.Append(tx, record)
	})
	return done, err
}

// conditions returns the where of a query.
func (l *Local) conditions(name string, list []admin.Condition) ([]any, error) {
	where := []any{}
	for _, c := range list {
		value, err := l.operand(name, c)
		if err != nil {
			return nil, err
		}
		where = append(where, []any{c.Field, c.Operator, value})
	}
	return where, nil
}

// operand returns the JSON of a condition's value. If the field is unknown, the query
// refuses it.
func (l *Local) operand(name string, c admin.Condition) (json.RawMessage, error) {
	m, err := l.model()
	if err != nil {
		return nil, err
	}
	quoted, err := json.Marshal(c.Value)
	if err != nil {
		return nil, err
	}
	e := m.Schema().Entity(name)
	if e == nil {
		if json.Valid([]byte(c.Value)) {
			return json.RawMessage(c.Value), nil
		}
		return quoted, nil
	}
	switch f := e.Field(c.Field); {
	case c.Value == "null" && (c.Operator == "=" || c.Operator == "!="):
		return json.RawMessage("null"), nil
	case f == nil:
		return quoted, nil
	default:
		if _, err := f.Type.ParseOperand([]byte(c.Value)); err == nil && json.Valid([]byte(c.Value)) {
			return json.RawMessage(c.Value), nil
		}
		return quoted, nil
	}
}
