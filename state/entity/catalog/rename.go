package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// A table, a field and an enum's value are found by the name that the schema declares, by the name in
// @was, or by an earlier name that the catalog has recorded: that is how an older release finds
// what a newer one has renamed, and how the newer one returns. In this order, because a name that is
// stored now means what is stored now.

// candidate is a stored name with its earlier ones.
type candidate struct {
	name string
	was  []string
	kept bool
}

func (c *candidate) had(name string) bool { return c.name == name || slices.Contains(c.was, name) }

// wanted is a declared name with that in its @was.
type wanted struct{ name, was string }

// matched is what matching names has found.
type matched struct {
	// of has the index of the candidate for each declared name; -1 for none.
	of []int
	// nothing and two are the declared names whose @was names nothing that is stored, or a name that
	// is stored beside the declared one.
	nothing, two []int
}

// matchNames finds the candidate of each declared name.
func matchNames(declared []wanted, stored []candidate) (m matched) {
	m.of = slices.Repeat([]int{-1}, len(declared))
	claimed := make([]bool, len(stored))
	isDeclared := func(name string) bool {
		return slices.ContainsFunc(declared, func(w wanted) bool { return w.name == name })
	}
	claim := func(i int, fits func(c *candidate) bool) {
		for at := range stored {
			if c := &stored[at]; m.of[i] < 0 && !claimed[at] && fits(c) {
				m.of[i], claimed[at] = at, true
			}
		}
	}
	for i, w := range declared {
		claim(i, func(c *candidate) bool { return c.name == w.name })
	}
	for i, w := range declared {
		switch {
		case w.was == "":
		case m.of[i] < 0:
			claim(i, func(c *candidate) bool { return c.name == w.was })
			claim(i, func(c *candidate) bool { return c.had(w.was) && !isDeclared(c.name) })
			if m.of[i] < 0 {
				m.nothing = append(m.nothing, i)
			}
		case slices.ContainsFunc(stored, func(c candidate) bool { return c.name == w.was && !c.kept }):
			m.two = append(m.two, i)
		}
	}
	for i, w := range declared {
		claim(i, func(c *candidate) bool { return c.had(w.name) && !isDeclared(c.name) })
	}
	m.nothing = slices.DeleteFunc(m.nothing, func(i int) bool { return m.of[i] >= 0 })
	return m
}

// earlier returns the earlier names of a candidate that is now called name. Those that are declared
// for something else are not its names any more.
func (c *candidate) earlier(name string, isDeclared func(string) bool) (was []string) {
	for _, before := range append(slices.Clone(c.was), c.name) {
		if before != name && !isDeclared(before) && !slices.Contains(was, before) {
			was = append(was, before)
		}
	}
	return was
}

// matchTables finds the active entry of each declared entity.
func (m *migration) matchTables(tx *store.Tx) error {
	m.priors = map[string]*tableEntry{}
	var declared []wanted
	for _, name := range m.schema.EntityNames() {
		w := wanted{name: name}
		if e := m.schema.Entity(name); e != nil {
			w.was = e.Was
		}
		declared = append(declared, w)
	}
	var stored []candidate
	for _, t := range m.old.Tables {
		stored = append(stored, candidate{t.Name, t.Was, t.Kept})
	}
	found := matchNames(declared, stored)
	for i, at := range found.of {
		if at >= 0 {
			m.priors[declared[i].name] = &m.old.Tables[at]
		}
	}
	if m.keep { // a rollback: what is stored was right when the release was active
		return nil
	}
	for _, i := range found.two {
		e := m.schema.Entity(declared[i].name)
		filled, err := hasRows(tx, m.old.table(e.Was).Number)
		if err != nil {
			return err
		}
		if filled {
			m.ambiguous = append(m.ambiguous, e.Was)
			m.list.Errorf("E608", e.Span,
				"entity %s has @was(%q), and both have stored rows: declare %s again, or mark it @removed, and remove @was",
				e.Name, e.Was, e.Was)
		}
	}
	for _, i := range found.nothing {
		e := m.schema.Entity(declared[i].name)
		filled, err := m.anyRows(tx)
		if err != nil {
			return err
		}
		if filled {
			m.list.Errorf("E608", e.Span,
				"entity %s has @was(%q), and no entity of that name is stored%s: remove @was, or activate the release with %s first",
				e.Name, e.Was, diag.DidYouMean(e.Was, tableNamesOf(m.old)), e.Was)
		}
	}
	return nil
}

// anyRows reports whether the store has rows.
func (m *migration) anyRows(tx *store.Tx) (bool, error) {
	for i := range m.old.Tables {
		if filled, err := hasRows(tx, m.old.Tables[i].Number); filled || err != nil {
			return filled, err
		}
	}
	return false, nil
}

func tableNamesOf(c *Catalog) (names []string) {
	for _, t := range c.Tables {
		names = append(names, t.Name)
	}
	return names
}

// claims reports whether a declared entity has the active entry, or its name.
func (m *migration) claims(have *tableEntry) bool {
	for _, prior := range m.priors {
		if prior == have {
			return true
		}
	}
	return m.schema.Entity(have.Name) != nil
}

// tableNames returns the earlier names of a table that the schema calls name.
func (m *migration) tableNames(have *tableEntry, name string) []string {
	c := candidate{have.Name, have.Was, have.Kept}
	return c.earlier(name, func(other string) bool { return m.schema.Entity(other) != nil })
}

// typeNow returns a stored type with the present name of the entity that it refers to.
func (m *migration) typeNow(stored string) string {
	target, isRelation := strings.CutPrefix(stored, "-> ")
	if !isRelation {
		return stored
	}
	for name, prior := range m.priors {
		if prior.Name == target {
			return "-> " + name
		}
	}
	return stored
}

// matchFields finds the active entry of each stored field of an entity.
func (m *migration) matchFields(have *tableEntry, filled bool, e *schema.Entity) map[*schema.Field]*fieldEntry {
	priors := map[*schema.Field]*fieldEntry{}
	if have == nil || have.Untyped {
		return priors
	}
	var fields []*schema.Field
	var declared []wanted
	for _, f := range e.Fields {
		if f != e.ID && f.Type.Kind != schema.ToMany {
			fields, declared = append(fields, f), append(declared, wanted{f.Name, f.Was})
		}
	}
	var stored []candidate
	var entries []*fieldEntry
	var names []string
	for i := range have.Fields {
		f := &have.Fields[i]
		if f.Number == have.ID {
			priors[e.ID] = f
			continue
		}
		stored, entries, names = append(stored, candidate{f.Name, f.Was, f.Kept}), append(entries, f), append(names, f.Name)
	}
	found := matchNames(declared, stored)
	for i, at := range found.of {
		if at >= 0 {
			priors[fields[i]] = entries[at]
		}
	}
	if !filled || m.keep {
		return priors
	}
	for _, i := range found.two {
		f := fields[i]
		m.ambiguous = append(m.ambiguous, e.Name+"."+f.Was)
		m.list.Errorf("E608", f.Span,
			"%s.%s has @was(%q), and rows have both fields: declare %s again, or mark it @removed, and remove @was",
			e.Name, f.Name, f.Was, f.Was)
	}
	for _, i := range found.nothing {
		f := fields[i]
		m.list.Errorf("E608", f.Span,
			"%s.%s has @was(%q), and rows of %s have no field of that name%s: remove @was, or activate the release with %s first",
			e.Name, f.Name, f.Was, e.Name, diag.DidYouMean(f.Was, names), f.Was)
	}
	return priors
}

// fieldNames returns the earlier names of a field that the entity calls name.
func fieldNames(prior *fieldEntry, e *schema.Entity, name string) []string {
	c := candidate{prior.Name, prior.Was, prior.Kept}
	return c.earlier(name, func(other string) bool { return e.Field(other) != nil })
}

// valueNames returns the values of a stored enum with their earlier names.
func (f *fieldEntry) valueNames() (list []candidate) {
	for _, name := range f.Enum {
		list = append(list, candidate{name, f.Renamed[name].Was, false})
	}
	return list
}

// storedText is the text that rows have for the value of that name.
func (f *fieldEntry) storedText(name string) string {
	if r, ok := f.Renamed[name]; ok {
		return r.Stored
	}
	return name
}

// renamedValues returns what a layout must know of them; nil if rows have all values by their names.
func (f *fieldEntry) renamedValues() *layout.Renamed {
	stored := map[string]string{}
	for name, r := range f.Renamed {
		if r.Stored != name {
			stored[name] = r.Stored
		}
	}
	if len(stored) == 0 {
		return nil
	}
	return layout.NewRenamed(stored)
}

// values sets the renamed values of an enum's field. It reports whether a stored value has another
// name now.
func (m *migration) values(field, prior *fieldEntry, filled bool, f *schema.Field, e *schema.Entity) (renamed bool) {
	enum := f.Type.Enum
	var declared []wanted
	for _, name := range enum.Values {
		declared = append(declared, wanted{name, enum.Was[name]})
	}
	stored := prior.valueNames()
	found := matchNames(declared, stored)
	taken := map[string]bool{}
	for _, name := range prior.Enum {
		taken[prior.storedText(name)] = true
	}
	values := map[string]renamedValue{}
	for i, w := range declared {
		text := w.name
		if at := found.of[i]; at >= 0 {
			c := stored[at]
			renamed = renamed || c.name != w.name
			text = prior.storedText(c.name)
			values[w.name] = renamedValue{text, c.earlier(w.name, enum.Has)}
		} else {
			for n := 2; taken[text]; n++ { // rows have the text for a value that had the name before
				text = fmt.Sprintf("%s#%d", w.name, n)
			}
			values[w.name] = renamedValue{Stored: text}
		}
		taken[text] = true
	}
	maps.DeleteFunc(values, func(name string, r renamedValue) bool { return r.Stored == name && r.Was == nil })
	if len(values) > 0 {
		field.Renamed = values
	}
	if !filled || prior.Kept || m.keep {
		return renamed
	}
	for _, i := range found.two {
		w := declared[i]
		m.list.Errorf("E608", f.Span,
			"value %s of enum %s has @was(%q), and %s.%s has both: remove @was, and change the rows first: runner data update %s --where \"%s %s %s\" --set %s=<value>",
			w.name, enum.Name, w.was, e.Name, f.Name, m.priors[e.Name].Name, prior.Name, equals(&f.Type), w.was, prior.Name)
	}
	for _, i := range found.nothing {
		w := declared[i]
		m.list.Errorf("E608", f.Span,
			"value %s of enum %s has @was(%q), and %s.%s has no value of that name%s: remove @was, or activate the release with %s first",
			w.name, enum.Name, w.was, e.Name, f.Name, diag.DidYouMean(w.was, prior.Enum), w.was)
	}
	return renamed
}

// removedValues returns the values of a stored enum that are not declared any more, by their stored
// texts.
func removedValues(prior, now *fieldEntry) map[string]string {
	removed := map[string]string{}
	if now.Enum == nil {
		return removed
	}
	for _, name := range prior.Enum {
		removed[prior.storedText(name)] = name
	}
	for _, name := range now.Enum {
		delete(removed, now.storedText(name))
	}
	return removed
}
