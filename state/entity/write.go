package entity

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/state/entity/layout"
	"runner.example/state/entity/query"
	"runner.example/state/store"
)

// maxChanged is the number of rows that one update or delete finds and changes.
const maxChanged = 1000

// maxKeptBytes limits the stored bytes of rows that an update or a delete keeps in memory
// until all of it is checked.
const maxKeptBytes = 32 << 20

// finding counts the rows that an update or a delete finds.
type finding struct {
	rows, bytes int
	// more: there are rows beyond the limit that the operation names.
	more bool
}

// take counts a row before it is kept. It reports whether the operation changes the row: one that
// names a limit ends at it, and before its rows become too long together.
func (f *finding) take(o *operation, r *layout.Row) (bool, error) {
	limit := maxChanged
	if o.isLimited() {
		limit = o.query.Limit
	}
	f.rows++
	f.bytes += len(r.Raw)
	tooLong := f.bytes > maxKeptBytes
	switch {
	case f.rows <= limit && !tooLong:
		return true, nil
	case o.isLimited() && f.rows > 1:
		f.more = true
		return false, nil
	case tooLong:
		return false, fault.New(fault.Limit,
			"the rows to change or delete have more than %d MiB together: change them in batches, with a limit", maxKeptBytes>>20)
	}
	return false, fault.New(fault.Limit, "where: more than %d rows match: change them in batches, with a limit", maxChanged)
}

// change is what an operation will do to one key. The value is not changed.
type change struct {
	key    string
	value  []byte
	delete bool
}

// changes are those of one operation, collected until all of it is checked, and then
// applied together.
type changes struct {
	list  []change
	bytes int
	// entries are the keys in unique indexes that the operation adds or removes: the tail
	// of the row that has it then, empty for none.
	entries map[string]string
}

func (c *changes) set(key, value []byte) {
	c.list = append(c.list, change{key: string(key), value: value})
	c.bytes += len(key) + len(value)
}

func (c *changes) remove(key []byte) {
	c.list = append(c.list, change{key: string(key), delete: true})
	c.bytes += len(key)
}

func (c *changes) enter(key []byte, tail string) {
	if c.entries == nil {
		c.entries = map[string]string{}
	}
	c.entries[string(key)] = tail
}

// apply applies the changes.
func (a *Access) apply(c *changes) error {
	if !a.Tx.Fits(len(c.list), c.bytes) {
		return store.ErrTooLarge
	}
	for i := range c.list {
		if err := a.spend(query.RowUnits + len(c.list[i].value)); err != nil {
			return err // some of it may be done; the transaction is never committed
		}
		var err error
		if ch := &c.list[i]; ch.delete {
			err = a.Tx.Delete(layout.BorrowBytes(ch.key))
		} else {
			err = a.Tx.Set(layout.BorrowBytes(ch.key), ch.value)
		}
		if err != nil {
			return storeFault(err)
		}
	}
	a.lookedUp.clear()
	return nil
}

// put collects the change of a row to its new values, nil for none: the row and its entries. row
// has its tail and, if it exists, how it is stored, with its old values. It returns the stored
// length of the new row.
func (c *changes) put(t *table, row *layout.Row, values []schema.Value) (stored int) {
	tail, old := row.Tail, row.Values
	key := append(slices.Clone(t.Prefix), tail...)
	var raw []byte
	if values == nil {
		c.remove(key)
	} else {
		raw = t.AppendRow(nil, values, row.Raw)
		stored = len(raw)
		c.set(key, raw)
	}
	if t.MayHaveFiles() {
		c.putFiles(t, tail, row.Raw, layout.BorrowString(raw))
	}
	var before, now []byte
	for _, x := range t.Indexes {
		if old != nil {
			before = t.EntryKey(before[:0], x, old)
		}
		if values != nil {
			now = t.EntryKey(now[:0], x, values)
		}
		if old != nil && values != nil && string(before) == string(now) {
			continue
		}
		if old != nil {
			c.remove(before)
		}
		if values != nil {
			c.set(now, layout.BorrowBytes(tail))
		}
	}
	return stored
}

// putFiles collects the changes of a row's references to the blobs of its files. before and now are how the row is
// stored, empty for none.
func (c *changes) putFiles(t *table, tail, before, now string) {
	had, has := filesIn(before), filesIn(now)
	reference := func(f *layout.FileIn) []byte {
		return layout.AppendFileReference(nil, f.File, t.Number, f.Field, tail)
	}
	for i := range had {
		if !hasFile(has, &had[i]) {
			c.remove(reference(&had[i]))
		}
	}
	for i := range has {
		if !hasFile(had, &has[i]) {
			c.set(reference(&has[i]), nil)
		}
	}
}

// filesIn returns the files of a stored row, which has been decoded, or was encoded now.
func filesIn(raw string) []layout.FileIn {
	if raw == "" {
		return nil
	}
	files, err := layout.FilesIn(nil, raw)
	if err != nil {
		panic("BUG: a row that was decoded cannot be decoded: " + err.Error())
	}
	return files
}

// hasFile reports whether a field has a file with the same bytes.
func hasFile(files []layout.FileIn, f *layout.FileIn) bool {
	return slices.ContainsFunc(files, func(other layout.FileIn) bool {
		return other.Field == f.Field && other.SHA256 == f.SHA256
	})
}

// checkRowSize checks the stored length of a row that the caller writes. The error is about the
// longest value.
func checkRowSize(t *table, values []schema.Value, stored int) error {
	if stored > layout.MaxRowBytes {
		field, longest := t.longest(values)
		return fault.New(fault.TooLarge, "the %s has %d bytes; the limit of a row is %d: make its values shorter",
			t.Name, stored, layout.MaxRowBytes).About(fault.Subject{
			Entity: t.Name, Field: field, Value: longest,
			Public: fmt.Sprintf("is too long: the limit of a row is %d bytes", layout.MaxRowBytes),
		})
	}
	return nil
}

// longest returns the field with the longest value of a row and the value's JSON, nil if the row has none.
func (t *table) longest(values []schema.Value) (field string, text []byte) {
	if t.Entity == nil {
		var members map[string]json.RawMessage
		_ = json.Unmarshal(t.object(values).Object, &members) // what is stored is an object
		for name, member := range members {
			if len(member) > len(text) {
				field, text = name, member
			}
		}
		return field, text
	}
	for _, f := range t.Entity.Fields {
		if f.Type.Kind == schema.ToMany {
			continue
		}
		if one := f.Type.AppendJSON(nil, values[f.Pos]); len(one) > len(text) {
			field, text = f.Name, one
		}
	}
	return field, text
}

// claim checks that the new values of a row violate no unique index, given the earlier
// changes of the operation, and records their entries. Those of the old values must have
// been removed before.
func (o *operation) claim(c *changes, tail string, values []schema.Value) error {
	t := o.table
	for _, x := range t.Indexes {
		key := t.EntryKey(o.key[:0], x, values)
		o.key = key
		if len(key) > layout.MaxEntryBytes {
			return query.Invalidf("%stoo long for an index: all indexed fields together may take %d bytes",
				o.named(x), layout.MaxEntryBytes)
		}
		if !x.Unique || x.HasNull(values) {
			continue
		}
		holder, known := c.entries[string(key)]
		if !known {
			raw, err := o.Tx.Get(key)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return storeFault(err)
			}
			holder = string(raw)
		}
		if holder != "" && holder != tail {
			return o.notUnique(x)
		}
		c.enter(key, tail)
	}
	return nil
}

// notUnique is the error that another row has the values of a unique index.
func (o *operation) notUnique(x *layout.Index) error {
	names := strings.TrimSuffix(o.named(x), ": ")
	about := fault.Subject{Field: strings.ReplaceAll(names, ", ", ",")}
	switch {
	case names == "":
		return fault.New(fault.Conflict, "another %s has the same value in a unique field", o.table.Name)
	case strings.Contains(names, ","):
		about.Public = "must be unique together: another row has the same values"
		return fault.New(fault.Conflict, "%s must be unique together: another %s has the same values", names, o.table.Name).About(about)
	}
	return notUnique(o.table, names)
}

// notUnique is the error that another row has the value of a field.
func notUnique(t *table, field string) error {
	return fault.New(fault.Conflict, "%s must be unique: another %s has the same value", field, t.Name).
		About(fault.Subject{Field: field, Public: "must be unique: another row has the same value"})
}

// named begins a message with the fields of an index that the caller may know.
func (o *operation) named(x *layout.Index) string {
	for _, c := range x.Columns {
		if c.Slot != o.table.Tenant && !o.knows(c.Slot) {
			return ""
		}
	}
	return x.Names(o.table.Table) + ": "
}

// knows reports whether the caller may name the field: read it or write it.
func (o *operation) knows(slot int) bool {
	for _, r := range []*query.Right{o.auth.Read, o.auth.Insert, o.auth.Update} {
		if r != nil && r.Fields[slot] {
			return true
		}
	}
	return false
}

// removeEntries records that the row's entries leave the unique indexes.
func (c *changes) removeEntries(t *table, values []schema.Value) {
	for _, x := range t.Indexes {
		if x.Unique && !x.HasNull(values) {
			c.enter(t.EntryKey(nil, x, values), "")
		}
	}
}

// ---- insert ----

// insert adds rows.
func (o *operation) insert(inputs []query.Input, isList bool) error {
	var err error
	rows := make([]layout.Row, len(inputs))
	for i := range inputs {
		at := "values"
		if isList {
			at = query.ElementPath(at, i)
		}
		if rows[i].Values, err = o.newRow(&inputs[i], at); err != nil {
			return err
		}
		rows[i].Tail = string(o.table.TailOf(nil, rows[i].Values))
	}
	c := &changes{}
	fresh := map[string]struct{}{}
	for i := range rows {
		if err := o.alive(); err != nil {
			return err
		}
		if err := o.admit(&rows[i], &inputs[i], c, fresh); err != nil {
			return err
		}
	}
	if o.out != nil {
		if err := o.answerInserted(rows, inputs); err != nil {
			return err
		}
	}
	if err := o.apply(c); err != nil {
		return err
	}
	if o.inserted == nil {
		o.inserted = fresh
	} else {
		maps.Copy(o.inserted, fresh)
	}
	return nil
}

// admit checks one new row and collects its changes.
func (o *operation) admit(r *layout.Row, in *query.Input, c *changes, fresh map[string]struct{}) error {
	t := o.table
	for _, rel := range t.relations {
		if err := o.checkTarget(rel, r.Values, in.Given, fresh); err != nil {
			return err
		}
	}
	may, err := false, error(nil)
	if t.Entity == nil {
		may, err = o.auth.MayInsertUntyped(t.object(r.Values))
	} else {
		may, err = o.auth.MayInsert(r.Values)
	}
	if err != nil {
		return err
	}
	if !may {
		return fault.New(fault.Denied, "the caller may not insert this %s", t.Name)
	}
	key := string(o.rowKey(t, r.Tail))
	_, taken := fresh[key]
	if o.isGiven(in) && !taken {
		_, taken, err = o.read(t, r.Tail)
		if err != nil {
			return err
		}
	}
	if taken {
		return notUnique(t, "id")
	}
	if err := o.claim(c, r.Tail, r.Values); err != nil {
		return err
	}
	if err := checkRowSize(t, r.Values, c.put(t, &layout.Row{Tail: r.Tail}, r.Values)); err != nil {
		return err
	}
	fresh[key] = struct{}{}
	o.pending.decide(r.Tail, r.Values)
	return nil
}

// isGiven reports whether the caller gave the row's id.
func (o *operation) isGiven(in *query.Input) bool {
	if o.table.Entity == nil {
		return in.ID != ""
	}
	return in.Given[o.table.ID]
}

// newRow completes the given values of a row: id, tenant, times, defaults.
func (o *operation) newRow(in *query.Input, at string) ([]schema.Value, error) {
	t := o.table
	tenant, bound := o.bound(t, o.auth.AnyTenant)
	if t.Entity == nil {
		return o.newObject(in, tenant)
	}
	values := in.Values
	now := o.Tx.Now()
	for _, f := range t.Entity.Fields {
		if in.Given[f.Pos] || f.Type.Kind == schema.ToMany {
			continue
		}
		switch {
		case f == t.Entity.ID:
			id, err := o.newID()
			if err != nil {
				return nil, err
			}
			values[f.Pos] = schema.TextValue(id)
		case f == t.Entity.Tenant && bound:
			values[f.Pos] = schema.TextValue(tenant)
		case f == t.Entity.Tenant:
			return nil, missing(in, f, at, ": the caller has no tenant of its own")
		case f.Created, f.Updated:
			values[f.Pos] = schema.Now(now)
		case f.HasDefault:
			values[f.Pos] = f.Default
		case f.DefaultNow:
			values[f.Pos] = f.Type.Now(now)
		case !f.Type.Optional && o.knows(f.Pos):
			return nil, missing(in, f, at, "")
		case !f.Type.Optional:
			return nil, query.Invalidf("%s: the caller may not write a required field", at)
		}
	}
	return values, nil
}

// missing is the error that the values of a row lack a field.
func missing(in *query.Input, f *schema.Field, at, why string) error {
	return fault.New(fault.Invalid, "%s.%s: is required%s", at, f.Name, why).
		About(fault.Subject{Field: f.Name, Value: in.Text, Public: "is required"})
}

// newObject is newRow of untyped mode.
func (o *operation) newObject(in *query.Input, tenant string) ([]schema.Value, error) {
	id := in.ID
	if id == "" {
		var err error
		if id, err = o.newID(); err != nil {
			return nil, err
		}
	}
	return []schema.Value{schema.TextValue(id), schema.TextValue(tenant), schema.JSONValue(string(in.Object))}, nil
}

// checkTarget checks that a given relation refers to a row of the same tenant that the
// caller may read or has inserted in this transaction. A row that does not exist and one
// that the caller may not read give the same answer.
func (o *operation) checkTarget(rel relation, values []schema.Value, given query.FieldSet,
	fresh map[string]struct{}) error {
	v := values[rel.slot]
	if v.IsNull() || !given[rel.slot] {
		return nil
	}
	target := rel.table
	none := func(err error) error { // err, if it is not nil
		if err != nil {
			return err
		}
		field := o.table.Slots[rel.slot].Field.Name
		return fault.New(fault.NotFound, "%s: there is no %s with this id that the caller may read", field, target.Name).
			About(fault.Subject{Field: field, Public: "does not exist, or the caller may not read it"}).
			WithHint("runner data list shows the rows of an entity")
	}
	auth := target.rights.For(o.auth.Input)
	tenant := o.Caller.Tenant
	switch {
	case o.table.Tenant >= 0:
		tenant = values[o.table.Tenant].Text()
	case target.Tenant >= 0 && auth.AnyTenant: // from a row without a tenant into any
		_, found, err := o.theOne(target, v.Text(), true, func(r *layout.Row) (bool, error) {
			if _, here := o.inserted[string(o.rowKey(target, r.Tail))]; here {
				return true, nil
			}
			return auth.MayRead(r.Values)
		})
		if err != nil || !found {
			return none(err)
		}
		return nil
	}
	o.tail = target.Tail(o.tail[:0], tenant, v.Text())
	o.key = append(append(o.key[:0], target.Prefix...), o.tail...)
	_, here := o.inserted[string(o.key)]
	if _, now := fresh[string(o.key)]; here || now {
		return o.touch()
	}
	row, decided := o.pending.of(target, layout.BorrowString(o.tail))
	if !decided {
		var err error
		if row, err = o.lookUp(target, o.tail); err != nil {
			return err
		}
	}
	if row == nil || auth.Read == nil {
		return none(nil)
	}
	if may, err := auth.MayRead(row); err != nil || !may {
		return none(err)
	}
	return nil
}

func (o *operation) answerInserted(rows []layout.Row, inputs []query.Input) error {
	w := o.rowsOf()
	for i := range rows {
		if err := o.spend(query.RowUnits); err != nil {
			return err
		}
		w.begin()
		if err := o.appendInserted(rows[i].Values, &inputs[i]); err != nil {
			return err
		}
		if err := w.done(rows[i].Values); err != nil {
			return err
		}
	}
	w.end()
	o.out.JSON = append(o.out.JSON, '}')
	return nil
}

func (o *operation) appendInserted(values []schema.Value, in *query.Input) error {
	t := o.table
	if t.Entity != nil {
		positions, err := o.auth.ReturnedFields(values, in.Given)
		o.saw(values, positions)
		o.out.JSON = t.appendFields(o.out.JSON, values, positions)
		return err
	}
	// The caller wrote all of it except the id.
	var only []string
	if read := o.auth.Read; read != nil && read.Only != nil {
		only = append([]string{"id"}, o.auth.Insert.Only...)
		if o.auth.Insert.Only == nil {
			only = nil
		}
	}
	o.out.JSON = t.object(values).AppendJSON(o.out.JSON, only)
	return nil
}

// ---- update ----

// changed is a row that an update or a delete has found.
type changed struct {
	old layout.Row
	new []schema.Value
}

// update changes the rows that the query finds.
func (o *operation) update(in *query.Input) error {
	found, more, err := o.findToUpdate(in)
	if err != nil {
		return err
	}
	c := &changes{}
	for i := range found {
		if err := o.spend(query.RowUnits); err != nil {
			return err
		}
		c.removeEntries(o.table, found[i].old.Values)
	}
	for i := range found {
		if err := o.spend(query.RowUnits); err != nil {
			return err
		}
		if err := o.claim(c, found[i].old.Tail, found[i].new); err != nil {
			return err
		}
		if err := checkRowSize(o.table, found[i].new, c.put(o.table, &found[i].old, found[i].new)); err != nil {
			return err
		}
	}
	if err := o.answerUpdated(found, more); err != nil {
		return err
	}
	return o.apply(c)
}

// findToUpdate returns the rows to change, by id, with their new values, checked except for
// unique indexes. more: there are others, beyond the limit of the operation.
func (o *operation) findToUpdate(in *query.Input) (found []changed, more bool, err error) {
	var firstMakes bool
	var kept finding
	err = o.find(func(r *layout.Row) (bool, error) {
		values, err := o.updated(r.Values, in)
		if err != nil {
			return false, err
		}
		finds, makes, err := o.mayUpdate(r.Values, values)
		if err != nil || !finds {
			return err == nil, err
		}
		if ok, err := o.matches(o.asked(r.Values)); err != nil || !ok {
			return err == nil, err
		}
		if ok, err := kept.take(o, r); err != nil || !ok {
			return false, err
		}
		firstMakes = makes
		own, err := o.table.CloneRow(r)
		if err != nil {
			return false, err
		}
		if values, err = o.updated(own.Values, in); err != nil {
			return false, err
		}
		found = append(found, changed{own, values})
		return true, nil
	})
	if err != nil {
		return nil, false, err
	}
	slices.SortFunc(found, func(a, b changed) int {
		return strings.Compare(a.old.Values[o.table.ID].Text(), b.old.Values[o.table.ID].Text())
	})
	rest := found[:0]
	for _, f := range found {
		if err := o.alive(); err != nil {
			return nil, false, err
		}
		finds, makes := true, firstMakes
		if len(found) > 1 { // earlier changes may have changed what its rules see
			if finds, makes, err = o.mayUpdate(f.old.Values, f.new); err != nil {
				return nil, false, err
			}
		}
		if !finds {
			continue
		}
		for _, rel := range o.table.relations {
			if err := o.checkTarget(rel, f.new, in.Given, nil); err != nil {
				return nil, false, err
			}
		}
		if !makes {
			return nil, false, fault.New(fault.Denied, "the caller may not change this %s in this way", o.table.Name)
		}
		o.pending.decide(f.old.Tail, f.new)
		rest = append(rest, f)
	}
	return rest, kept.more, nil
}

// mayUpdate checks the authority over a row before and after the change.
func (o *operation) mayUpdate(old, new []schema.Value) (finds, makes bool, err error) {
	if o.table.Entity == nil {
		return o.auth.MayUpdateUntyped(o.table.object(old), o.table.object(new))
	}
	return o.auth.MayUpdate(old, new)
}

// find scans the rows that an update or a delete may affect.
func (o *operation) find(visit func(*layout.Row) (bool, error)) error {
	looked := 0
	return o.scan(o.table, o.plan(o.table, o.planInput(false)), func(r *layout.Row) (bool, error) {
		if looked++; o.table.Entity == nil && looked > maxFreeRows {
			return false, o.tooManyFree()
		}
		return visit(r)
	})
}

// updated returns the values of a row after the update.
func (o *operation) updated(old []schema.Value, in *query.Input) ([]schema.Value, error) {
	t := o.table
	values := slices.Clone(old)
	if t.Entity == nil {
		merged, err := in.Merge(layout.BorrowBytes(old[layout.UntypedObject].Text()))
		values[layout.UntypedObject] = schema.JSONValue(merged)
		return values, err
	}
	for _, f := range t.Entity.Fields {
		switch {
		case in.Given[f.Pos]:
			values[f.Pos] = in.Values[f.Pos]
		case f.Updated:
			values[f.Pos] = schema.Now(o.Tx.Now())
		}
	}
	return values, nil
}

// answerUpdated returns the number of rows and, if the caller may read, those that it may
// still read.
func (o *operation) answerUpdated(rows []changed, more bool) error {
	o.answerCount(len(rows), more)
	if o.auth.Read == nil {
		o.out.JSON = append(o.out.JSON, '}')
		return nil
	}
	o.out.JSON = append(o.out.JSON, ',')
	w := o.rowsOf()
	for i := range rows {
		if err := o.spend(query.RowUnits); err != nil {
			return err
		}
		may, err := o.mayRead(rows[i].new)
		if err != nil {
			return err
		}
		if !may {
			continue
		}
		if err := w.add(rows[i].new); err != nil {
			return err
		}
	}
	w.end()
	o.out.JSON = append(o.out.JSON, '}')
	return nil
}
