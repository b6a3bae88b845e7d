package query

import (
	"runner.example/internal/caller"
	"runner.example/schema"
)

// Asked is the parsed form of an operation's arguments for a caller, for tests.
type Asked struct {
	request Request
	auth    Authority
	seal    *CursorSealer
}

// Ask parses the arguments of an operation, as Access.Do does with the same Request, for tests that
// need no rows.
func Ask(s *schema.Schema, who *caller.Caller, op, args string) (Asked, error) {
	return AskWithKey(s, who, op, args, [32]byte{1})
}

// AskWithKey is Ask with the key that cursors are sealed with.
func AskWithKey(s *schema.Schema, who *caller.Caller, op, args string, key [32]byte) (Asked, error) {
	kind, ok := OperationOf(op)
	if !ok {
		return Asked{}, Invalidf("unknown operation")
	}
	a, err := ReadArguments(kind, []byte(args))
	if err != nil {
		return Asked{}, err
	}
	if s.Typed && s.Entity(a.Entity) == nil {
		return Asked{}, a.UnknownEntity(s.EntityNames())
	}
	rights := map[string]*Rights{a.Entity: NewRights(s, a.Entity)}
	for _, e := range s.Entities {
		rights[e.Name] = NewRights(s, e.Name)
	}
	Relate(rights)
	asked := Asked{auth: rights[a.Entity].For(schema.RuleInput{Caller: who}), seal: NewCursorSealer(key)}
	asked.request, err = a.Request(&asked.auth, asked.seal)
	return asked, err
}

// Canonical returns the query's canonical form.
func (a Asked) Canonical() string { return string(a.request.Query.appendJSON(nil)) }

// Used are the fields that an aggregate groups by or computes.
func (a Asked) Used() []*schema.Field {
	var fields []*schema.Field
	for _, g := range a.request.Aggregation.By {
		fields = append(fields, g.Field)
	}
	for _, c := range a.request.Aggregation.Computed {
		fields = append(fields, c.Field)
	}
	return fields
}

// Selected are the fields that are returned.
func (a Asked) Selected() []string {
	var names []string
	for _, pos := range a.request.Query.Selected {
		names = append(names, a.auth.entity.Fields[pos].Name)
	}
	return names
}

// Match reports whether a row meets the where.
func (a Asked) Match(row []schema.Value) bool { return a.request.Query.Where.Match(row, nil) }

// FreeValues are the values of an untyped row that Match uses.
func (a Asked) FreeValues(id, object string) []schema.Value {
	return UntypedRow{ID: id, Object: []byte(object)}.AppendValues(nil, a.request.Query.Names, nil)
}

// Compare orders two rows; IsAfter reports whether a row comes after the cursor.
func (a Asked) Compare(x, y []schema.Value) int { return a.request.Query.CompareRows(x, y) }
func (a Asked) IsAfter(row []schema.Value) bool { return a.request.Query.IsAfter(row) }
func (a Asked) Limit() int                      { return a.request.Query.Limit }
func (a Asked) Cursor(row []schema.Value) string {
	return Must(a.request.Query.NextCursor(row, a.seal, a.auth.Input.Caller))
}
func (a Asked) MayRead(row []schema.Value) bool   { return Must(a.auth.MayRead(row)) }
func (a Asked) MayInsert(row []schema.Value) bool { return Must(a.auth.MayInsert(row)) }
func (a Asked) MayDelete(row []schema.Value) bool { return Must(a.auth.MayDelete(row)) }
func (a Asked) MayReadFree(id, object string) bool {
	return Must(a.auth.MayReadUntyped(UntypedRow{id, []byte(object)}))
}
func (a Asked) MayInsertFree(id, object string) bool {
	return Must(a.auth.MayInsertUntyped(UntypedRow{id, []byte(object)}))
}

// MayUpdate reports whether the caller may read the old row and update it to the new one.
func (a Asked) MayUpdate(old, new []schema.Value) (finds, makes bool) {
	finds, makes, err := a.auth.MayUpdate(old, new)
	Must(0, err)
	return finds, makes
}

// Objects are the untyped rows to write.
func (a Asked) Objects() []string {
	var list []string
	for _, in := range a.request.Inserted {
		list = append(list, string(in.Object))
	}
	return list
}

// Written are the values to write, as the JSON of an insert.
func (a Asked) Written() string {
	text := AppendText([]byte(`{"into":`), a.auth.name)
	text = append(text, `,"values":[`...)
	for i, in := range a.request.Inserted {
		if i > 0 {
			text = append(text, ',')
		}
		if a.auth.entity == nil {
			text = append(text, in.Object...)
			continue
		}
		text = append(text, '{')
		for _, f := range a.auth.entity.Fields {
			if in.Given[f.Pos] {
				text = append(AppendText(text, f.Name), ':')
				text = append(f.Type.AppendJSON(text, in.Values[f.Pos]), ',')
			}
		}
		if text[len(text)-1] == ',' {
			text = text[:len(text)-1]
		}
		text = append(text, '}')
	}
	return string(append(text, `]}`...))
}

// Promised reports whether a row fulfils the condition that the planner gets for the
// column.
func (a Asked) Promised(row []schema.Value, pos int) bool {
	v, where := row[pos], &a.request.Query.Where
	if want, ok := where.Equal(pos); ok && !v.Equal(want) {
		return false
	}
	if list, ok := where.OneOf(pos); ok {
		found := false
		for i, want := range list {
			if i > 0 && compareValues(list[i-1], want) >= 0 {
				return false // not ordered
			}
			found = found || v.Equal(want)
		}
		if !found {
			return false
		}
	}
	s, ok := where.Within(pos)
	if !ok {
		return true
	}
	low, high := compareValues(v, s.Low), compareValues(v, s.High)
	switch {
	case v.IsNull(),
		!s.Low.IsNull() && (low < 0 || low == 0 && s.LowOpen),
		!s.High.IsNull() && (high > 0 || high == 0 && s.HighOpen),
		len(v.Text()) < len(s.Prefix) || v.Text()[:len(s.Prefix)] != s.Prefix:
		return false
	}
	return true
}

// Tells reports whether the planner gets a condition for the column.
func (a Asked) Tells(pos int) bool {
	_, equal := a.request.Query.Where.Equal(pos)
	_, among := a.request.Query.Where.OneOf(pos)
	_, within := a.request.Query.Where.Within(pos)
	return equal || among || within
}

// Must returns v; it panics with err.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
