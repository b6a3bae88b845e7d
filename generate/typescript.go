package generate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"runner.example/schema"
)

// TypeScript gives the declarations that make the SDK's operations know the
// schema: which entities there are, what their rows hold, what a new row must be
// given, and the names of scopes, roles and secrets. It stands in two modules:
// "@runner/schema" has a type for each entity, enum and type of the schema, to be
// imported by that name, and "@runner/sdk" is told of them.
//
// Rows have their values as JSON has them: times, decimals and ids are strings, a
// relation is an id, an absent optional is null.
func TypeScript(s *schema.Schema) []byte {
	t := &typeScript{schema: s}
	t.line(0, "// The names and types of the app's schema, written by the runner: change the schema instead.")
	t.line(0, "")
	t.line(0, `declare module "@runner/schema" {`)
	t.declarations(t.rowField)
	t.line(0, "}")
	t.line(0, "")
	t.line(0, `declare module "@runner/sdk" {`)
	if len(s.Entities) > 0 {
		t.line(1, `import type * as schema from "@runner/schema";`)
		t.line(1, "interface Entities {")
		for _, e := range s.Entities {
			t.entity(e)
		}
		t.line(1, "}")
	}
	t.names()
	t.line(0, "}")
	return []byte(t.text.String())
}

type typeScript struct {
	schema *schema.Schema
	text   strings.Builder
}

// declarations has a type for each enum, entity and type; rowField writes the fields
// of entities.
func (t *typeScript) declarations(rowField func(*schema.Field)) {
	for _, e := range t.schema.Enums {
		t.begin()
		t.doc(1, e.Doc)
		t.line(1, "export type %s = %s;", typeName(e.Name), union(e.Values))
	}
	for _, e := range t.schema.Entities {
		t.object(e.Name, e.Doc, e.Fields, rowField)
	}
	for _, o := range t.schema.Types {
		t.object(o.Name, o.Doc, o.Fields, t.bodyField)
	}
}

// line writes a line at a depth of nesting.
func (t *typeScript) line(depth int, format string, args ...any) {
	if format != "" {
		t.text.WriteString(strings.Repeat("  ", depth))
		fmt.Fprintf(&t.text, format, args...)
	}
	t.text.WriteByte('\n')
}

// doc writes a comment of the parts that are not empty.
func (t *typeScript) doc(depth int, parts ...string) {
	text := strings.ReplaceAll(joinDoc("\n", parts...), "*/", "*\\/")
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	if len(lines) == 1 {
		t.line(depth, "/** %s */", text)
		return
	}
	t.line(depth, "/**")
	for _, line := range lines {
		t.line(depth, "%s", strings.TrimRight(" * "+line, " "))
	}
	t.line(depth, " */")
}

// joinDoc joins the parts that are not empty.
func joinDoc(between string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), between)
}

// begin sets a declaration apart from the one before.
func (t *typeScript) begin() {
	if !strings.HasSuffix(t.text.String(), "{\n") {
		t.line(0, "")
	}
}

// object writes an interface of the fields.
func (t *typeScript) object(name, doc string, fields []*schema.Field, write func(*schema.Field)) {
	t.begin()
	t.doc(1, doc)
	t.line(1, "export interface %s {", typeName(name))
	for _, f := range fields {
		if f.Type.Kind != schema.ToMany {
			write(f)
		}
	}
	t.line(1, "}")
}

// rowField writes a field as a row has it.
func (t *typeScript) rowField(f *schema.Field) {
	mark, hidden := "", ""
	if f.Hidden {
		mark, hidden = "?", "Hidden: it is there only for keys whose grant names it."
	}
	t.doc(2, f.Doc, meaning(&f.Type), hidden)
	t.line(2, "%s%s: %s;", f.Name, mark, orNull(&f.Type, valueType(&f.Type, "", asRead)))
}

// bodyField writes a field as a body has it that was checked.
func (t *typeScript) bodyField(f *schema.Field) {
	t.doc(2, f.Doc, meaning(&f.Type))
	t.line(2, "%s%s: %s;", f.Name, optionalMark(f), orNull(&f.Type, valueType(&f.Type, "", asSent)))
}

// entity tells the SDK of an entity.
func (t *typeScript) entity(e *schema.Entity) {
	t.line(2, "%s: {", e.Name)
	t.line(3, "row: schema.%s;", typeName(e.Name))
	t.line(3, "where: {")
	for _, f := range e.Fields {
		if f.Type.Kind != schema.ToMany {
			t.line(4, "%s: %s;", f.Name, orNull(&f.Type, valueType(&f.Type, "schema.", asWritten)))
		}
	}
	t.line(3, "};")
	t.line(3, "insert: {")
	for _, f := range e.Fields {
		if mark, ok := t.insertable(e, f); ok {
			t.line(4, "%s%s: %s;", f.Name, mark, orNull(&f.Type, valueType(&f.Type, "schema.", asWritten)))
		}
	}
	t.line(3, "};")
	t.line(3, "update: {")
	for _, f := range e.Fields {
		if writable(f) && f != e.ID && f != e.Tenant {
			t.line(4, "%s?: %s;", f.Name, orNull(&f.Type, valueType(&f.Type, "schema.", asWritten)))
		}
	}
	t.line(3, "};")
	t.line(2, "};")
}

func writable(f *schema.Field) bool {
	return f.Type.Kind != schema.ToMany && !f.ReadOnly && !f.Created && !f.Updated
}

// insertable tells whether a new row may be given the field, and whether it must.
func (t *typeScript) insertable(e *schema.Entity, f *schema.Field) (mark string, ok bool) {
	switch {
	case f == e.ID: // else the host makes it
		return "?", e.Name == t.schema.Auth.User || e.Name == t.schema.Auth.Tenant
	case f == e.Tenant: // else it is the caller's
		return "?", t.insertedOverTenants(e)
	}
	return optionalMark(f), writable(f)
}

// insertedOverTenants reports that callers without a tenant of their own make rows
// of the entity: they have to say whose.
func (t *typeScript) insertedOverTenants(e *schema.Entity) bool {
	return slices.ContainsFunc(t.schema.APIKeys.Scopes, func(scope *schema.Scope) bool {
		return scope.AllTenants && slices.ContainsFunc(scope.Grants, func(g schema.Grant) bool {
			return g.Allows.Has(schema.ActInsert) && slices.Contains(g.Entities, e.Name)
		})
	})
}

// names tells the SDK of the names that are no entities.
func (t *typeScript) names() {
	t.line(1, "interface Names {")
	var scopes []string
	for _, scope := range t.schema.APIKeys.Scopes {
		scopes = append(scopes, scope.Name)
	}
	t.line(2, "scope: %s;", union(scopes))
	if roles := t.schema.Auth.Roles; roles != nil { // else any role counts
		t.line(2, "role: %s;", union(roles))
	}
	t.line(2, "secret: %s;", union(t.schema.Secrets))
	t.line(1, "}")
}

// optionalMark is "?" for a field that may be left out.
func optionalMark(f *schema.Field) string {
	if isOptional(f) {
		return "?"
	}
	return ""
}

func isOptional(f *schema.Field) bool { return f.Type.Optional || f.HasDefault || f.DefaultNow }

// use is what a value is for.
type use int

const (
	asRead    use = iota // a row as the host gives it
	asSent               // a body as a caller sent it: JSON alone, and decimals may be numbers
	asWritten            // what a handler gives the host: a Date will do for a time as well
)

// valueType is the type of a value that is not null. Declared types stand in the
// module whose name is in.
func valueType(t *schema.Type, in string, u use) string {
	name := elementType(t, in, u)
	if !t.List {
		return name
	}
	if strings.Contains(name, " ") {
		name = "(" + name + ")"
	}
	if u == asWritten {
		return "readonly " + name + "[]"
	}
	return name + "[]"
}

func elementType(t *schema.Type, in string, u use) string {
	switch t.Kind {
	case schema.Int, schema.Float, schema.Duration:
		return "number"
	case schema.Bool:
		return "boolean"
	case schema.JSON:
		return "unknown"
	case schema.Decimal:
		if u != asRead {
			return "string | number"
		}
	case schema.Time:
		if u == asWritten {
			return "string | Date"
		}
	case schema.EnumKind:
		return in + typeName(t.Enum.Name)
	case schema.Object:
		return in + typeName(t.Object.Name)
	}
	return "string"
}

func orNull(t *schema.Type, name string) string {
	if t.Optional && name != "unknown" {
		return name + " | null"
	}
	return name
}

// meaning tells what the type in TypeScript does not.
func meaning(t *schema.Type) string {
	switch t.Kind {
	case schema.Relation:
		return "The id of a row of " + t.Entity.Name + "."
	case schema.Decimal:
		return fmt.Sprintf("A decimal with %d places.", t.Places)
	case schema.Time:
		return "A time, as in 2026-01-31T09:30:00.000Z."
	case schema.Date:
		return "A day, as in 2026-01-31."
	case schema.Duration:
		return "In seconds."
	case schema.Bytes:
		return "Base64."
	case schema.UUID:
		return "A UUID."
	}
	return ""
}

// union is the type of one of the names; of none it has no value.
func union(names []string) string {
	if len(names) == 0 {
		return "never"
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return strings.Join(quoted, " | ")
}

// typeName is the name of a declared type, with a mark when the language has it for
// itself: a schema without entities may have types in small letters.
func typeName(name string) string {
	if slices.Contains(taken, name) {
		return name + "_"
	}
	return name
}

// What cannot be the name of an interface.
var taken = strings.Fields(`any bigint boolean never number object string symbol undefined unknown void null
	break case catch class const continue debugger default delete do else enum export extends false finally for
	function if import in instanceof new return super switch this throw true try typeof var while with
	as async await declare implements infer interface is keyof let package private protected public static type yield`)
