package admin

import (
	"context"
	"encoding/json"

	"runner.example/state/entity"
)

// MaxImport is the most rows of one ImportRows: they are one transaction.
const MaxImport = 1000

// MaxEach is the most rows of one CallEach: they are one transaction.
const MaxEach = 100

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
	// Files asks for a list of the files of the rows.
	Files bool `json:"files,omitempty"`
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
	Files      []FileOfRow       `json:"files,omitempty"`
	NextCursor string            `json:"nextCursor"`
}

// ImportRows inserts rows of one entity, all or none. They may have ids, and values for
// fields that the host sets otherwise. The node must have the contents of their files: see Client.PutContents.
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
	// Refused are rows that the client cannot import, such as those whose files it does not have: the result has them
	// beside those that the node refuses.
	Refused []RefusedRow `json:"refused,omitempty"`
	// Tenant is the tenant of the rows, in schemas without entities.
	Tenant string `json:"tenant,omitempty"`
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

// ChangeRows selects rows to update or delete: one batch, in the order of their ids.
type ChangeRows struct {
	Entity string      `json:"entity"`
	Where  []Condition `json:"where,omitempty"`
	// Set has the new values of an update, as in Condition; an empty value is null in a
	// nullable field.
	Set    map[string]string `json:"set,omitempty"`
	Cursor string            `json:"cursor,omitempty"`
	// Cascade is for a delete: the rows that refer to the selected ones by @onDelete are deleted or changed in
	// batches of their own, before these. Without it, they are in the transaction of the selected ones.
	Cascade bool `json:"cascade,omitempty"`
}

// ChangedRows is the result of one batch.
type ChangedRows struct {
	Count int `json:"count"`
	// Following is the number of other rows that a delete with Cascade deleted or changed.
	Following int `json:"following,omitempty"`
	// More reports that some selected rows remain. The next batch has the same cursor.
	More bool `json:"more,omitempty"`
	// NextCursor is empty after the last batch, and if More is true on the first page.
	NextCursor string `json:"nextCursor"`
}

// CallEach selects the rows for which a function is called: one batch, in the order of their ids.
// Rows whose id is greater than every id at the start of the run are not selected: the function may
// insert rows of the entity. The position is stored in the transaction of the batch. So a call with the
// same arguments continues after it, also one of another operator, until all rows are done.
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
	// Continue only continues: without a position the run has ended, and no row is selected.
	Continue bool `json:"continue,omitempty"`
	// CountOnly asks for the number of rows, and of those that were done before.
	CountOnly bool `json:"countOnly,omitempty"`
}

// EachDone is the result of one batch.
type EachDone struct {
	// Count is the number of calls. With CountOnly it is the number of rows to process, or 0 if Before
	// is not 0: then that number is unknown.
	Count int `json:"count"`
	// Before is the number of rows that earlier batches of the run have processed.
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

// DropKept names a field or an entity that rows have, and that the active release does not declare.
type DropKept struct {
	// Name is "Order" or "Order.note".
	Name   string `json:"name"`
	Cursor string `json:"cursor,omitempty"`
	// Count asks only for the number of rows.
	Count bool `json:"count,omitempty"`
}

// Dropped is the result of one batch.
type Dropped struct {
	// Rows is the number of rows that were read, Count that of those that were changed or deleted.
	Rows  int `json:"rows"`
	Count int `json:"count"`
	// NextCursor is empty after the last batch.
	NextCursor string `json:"nextCursor"`
}

// Row returns one row.
func (c *Client) Row(ctx context.Context, request RowID) (json.RawMessage, error) {
	return ask(ctx, c, OpGetRow, request)
}

// ListRows returns one page of rows.
func (c *Client) ListRows(ctx context.Context, request ListRows) (RowPage, error) {
	return ask(ctx, c, OpListRows, request)
}

// ImportRows inserts rows in one transaction.
func (c *Client) ImportRows(ctx context.Context, request ImportRows) (Imported, error) {
	return ask(ctx, c, OpImportRows, request)
}

// UpdateRows changes a batch of rows in one transaction.
func (c *Client) UpdateRows(ctx context.Context, request ChangeRows) (ChangedRows, error) {
	return ask(ctx, c, OpUpdateRows, request)
}

// DeleteRows deletes a batch of rows in one transaction, and follows @onDelete.
func (c *Client) DeleteRows(ctx context.Context, request ChangeRows) (ChangedRows, error) {
	return ask(ctx, c, OpDeleteRows, request)
}

// CallEach calls a function for each of a batch of rows, in one transaction.
func (c *Client) CallEach(ctx context.Context, request CallEach) (EachDone, error) {
	return ask(ctx, c, OpCallEach, request)
}

// DropKept deletes a batch of values or rows for good.
func (c *Client) DropKept(ctx context.Context, request DropKept) (Dropped, error) {
	return ask(ctx, c, OpDropKept, request)
}

// ExplainRows is a query of a page, as a caller makes it: an operator, or the one that As names.
type ExplainRows struct {
	ListRows
	// As is the name of a scope, "session" or "anonymous"; empty: an operator.
	As string `json:"as,omitempty"`
	// User, Roles and CallerTenant belong to the caller that As names.
	User         string   `json:"user,omitempty"`
	Roles        []string `json:"roles,omitempty"`
	CallerTenant string   `json:"callerTenant,omitempty"`
}

// ExplainedRows says how a page is read.
type ExplainedRows struct {
	entity.Explanation
	// Returned is the number of rows of the page. More reports whether other rows follow.
	Returned int  `json:"returned"`
	More     bool `json:"more"`
}

// ExplainRows reads a page and says how: the index, the rows that were read, and the rules that decided.
func (c *Client) ExplainRows(ctx context.Context, request ExplainRows) (ExplainedRows, error) {
	return ask(ctx, c, OpExplainRows, request)
}
