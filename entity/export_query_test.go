package entity

import (
	"runner.example/internal/caller"
	"runner.example/schema"
)

// Asked is what came of reading an operation's arguments for a caller, as tests
// see it.
type Asked struct {
	query  *query
	inputs []input
	auth   authority
	seal   *sealer
}

// Ask reads the arguments of an operation as Do does, up to where rows are looked
// for.
func Ask(s *schema.Schema, who *caller.Caller, op, args string) (Asked, error) {
	return AskWithKey(s, who, op, args, [32]byte{1})
}

// AskWithKey is Ask with the key that cursors are sealed with.
func AskWithKey(s *schema.Schema, who *caller.Caller, op, args string, key [32]byte) (Asked, error) {
	kind, ok := operationOf(op)
	if !ok {
		return Asked{}, invalid("unknown operation")
	}
	a, err := readArguments(kind, []byte(args))
	if err != nil {
		return Asked{}, err
	}
	if s.Typed && s.Entity(a.entity) == nil {
		return Asked{}, a.unknownEntity(s.EntityNames())
	}
	asked := Asked{auth: newRights(s, a.entity).authority(schema.Scene{Caller: who}), seal: newSealer(key)}
	if kind == opInsert {
		asked.inputs, err = a.inputs(&asked.auth)
		return asked, err
	}
	if asked.query, err = a.query(&asked.auth, asked.seal); err != nil || kind != opUpdate {
		return asked, err
	}
	set, err := a.changes(&asked.auth)
	asked.inputs = []input{set}
	return asked, err
}

// Canonical is the query's one form.
func (a Asked) Canonical() string { return string(a.query.appendJSON(nil)) }

// Selected are the fields that rows are given back with.
func (a Asked) Selected() []string {
	var names []string
	for _, pos := range a.query.selected {
		names = append(names, a.auth.entity.Fields[pos].Name)
	}
	return names
}

// Match reports whether a row meets the where.
func (a Asked) Match(row []schema.Value) bool { return a.query.where.match(row, nil) }

// FreeValues are the values of an untyped row that Match looks at.
func (a Asked) FreeValues(id, object string) []schema.Value {
	return freeRow{id: id, object: []byte(object)}.appendValues(nil, a.query.names, nil)
}

// Compare orders two rows; IsAfter reports that one comes behind the cursor.
func (a Asked) Compare(x, y []schema.Value) int { return a.query.compareRows(x, y) }
func (a Asked) IsAfter(row []schema.Value) bool { return a.query.isAfter(row) }
func (a Asked) Limit() int                      { return a.query.limit }
func (a Asked) Cursor(row []schema.Value) string {
	return Must(a.query.nextCursor(row, a.seal, a.auth.scene.Caller))
}
func (a Asked) MayRead(row []schema.Value) bool   { return Must(a.auth.mayRead(row)) }
func (a Asked) MayInsert(row []schema.Value) bool { return Must(a.auth.mayInsert(row)) }
func (a Asked) MayDelete(row []schema.Value) bool { return Must(a.auth.mayDelete(row)) }
func (a Asked) MayReadFree(id, object string) bool {
	return Must(a.auth.mayReadFree(freeRow{id, []byte(object)}))
}
func (a Asked) MayInsertFree(id, object string) bool {
	return Must(a.auth.mayInsertFree(freeRow{id, []byte(object)}))
}

// MayUpdate tells whether the old row is found and the new one may be made of it.
func (a Asked) MayUpdate(old, new []schema.Value) (finds, makes bool) {
	finds, makes, err := a.auth.mayUpdate(old, new)
	Must(0, err)
	return finds, makes
}

// Objects are the untyped rows to write.
func (a Asked) Objects() []string {
	var list []string
	for _, in := range a.inputs {
		list = append(list, string(in.object))
	}
	return list
}

// Written are the values to write, as an insert of them.
func (a Asked) Written() string {
	text := appendText([]byte(`{"into":`), a.auth.name)
	text = append(text, `,"values":[`...)
	for i, in := range a.inputs {
		if i > 0 {
			text = append(text, ',')
		}
		if a.auth.entity == nil {
			text = append(text, in.object...)
			continue
		}
		text = append(text, '{')
		for _, f := range a.auth.entity.Fields {
			if in.given[f.Pos] {
				text = append(appendText(text, f.Name), ':')
				text = append(f.Type.AppendJSON(text, in.values[f.Pos]), ',')
			}
		}
		if text[len(text)-1] == ',' {
			text = text[:len(text)-1]
		}
		text = append(text, '}')
	}
	return string(append(text, `]}`...))
}

// Promised reports that a row keeps what the planner is told of the column.
func (a Asked) Promised(row []schema.Value, pos int) bool {
	v, where := row[pos], &a.query.where
	if want, ok := where.equal(pos); ok && !v.Equal(want) {
		return false
	}
	if list, ok := where.oneOf(pos); ok {
		found := false
		for i, want := range list {
			if i > 0 && compareValues(list[i-1], want) >= 0 {
				return false // not in order
			}
			found = found || v.Equal(want)
		}
		if !found {
			return false
		}
	}
	s, ok := where.within(pos)
	if !ok {
		return true
	}
	low, high := compareValues(v, s.low), compareValues(v, s.high)
	switch {
	case v.IsNull(),
		!s.low.IsNull() && (low < 0 || low == 0 && s.lowOpen),
		!s.high.IsNull() && (high > 0 || high == 0 && s.highOpen),
		len(v.Text()) < len(s.prefix) || v.Text()[:len(s.prefix)] != s.prefix:
		return false
	}
	return true
}

// Tells reports that the planner is told something of the column.
func (a Asked) Tells(pos int) bool {
	_, equal := a.query.where.equal(pos)
	_, among := a.query.where.oneOf(pos)
	_, within := a.query.where.within(pos)
	return equal || among || within
}

// Must gives v; it panics with err.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
