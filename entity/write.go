package entity

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/store"
)

// maxChanged is the number of rows that one update or delete may change.
const maxChanged = 1000

// maxKeptBytes limits the stored bytes of rows that an update or a delete keeps in memory
// until all of it is checked.
const maxKeptBytes = 32 << 20

// byteBudget counts the bytes of rows that are kept, before they are.
type byteBudget struct{ bytes int }

func (k *byteBudget) keep(r *row) error {
	if k.bytes += len(r.raw); k.bytes > maxKeptBytes {
		return fault.New(fault.Limit, "the rows to change or delete are longer than %d MiB together: change fewer at a time", maxKeptBytes>>20)
	}
	return nil
}

// change is what an operation will do to one key.
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
		if err := a.spend(rowUnits + len(c.list[i].value)); err != nil {
			return err // some of it may be done; the transaction is never committed
		}
		var err error
		if ch := &c.list[i]; ch.delete {
			err = a.Tx.Delete([]byte(ch.key))
		} else {
			err = a.Tx.Set([]byte(ch.key), ch.value)
		}
		if err != nil {
			return storeFault(err)
		}
	}
	a.hops = a.hops[:0]
	return nil
}

// put collects the change of a row from old, nil for none, to its new values, nil for none:
// the row and its entries.
func (c *changes) put(t *table, tail string, old, values []schema.Value) {
	key := append(slices.Clone(t.prefix), tail...)
	if values == nil {
		c.remove(key)
	} else {
		c.set(key, t.appendRow(nil, values))
	}
	var before, now []byte
	for _, x := range t.indexes {
		if old != nil {
			before = t.entryKey(before[:0], x, old)
		}
		if values != nil {
			now = t.entryKey(now[:0], x, values)
		}
		if old != nil && values != nil && string(before) == string(now) {
			continue
		}
		if old != nil {
			c.remove(before)
		}
		if values != nil {
			c.set(now, []byte(tail))
		}
	}
}

// claim checks that the new values of a row violate no unique index, given the earlier
// changes of the operation, and records their entries. Those of the old values must have
// been removed before.
func (o *operation) claim(c *changes, tail string, values []schema.Value) error {
	t := o.table
	for _, x := range t.indexes {
		key := t.entryKey(o.key[:0], x, values)
		o.key = key
		if len(key) > maxEntryBytes {
			return invalid("%stoo long for an index: all indexed fields together may take %d bytes", o.named(x), maxEntryBytes)
		}
		if !x.unique || x.hasNull(values) {
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
			return fault.New(fault.Conflict, "%sanother %s has the same", o.named(x), t.name)
		}
		c.enter(key, tail)
	}
	return nil
}

// named begins a message with the fields of an index that the caller may know.
func (o *operation) named(x *index) string {
	for _, c := range x.columns {
		if c.slot != o.table.tenant && !o.knows(c.slot) {
			return ""
		}
	}
	return x.names(o.table) + ": "
}

// knows reports whether the caller may name the field: read it or write it.
func (o *operation) knows(slot int) bool {
	for _, r := range []*right{o.auth.read, o.auth.insert, o.auth.update} {
		if r != nil && r.fields[slot] {
			return true
		}
	}
	return false
}

// giveUp records that the row's entries leave the unique indexes.
func (c *changes) giveUp(t *table, values []schema.Value) {
	for _, x := range t.indexes {
		if x.unique && !x.hasNull(values) {
			c.enter(t.entryKey(nil, x, values), "")
		}
	}
}

// hasNull reports whether a unique index does not apply to the row.
func (x *index) hasNull(values []schema.Value) bool {
	return slices.ContainsFunc(x.columns, func(c indexColumn) bool { return values[c.slot].IsNull() })
}

// ---- insert ----

// insert adds rows.
func (o *operation) insert(args *arguments) error {
	inputs, err := args.inputs(o.auth)
	if err != nil {
		return err
	}
	rows := make([]row, len(inputs))
	for i := range inputs {
		at := "values"
		if args.members[memberValues][0] == '[' {
			at = place(at, i)
		}
		if rows[i].values, err = o.newRow(&inputs[i], at); err != nil {
			return err
		}
		rows[i].tail = string(o.table.tailOf(nil, rows[i].values))
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
	if err := o.answerInserted(rows, inputs); err != nil {
		return err
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
func (o *operation) admit(r *row, in *input, c *changes, fresh map[string]struct{}) error {
	t := o.table
	for _, rel := range t.relations {
		if err := o.checkTarget(rel, r.values, in.given, fresh); err != nil {
			return err
		}
	}
	may, err := false, error(nil)
	if t.entity == nil {
		may, err = o.auth.mayInsertFree(t.object(r.values))
	} else {
		may, err = o.auth.mayInsert(r.values)
	}
	if err != nil {
		return err
	}
	if !may {
		return fault.New(fault.Denied, "the caller may not insert this %s", t.name)
	}
	key := string(o.rowKey(t, r.tail))
	_, taken := fresh[key]
	if o.isGiven(in) && !taken {
		_, taken, err = o.read(t, r.tail)
		if err != nil {
			return err
		}
	}
	if taken {
		return fault.New(fault.Conflict, "id: another %s has the same", t.name)
	}
	if err := o.claim(c, r.tail, r.values); err != nil {
		return err
	}
	c.put(t, r.tail, nil, r.values)
	fresh[key] = struct{}{}
	o.ahead.decide(r.tail, r.values)
	return nil
}

// isGiven reports whether the caller gave the row's id.
func (o *operation) isGiven(in *input) bool {
	if o.table.entity == nil {
		return in.id != ""
	}
	return in.given[o.table.id]
}

// newRow completes the given values of a row: id, tenant, times, defaults.
func (o *operation) newRow(in *input, at string) ([]schema.Value, error) {
	t := o.table
	tenant, bound := o.bound(t, o.auth.anyTenant)
	if t.entity == nil {
		return o.newObject(in, tenant)
	}
	values := in.values
	now := o.Tx.Now()
	for _, f := range t.entity.Fields {
		if in.given[f.Pos] || f.Type.Kind == schema.ToMany {
			continue
		}
		switch {
		case f == t.entity.ID:
			id, err := o.newID()
			if err != nil {
				return nil, err
			}
			values[f.Pos] = schema.TextValue(id)
		case f == t.entity.Tenant && bound:
			values[f.Pos] = schema.TextValue(tenant)
		case f == t.entity.Tenant:
			return nil, invalid("%s.%s: is required: the caller has no tenant of its own", at, f.Name)
		case f.Created, f.Updated:
			values[f.Pos] = schema.Now(now)
		case f.HasDefault:
			values[f.Pos] = f.Default
		case f.DefaultNow:
			values[f.Pos] = instant(f, now)
		case !f.Type.Optional && o.knows(f.Pos):
			return nil, invalid("%s.%s: is required", at, f.Name)
		case !f.Type.Optional:
			return nil, invalid("%s: the caller may not write a required field", at)
		}
	}
	return values, nil
}

// instant returns the time as a value of the field's type.
func instant(f *schema.Field, now time.Time) schema.Value {
	if f.Type.Kind == schema.Date {
		return schema.Today(now)
	}
	return schema.Now(now)
}

// newObject is newRow of untyped mode.
func (o *operation) newObject(in *input, tenant string) ([]schema.Value, error) {
	id := in.id
	if id == "" {
		var err error
		if id, err = o.newID(); err != nil {
			return nil, err
		}
	}
	return []schema.Value{schema.TextValue(id), schema.TextValue(tenant), schema.JSONValue(string(in.object))}, nil
}

// checkTarget checks that a given relation refers to a row of the same tenant that the
// caller may read or has inserted in this transaction. A row that does not exist and one
// that the caller may not read give the same answer.
func (o *operation) checkTarget(rel relation, values []schema.Value, given fieldSet, fresh map[string]struct{}) error {
	v := values[rel.slot]
	if v.IsNull() || !given[rel.slot] {
		return nil
	}
	target := rel.table
	none := fault.New(fault.NotFound, "%s: there is no %s with this id that the caller may read", o.table.slots[rel.slot].field.Name, target.name)
	auth := target.rights.authority(o.auth.scene)
	tenant := o.Caller.Tenant
	switch {
	case o.table.tenant >= 0:
		tenant = values[o.table.tenant].Text()
	case target.tenant >= 0 && auth.anyTenant: // from a row without a tenant into any
		_, found, err := o.theOne(target, v.Text(), true, func(r *row) (bool, error) {
			if _, here := o.inserted[string(o.rowKey(target, r.tail))]; here {
				return true, nil
			}
			return auth.mayRead(r.values)
		})
		if err != nil || !found {
			return orElse(err, none)
		}
		return nil
	}
	tail := string(target.tail(nil, tenant, v.Text()))
	key := o.rowKey(target, tail)
	_, here := o.inserted[string(key)]
	if _, now := fresh[string(key)]; here || now {
		return o.touch()
	}
	found, exists, err := o.read(target, tail)
	if err != nil {
		return err
	}
	if values, decided := o.ahead.of(target, tail); decided {
		found.values, exists = values, values != nil
	}
	if !exists || auth.read == nil {
		return none
	}
	if may, err := auth.mayRead(found.values); err != nil || !may {
		return orElse(err, none)
	}
	return nil
}

// orElse returns err, or the fault if err is nil.
func orElse(err error, other *fault.Fault) error {
	if err != nil {
		return err
	}
	return other
}

func (o *operation) answerInserted(rows []row, inputs []input) error {
	w := o.rowsOf()
	for i := range rows {
		if err := o.spend(rowUnits); err != nil {
			return err
		}
		w.begin()
		if err := o.appendInserted(rows[i].values, &inputs[i]); err != nil {
			return err
		}
		if err := w.done(); err != nil {
			return err
		}
	}
	w.end()
	o.out.JSON = append(o.out.JSON, '}')
	return nil
}

func (o *operation) appendInserted(values []schema.Value, in *input) error {
	t := o.table
	if t.entity != nil {
		positions, err := o.auth.returned(values, in.given)
		o.out.JSON = t.appendFields(o.out.JSON, values, positions)
		return err
	}
	// The caller wrote all of it except the id.
	var only []string
	if read := o.auth.read; read != nil && read.only != nil {
		only = append([]string{"id"}, o.auth.insert.only...)
		if o.auth.insert.only == nil {
			only = nil
		}
	}
	o.out.JSON = t.appendObject(o.out.JSON, values, &query{only: only})
	return nil
}

// ---- update ----

// changed is a row that an update or a delete has found.
type changed struct {
	tail     string
	old, new []schema.Value
}

// update changes the rows that the query finds.
func (o *operation) update(args *arguments) error {
	in, err := args.changes(o.auth)
	if err != nil {
		return err
	}
	found, err := o.findToUpdate(&in)
	if err != nil {
		return err
	}
	c := &changes{}
	for i := range found {
		if err := o.spend(rowUnits); err != nil {
			return err
		}
		c.giveUp(o.table, found[i].old)
	}
	for i := range found {
		if err := o.spend(rowUnits); err != nil {
			return err
		}
		if err := o.claim(c, found[i].tail, found[i].new); err != nil {
			return err
		}
		c.put(o.table, found[i].tail, found[i].old, found[i].new)
	}
	if err := o.answerUpdated(found); err != nil {
		return err
	}
	return o.apply(c)
}

// findToUpdate returns the rows to change, by id, with their new values, checked except for
// unique indexes.
func (o *operation) findToUpdate(in *input) ([]changed, error) {
	var found []changed
	var firstMakes bool
	var kept byteBudget
	err := o.find(func(r *row) (bool, error) {
		values, err := o.updated(r.values, in)
		if err != nil {
			return false, err
		}
		finds, makes, err := o.mayUpdate(r.values, values)
		if err != nil || !finds {
			return err == nil, err
		}
		if ok, err := o.matches(o.asked(r.values)); err != nil || !ok {
			return err == nil, err
		}
		if len(found) == maxChanged {
			return false, o.tooMany()
		}
		if err := kept.keep(r); err != nil {
			return false, err
		}
		firstMakes = makes
		own, err := r.own(o.table)
		if err != nil {
			return false, err
		}
		if values, err = o.updated(own.values, in); err != nil {
			return false, err
		}
		found = append(found, changed{own.tail, own.values, values})
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b changed) int {
		return strings.Compare(a.old[o.table.id].Text(), b.old[o.table.id].Text())
	})
	rest := found[:0]
	for _, f := range found {
		if err := o.alive(); err != nil {
			return nil, err
		}
		finds, makes := true, firstMakes
		if len(found) > 1 { // earlier changes may have changed what its rules see
			if finds, makes, err = o.mayUpdate(f.old, f.new); err != nil {
				return nil, err
			}
		}
		if !finds {
			continue
		}
		for _, rel := range o.table.relations {
			if err := o.checkTarget(rel, f.new, in.given, nil); err != nil {
				return nil, err
			}
		}
		if !makes {
			return nil, fault.New(fault.Denied, "the caller may not change this %s in this way", o.table.name)
		}
		o.ahead.decide(f.tail, f.new)
		rest = append(rest, f)
	}
	return rest, nil
}

// mayUpdate checks the authority over a row before and after the change.
func (o *operation) mayUpdate(old, new []schema.Value) (finds, makes bool, err error) {
	if o.table.entity == nil {
		return o.auth.mayUpdateFree(o.table.object(old), o.table.object(new))
	}
	return o.auth.mayUpdate(old, new)
}

func (o *operation) tooMany() error {
	return fault.New(fault.Limit, "where: more than %d rows: change fewer at a time", maxChanged)
}

// find scans the rows that an update or a delete may affect.
func (o *operation) find(visit func(*row) (bool, error)) error {
	looked := 0
	return o.walk(o.table, o.plan(o.table, o.planInput(false)), func(r *row) (bool, error) {
		if looked++; o.table.entity == nil && looked > maxFreeRows {
			return false, o.tooManyFree()
		}
		return visit(r)
	})
}

// updated returns the values of a row after the update.
func (o *operation) updated(old []schema.Value, in *input) ([]schema.Value, error) {
	t := o.table
	values := slices.Clone(old)
	if t.entity == nil {
		merged, err := mergeObjects(borrowBytes(old[freeObject].Text()), in)
		values[freeObject] = schema.JSONValue(merged)
		return values, err
	}
	for _, f := range t.entity.Fields {
		switch {
		case in.given[f.Pos]:
			values[f.Pos] = in.values[f.Pos]
		case f.Updated:
			values[f.Pos] = schema.Now(o.Tx.Now())
		}
	}
	return values, nil
}

// mergeObjects returns the members of a compact JSON object with the set ones, in their
// place or at the end.
func mergeObjects(old []byte, set *input) (string, error) {
	merged, n := []byte{'{'}, 0
	put := func(name string, raw []byte) {
		if n++; n > 1 {
			merged = append(merged, ',')
		}
		merged = append(append(appendText(merged, name), ':'), raw...)
	}
	have := map[string]bool{}
	for name, raw := range membersOf(old) {
		if new, ok := set.members[name]; ok {
			raw, have[name] = new, true
		}
		put(name, raw)
	}
	for name, raw := range membersOf(set.object) {
		if !have[name] {
			put(name, raw)
		}
	}
	switch {
	case n > maxFreeMembers:
		return "", fault.New(fault.TooLarge, "the row would have more than %d fields", maxFreeMembers)
	case len(merged) > maxFreeBytes:
		return "", fault.New(fault.TooLarge, "the row would be longer than %d bytes", maxFreeBytes)
	}
	return string(append(merged, '}')), nil
}

// Limits of an untyped row, which grows with every update that adds a member.
const (
	maxFreeBytes   = 1 << 20
	maxFreeMembers = 1000 // without the id
)

// answerUpdated answers the number of rows and, if the caller may read, those that it may
// still read.
func (o *operation) answerUpdated(rows []changed) error {
	o.answerCount(len(rows))
	if o.auth.read == nil {
		o.out.JSON = append(o.out.JSON, '}')
		return nil
	}
	o.out.JSON = append(o.out.JSON, ',')
	w := o.rowsOf()
	for i := range rows {
		if err := o.spend(rowUnits); err != nil {
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

func (o *operation) answerCount(n int) {
	o.out.JSON = strconv.AppendInt(append(o.out.JSON, `{"count":`...), int64(n), 10)
}
