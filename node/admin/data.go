package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/schema"
	"runner.example/state/audit"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// MaxImport is the most rows of one ImportRows: they are one transaction.
const MaxImport = 1000

// operatorRows is the most rows that one operation of an operator may read: there is no
// limit but its context.
const operatorRows = math.MaxInt

// RowID identifies a row.
type RowID struct {
	Entity string `json:"entity"`
	ID     string `json:"id"`
	// Tenant is the tenant of the row, in schemas without entities.
	Tenant *string `json:"tenant,omitempty"`
}

// Condition compares a field with a value. The value is written as on a command line: a
// string without quotes, all else as in JSON.
type Condition struct {
	Field    string `json:"field"`
	Operator string `json:"operator"`
	Value    string `json:"value"`
}

// ListRows selects and orders rows.
type ListRows struct {
	Entity string      `json:"entity"`
	Where  []Condition `json:"where,omitempty"`
	// OrderBy are fields, each with "asc" or "desc".
	OrderBy [][2]string `json:"orderBy,omitempty"`
	// Limit is 1-1000; 0: 100.
	Limit  int    `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"`
	// Text asks for rows as text, in the form of ImportRows.
	Text bool `json:"text,omitempty"`
	// Tenant selects the rows of one tenant, or those without a tenant if it is empty. It
	// is for schemas without entities, whose rows do not contain their tenant.
	Tenant *string `json:"tenant,omitempty"`
}

// RowPage is one page of rows, each a JSON object with every field; or, as text, the names
// of the fields and the values of the rows.
type RowPage struct {
	Rows       []json.RawMessage `json:"rows"`
	Header     []string          `json:"header,omitempty"`
	Cells      [][]string        `json:"cells,omitempty"`
	NextCursor string            `json:"nextCursor"`
}

// ImportRows inserts rows of one entity, all or none. They may have ids, and values for
// fields that the host sets otherwise.
type ImportRows struct {
	Entity string `json:"entity"`
	// Rows are JSON objects.
	Rows []json.RawMessage `json:"rows,omitempty"`
	// Header and Cells are rows as text, in place of Rows: values as in Condition. An empty
	// cell is null in a nullable field, the empty string in a text field, and else a
	// missing member.
	Header []string   `json:"header,omitempty"`
	Cells  [][]string `json:"cells,omitempty"`
	// SkipExisting skips rows whose id exists.
	SkipExisting bool `json:"skipExisting,omitempty"`
	// Tenant is the tenant of the rows, in schemas without entities.
	Tenant string `json:"tenant,omitempty"`
}

// ChangeRows selects rows to update or delete: one batch, in the order of their ids.
type ChangeRows struct {
	Entity string      `json:"entity"`
	Where  []Condition `json:"where,omitempty"`
	// Set has the new values of an update, as in Condition; an empty value is null in a
	// nullable field.
	Set    map[string]string `json:"set,omitempty"`
	Cursor string            `json:"cursor,omitempty"`
}

// ChangedRows is the result of one batch.
type ChangedRows struct {
	Count int `json:"count"`
	// NextCursor is empty after the last batch.
	NextCursor string `json:"nextCursor"`
}

// Imported is the result of an import. If a row was refused, none was inserted.
type Imported struct {
	Inserted int          `json:"inserted"`
	Skipped  int          `json:"skipped"`
	Refused  []RefusedRow `json:"refused"`
}

// RefusedRow is a row that cannot be inserted, with the reason.
type RefusedRow struct {
	// Index is the row's index in the request, from 0.
	Index   int    `json:"index"`
	Message string `json:"message"`
}

// Row returns one row.
func (c *Client) Row(ctx context.Context, request RowID) (json.RawMessage, error) {
	return ask[json.RawMessage](ctx, c, "data.get", request)
}

// ListRows returns one page of rows.
func (c *Client) ListRows(ctx context.Context, request ListRows) (RowPage, error) {
	return ask[RowPage](ctx, c, "data.list", request)
}

// ImportRows inserts rows in one transaction.
func (c *Client) ImportRows(ctx context.Context, request ImportRows) (Imported, error) {
	return ask[Imported](ctx, c, "data.import", request)
}

// UpdateRows changes a batch of rows in one transaction.
func (c *Client) UpdateRows(ctx context.Context, request ChangeRows) (ChangedRows, error) {
	return ask[ChangedRows](ctx, c, "data.update", request)
}

// DeleteRows deletes a batch of rows in one transaction, and follows @onDelete.
func (c *Client) DeleteRows(ctx context.Context, request ChangeRows) (ChangedRows, error) {
	return ask[ChangedRows](ctx, c, "data.delete", request)
}

// onRows runs one operation on rows for an operator.
func (l *Local) onRows(tx *store.Tx, who *caller.Caller, op string, args any) ([]byte, error) {
	text, err := marshal(args)
	if err != nil {
		return nil, fmt.Errorf("encode the arguments of %s: %w", op, err)
	}
	access, err := l.access(tx, who)
	if err != nil {
		return nil, err
	}
	var out entity.Result
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
	access.Reset(m, tx, who, operatorRows)
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

func (l *Local) getRow(ctx context.Context, who keystore.Authority, args RowID) (row json.RawMessage, err error) {
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

func (l *Local) listRows(ctx context.Context, who keystore.Authority, args ListRows) (page RowPage, err error) {
	if err := l.ofTenant(&who.Caller, args.Tenant); err != nil {
		return page, err
	}
	query := map[string]any{"from": args.Entity}
	if args.Limit != 0 {
		query["limit"] = args.Limit
	}
	if args.Cursor != "" {
		query["cursor"] = args.Cursor
	}
	if len(args.OrderBy) > 0 {
		query["orderBy"] = args.OrderBy
	}
	if query["where"], err = l.conditions(args.Entity, args.Where); err != nil {
		return page, err
	}
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		text, err := l.onRows(tx, &who.Caller, "query", query)
		if err != nil {
			return err
		}
		page = RowPage{}
		if err := json.Unmarshal(text, &page); err != nil || !args.Text {
			return err
		}
		return l.writeText(args.Entity, &page)
	})
	return page, err
}

// writeText replaces the page's rows by text.
func (l *Local) writeText(name string, page *RowPage) error {
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

// changeBatch is the number of rows that one transaction of an operator changes.
const changeBatch = 500

func (l *Local) updateRows(ctx context.Context, who keystore.Authority, args ChangeRows) (done ChangedRows, err error) {
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

func (l *Local) deleteRows(ctx context.Context, who keystore.Authority, args ChangeRows) (ChangedRows, error) {
	if len(args.Set) > 0 {
		return ChangedRows{}, fault.New(fault.Invalid, "set is for updates")
	}
	return l.changeRows(ctx, who, &args, "data.delete", func(ids []any) (string, map[string]any) {
		return "delete", map[string]any{"from": args.Entity, "where": ids}
	})
}

// changeRows finds the next batch of rows, and changes each by the operation that change
// returns for it.
func (l *Local) changeRows(ctx context.Context, who keystore.Authority, args *ChangeRows, action string, change func(ids []any) (string, map[string]any)) (done ChangedRows, err error) {
	where, err := l.conditions(args.Entity, args.Where)
	if err != nil {
		return done, err
	}
	query := map[string]any{"from": args.Entity, "select": []string{"id"}, "where": where, "orderBy": [][2]string{{"id", "asc"}}, "limit": changeBatch}
	if args.Cursor != "" {
		query["cursor"] = args.Cursor
	}
	_, err = l.Store.Update(ctx, func(tx *store.Tx) error {
		done = ChangedRows{}
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
		if text, err = l.onRows(tx, &who.Caller, op, request); err != nil {
			return err
		}
		if err := json.Unmarshal(text, &done); err != nil {
			return err
		}
		done.NextCursor = found.NextCursor
		return audit.Append(tx, audit.Record{
			RequestID: who.RequestID, Actor: audit.ActorOf(who.Caller), Action: action,
			Target: args.Entity, Result: audit.OK, Count: done.Count,
		})
	})
	return done, err
}

// conditions returns the where of a query.
func (l *Local) conditions(name string, list []Condition) ([]any, error) {
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
func (l *Local) operand(name string, c Condition) (json.RawMessage, error) {
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

// errRefused rolls an import back.
var errRefused = errors.New("rows were refused")

func (l *Local) importRows(ctx context.Context, who keystore.Authority, args ImportRows) (done Imported, err error) {
	if args.Tenant != "" {
		if err := l.ofTenant(new(caller.Caller), &args.Tenant); err != nil {
			return done, err
		}
		who.Caller.Tenant = args.Tenant
	}
	rows, unreadable, err := l.rowsOf(&args)
	if err != nil {
		return done, err
	}
	_, err = l.Store.Update(ctx, func(tx *store.Tx) error {
		done = Imported{Refused: append([]RefusedRow{}, unreadable...)}
		refused, err := l.importAll(tx, &who.Caller, &args, rows, &done)
		if err != nil {
			return err
		}
		done.Refused = append(done.Refused, refused...)
		if len(done.Refused) > 0 {
			return errRefused
		}
		if done.Inserted == 0 {
			return nil
		}
		return audit.Append(tx, audit.Record{
			RequestID: who.RequestID, Actor: audit.ActorOf(who.Caller), Action: "data.import",
			Target: args.Entity, Result: audit.OK, Count: done.Inserted,
		})
	})
	if errors.Is(err, errRefused) {
		done.Inserted, done.Skipped, err = 0, 0, nil
		slices.SortFunc(done.Refused, func(a, b RefusedRow) int { return a.Index - b.Index })
	}
	return done, err
}

// importAll inserts rows; those that refer to others of the request come after these.
func (l *Local) importAll(tx *store.Tx, who *caller.Caller, args *ImportRows, rows []json.RawMessage, done *Imported) (refused []RefusedRow, err error) {
	open := []int{}
	for i, row := range rows {
		if row != nil { // else it is in unreadable
			open = append(open, i)
		}
	}
	if !args.SkipExisting && len(open) == len(rows) {
		switch err := l.insertAll(tx, who, args.Entity, rows); {
		case err == nil:
			done.Inserted = len(rows)
			return nil, nil
		case !isOfRow(err) && fault.CodeOf(err) != fault.NotFound:
			return nil, err
		}
		// Nothing was inserted: row by row, all errors are found.
	}
	for {
		var lost []int
		var why []RefusedRow
		for _, i := range open {
			switch err := l.importRow(tx, who, args, rows[i], done); {
			case err == nil:
			case fault.CodeOf(err) == fault.NotFound:
				lost, why = append(lost, i), append(why, RefusedRow{i, fault.Of(err).Detail})
			case isOfRow(err):
				refused = append(refused, RefusedRow{i, fault.Of(err).Detail})
			default:
				return nil, err
			}
		}
		if len(lost) == 0 || len(lost) == len(open) {
			return append(refused, why...), nil
		}
		open = lost
	}
}

// insertAll inserts rows in one operation. An error of a row means that none was inserted.
func (l *Local) insertAll(tx *store.Tx, who *caller.Caller, entity string, rows []json.RawMessage) error {
	name, err := marshal(entity)
	if err != nil {
		return err
	}
	size := len(name) + 32
	for _, row := range rows {
		size += len(row) + 1
	}
	text := append(append(append(make([]byte, 0, size), `{"into":`...), name...), `,"values":[`...)
	for i, row := range rows {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, row...)
	}
	return l.insert(tx, who, append(text, "]}"...))
}

// insert inserts rows. Their ids and times are kept if they have them.
func (l *Local) insert(tx *store.Tx, who *caller.Caller, args []byte) error {
	access, err := l.access(tx, who)
	if err != nil {
		return err
	}
	access.Import = true
	return access.Do("insert", args, nil)
}

// isOfRow reports whether an error concerns one row, so that the others can be checked too.
func isOfRow(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Invalid, fault.Conflict, fault.Denied, fault.TooLarge:
		return true
	}
	return false
}

func (l *Local) importRow(tx *store.Tx, who *caller.Caller, args *ImportRows, row json.RawMessage, done *Imported) error {
	if args.SkipExisting {
		var known struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(row, &known) == nil && known.ID != "" {
			_, err := l.onRows(tx, who, "get", map[string]any{"from": args.Entity, "id": known.ID})
			if err == nil {
				done.Skipped++
				return nil
			}
			if fault.CodeOf(err) != fault.NotFound && !isOfRow(err) {
				return err
			}
		}
	}
	text, err := marshal(map[string]any{"into": args.Entity, "values": row})
	if err != nil {
		return err
	}
	if err := l.insert(tx, who, text); err != nil {
		return err
	}
	done.Inserted++
	return nil
}

// rowsOf returns the rows of a request as JSON objects; a row that cannot be converted is
// nil and in unreadable.
func (l *Local) rowsOf(args *ImportRows) (rows []json.RawMessage, unreadable []RefusedRow, err error) {
	if len(args.Rows)+len(args.Cells) > MaxImport {
		return nil, nil, fault.New(fault.Invalid, "%d rows at once: at most %d", len(args.Rows)+len(args.Cells), MaxImport)
	}
	if len(args.Cells) == 0 {
		return args.Rows, nil, nil
	}
	e, err := l.declared(args.Entity)
	if err != nil {
		return nil, nil, err
	}
	fields := make([]*schema.Field, len(args.Header))
	for i, name := range args.Header {
		if fields[i] = e.Field(name); fields[i] == nil {
			return nil, nil, fault.New(fault.Invalid, "column %q: %s has no such field%s", name, args.Entity, diag.DidYouMean(name, e.FieldNames()))
		}
	}
	for i, cells := range args.Cells {
		row, message := objectOf(fields, cells)
		if message != "" {
			unreadable = append(unreadable, RefusedRow{i, message})
		}
		rows = append(rows, row)
	}
	return rows, unreadable, nil
}

// objectOf converts one row of text to a JSON object, or returns what is wrong.
func objectOf(fields []*schema.Field, cells []string) (json.RawMessage, string) {
	if len(cells) != len(fields) {
		return nil, fmt.Sprintf("%d cells, but there are %d columns", len(cells), len(fields))
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for i, f := range fields {
		if cells[i] == "" && !f.Type.Optional && f.Type.Kind != schema.String && f.Type.Kind != schema.Text && f.HasDefault {
			continue
		}
		v, err := f.Type.ParseText(cells[i])
		if err != nil {
			return nil, fmt.Sprintf("%s %v", f.Name, err)
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		name, _ := json.Marshal(f.Name)
		out.Write(name)
		out.WriteByte(':')
		out.Write(f.Type.AppendJSON(nil, v))
	}
	out.WriteByte('}')
	return out.Bytes(), ""
}
