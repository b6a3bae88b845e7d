package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/schema"
	"runner.example/state/audit"
	"runner.example/state/store"
)

// errRefused rolls an import back.
var errRefused = errors.New("rows were refused")

func (l *Local) importRows(ctx context.Context, who keystore.Authority, args admin.ImportRows) (done admin.Imported, err error) {
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
	files, err := l.filesForImport(ctx, &args, rows)
	if err != nil {
		return done, err
	}
	defer files.release()
	_, err = l.Store.Update(ctx, func(tx *store.Tx) error {
		done = admin.Imported{Refused: append([]admin.RefusedRow{}, unreadable...)}
		refused, err := l.importAll(tx, &who.Caller, &args, rows, files, &done)
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
		record := who.Record("data.import", args.Entity)
		record.Count = done.Inserted
		return audit.Append(tx, record)
	})
	if errors.Is(err, errRefused) {
		done.Inserted, done.Skipped, err = 0, 0, nil
		slices.SortFunc(done.Refused, func(a, b admin.RefusedRow) int { return a.Index - b.Index })
	}
	return done, err
}

// importAll inserts rows; those that refer to others of the request come after these.
func (l *Local) importAll(tx *store.Tx, who *caller.Caller, args *admin.ImportRows, rows []json.RawMessage, files *importedFiles, done *admin.Imported) (refused []admin.RefusedRow, err error) {
	open := []int{}
	for i, row := range rows {
		if row != nil { // else it is in unreadable
			open = append(open, i)
		}
	}
	if !args.SkipExisting && len(open) == len(rows) && len(files.wrong) == 0 {
		switch err := l.insertAll(tx, who, args.Entity, rows, files); {
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
		var why []admin.RefusedRow
		for _, i := range open {
			switch err := l.importRow(tx, who, args, i, rows[i], files, done); {
			case err == nil:
			case fault.CodeOf(err) == fault.NotFound:
				lost, why = append(lost, i), append(why, admin.RefusedRow{Index: i, Message: fault.Of(explained(err)).Detail})
			case isOfRow(err):
				refused = append(refused, admin.RefusedRow{Index: i, Message: fault.Of(explained(err)).Detail})
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
func (l *Local) insertAll(tx *store.Tx, who *caller.Caller, entity string, rows []json.RawMessage, files *importedFiles) error {
	name, err := admin.Marshal(entity)
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
	return l.insert(tx, who, append(text, "]}"...), files)
}

// insert inserts rows. Their ids and times are kept if they have them.
func (l *Local) insert(tx *store.Tx, who *caller.Caller, args []byte, files *importedFiles) error {
	access, err := l.access(tx, who)
	if err != nil {
		return err
	}
	access.Import, access.FileOf = true, files.known
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

func (l *Local) importRow(tx *store.Tx, who *caller.Caller, args *admin.ImportRows, i int, row json.RawMessage, files *importedFiles, done *admin.Imported) error {
	if args.SkipExisting {
		exists, err := l.exists(tx, who, args.Entity, row)
		if err != nil {
			return err
		}
		if exists {
			done.Skipped++
			return nil
		}
	}
	if message := files.wrong[i]; message != "" {
		return fault.New(fault.Invalid, "%s", message)
	}
	text, err := admin.Marshal(map[string]any{"into": args.Entity, "values": row})
	if err != nil {
		return err
	}
	if err := l.insert(tx, who, text, files); err != nil {
		return err
	}
	done.Inserted++
	return nil
}

// exists reports whether there is a row with the id of another one, which may have none.
func (l *Local) exists(tx *store.Tx, who *caller.Caller, entity string, row json.RawMessage) (bool, error) {
	var known struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(row, &known) != nil || known.ID == "" {
		return false, nil
	}
	_, err := l.onRows(tx, who, "get", map[string]any{"from": entity, "id": known.ID})
	if fault.CodeOf(err) == fault.NotFound || isOfRow(err) {
		return false, nil
	}
	return err == nil, err
}

// rowsOf returns the rows of a request as JSON objects; a row that cannot be converted is
// nil and in unreadable.
func (l *Local) rowsOf(args *admin.ImportRows) (rows []json.RawMessage, unreadable []admin.RefusedRow, err error) {
	if len(args.Rows)+len(args.Cells) > admin.MaxImport {
		return nil, nil, fault.New(fault.Invalid, "%d rows at once: at most %d", len(args.Rows)+len(args.Cells), admin.MaxImport)
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
			unreadable = append(unreadable, admin.RefusedRow{Index: i, Message: message})
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
