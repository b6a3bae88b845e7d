package generate

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/schema"
)

// jsonSchema converts types of the schema to JSON Schema 2020-12. Declared types are
// components of the OpenAPI document.
type jsonSchema struct {
	schema *schema.Schema
	// row is set for rows of an entity: there decimals are strings, and values may violate
	// bounds that were declared later.
	row *schema.Entity
	// filled is set for the parameters of a function, whose defaults the runner fills in.
	// It is not set for declared types, which functions and routes share.
	filled bool
	// query is set for query parameters: there is no null, and decimals are strings.
	query bool
}

func componentRef(kind, name string) object {
	return object{{"$ref", "#/components/" + kind + "/" + name}}
}

// object is an object with these fields only. Any field of a row may be missing: it depends
// on the fields that the handler selects and its caller may read.
func (j jsonSchema) object(doc string, fields []*schema.Field) object {
	properties, required := object{}, list{}
	for _, f := range fields {
		if f.Hidden || f.Type.Kind == schema.ToMany {
			continue
		}
		properties.add(f.Name, j.field(f))
		if j.row == nil && !f.MayOmit() {
			required = append(required, f.Name)
		}
	}
	out := object{{"type", "object"}}
	out.addText("description", doc)
	out.add("properties", properties)
	if len(required) > 0 {
		out.add("required", required)
	}
	return append(out, member{"additionalProperties", false})
}

func (j jsonSchema) field(f *schema.Field) object {
	out := j.value(&f.Type)
	out.addText("description", joinDoc("\n\n", f.Doc, j.meaning(&f.Type), j.defaultMeaning(f)))
	switch {
	case j.row != nil: // a row has its defaults
	case f.DefaultNow:
		out.add("x-runner-default", "now")
	case f.HasDefault && j.filled:
		out.add("default", defaultOf(f))
	case f.HasDefault:
		out.add("x-runner-default", defaultOf(f))
	}
	if j.row != nil && (f.ReadOnly || f.Created || f.Updated || f.Type.Kind == schema.ID) {
		out.add("readOnly", true)
	}
	return out
}

func defaultOf(f *schema.Field) jsontext.Value {
	return jsontext.Value(f.Type.AppendJSON(nil, f.Default))
}

// defaultMeaning describes the default `now`, which JSON cannot express, and defaults that
// handlers of routes do not receive.
func (j jsonSchema) defaultMeaning(f *schema.Field) string {
	switch {
	case j.row != nil || !f.HasDefault && !f.DefaultNow:
		return ""
	case f.DefaultNow && j.filled:
		return "If omitted: the time of the request."
	case j.filled:
		return ""
	case f.DefaultNow:
		return "If omitted: functions receive the time of the request, handlers of routes do not receive the field."
	}
	return fmt.Sprintf("If omitted: functions receive `%s`, handlers of routes do not receive the field.", defaultOf(f))
}

// value is a value of the type, null included if it is optional.
func (j jsonSchema) value(t *schema.Type) object {
	if j.query && t.Optional {
		given := *t
		given.Optional, t = false, &given
	}
	if t.List {
		elem := *t
		elem.List, elem.Optional = false, false
		return object{{"type", typeOrNull(t.Optional, "array")}, {"items", j.value(&elem)}}
	}
	var ref object
	switch {
	case t.Kind == schema.EnumKind:
		ref = componentRef("schemas", t.Enum.Name)
	case t.Kind == schema.Object:
		ref = componentRef("schemas", t.Object.Name)
	default:
		return j.scalar(t)
	}
	if t.Optional {
		return object{{"anyOf", list{ref, object{{"type", "null"}}}}}
	}
	return ref
}

// result is a function's result; for an entity it is its rows.
func (j jsonSchema) result(t *schema.Type) object {
	if t.Kind != schema.Relation {
		return j.value(t)
	}
	ref := componentRef("schemas", t.Entity.Name)
	switch {
	case t.List:
		return object{{"type", typeOrNull(t.Optional, "array")}, {"items", ref}}
	case t.Optional:
		return object{{"anyOf", list{ref, object{{"type", "null"}}}}}
	}
	return ref
}

// typeOrNull is the value of `type`.
func typeOrNull(optional bool, types ...string) any {
	if optional {
		types = append(types, "null")
	}
	if len(types) == 1 {
		return types[0]
	}
	return listOf(types)
}

func (j jsonSchema) scalar(t *schema.Type) object {
	text := object{{"type", typeOrNull(t.Optional, "string")}}
	switch t.Kind {
	case schema.ID, schema.Relation:
		text.add("pattern", j.idPattern(t))
	case schema.UUID:
		text.add("format", "uuid")
	case schema.Email:
		text.add("format", "email")
	case schema.URL:
		text.add("format", "uri")
		text.add("pattern", urlPattern)
	case schema.Time:
		text.add("format", "date-time")
	case schema.Date:
		text.add("format", "date")
	case schema.Bytes:
		text.add("contentEncoding", "base64")
		text.add("format", "byte") // for generators that do not read contentEncoding
		text.add("pattern", base64Pattern)
	case schema.Int, schema.Duration:
		return j.ranged(object{{"type", typeOrNull(t.Optional, "integer")}}, t)
	case schema.Float:
		return j.ranged(object{{"type", typeOrNull(t.Optional, "number")}, {"format", "double"}}, t)
	case schema.Decimal:
		return j.decimal(t)
	case schema.Bool:
		return object{{"type", typeOrNull(t.Optional, "boolean")}}
	case schema.FileKind:
		return file(t.Optional)
	case schema.JSON:
		if t.Optional {
			return object{}
		}
		return object{{"not", object{{"type", "null"}}}}
	}
	if j.row != nil {
		return text
	}
	if t.HasMaxLen {
		if t.MinLen > 0 {
			text.add("minLength", t.MinLen)
		}
		text.add("maxLength", t.MaxLen)
	}
	if t.Pattern != nil {
		text.add("pattern", ecmaPattern(t.Pattern))
	}
	return withBounds(text, t)
}

// file is a file in a row.
func file(optional bool) object {
	return object{
		{"type", typeOrNull(optional, "object")},
		{"properties", object{
			{"id", object{{"type", "string"}, {"pattern", ulidPattern}}},
			{"name", object{{"type", "string"}}},
			{"type", object{{"type", "string"}, {"description", "The media type, found from the bytes."}}},
			{"size", object{{"type", "integer"}, {"minimum", 0}, {"maximum", schema.MaxSafeInteger}, {"description", "In bytes."}}},
			{"sha256", object{{"type", "string"}, {"pattern", "^[0-9a-f]{64}$"}}},
		}},
		{"required", list{"id", "name", "type", "size", "sha256"}},
		{"additionalProperties", false},
	}
}

// ranged adds the bounds of a number.
func (j jsonSchema) ranged(out object, t *schema.Type) object {
	least, most := number(t.Min), number(t.Max)
	if j.row != nil {
		least, most = nil, nil
	}
	if whole := t.Kind != schema.Float; whole {
		if least == nil {
			least = -schema.MaxSafeInteger
		}
		if most == nil {
			most = schema.MaxSafeInteger
		}
	}
	if least != nil {
		out.add("minimum", least)
	}
	if most != nil {
		out.add("maximum", most)
	}
	return out
}

// number is a bound as a JSON number; nil if there is none or it is not a number.
func number(v schema.Value) any {
	switch v.Kind() {
	case schema.KindInt, schema.KindDuration:
		return int(v.Int())
	case schema.KindFloat:
		return jsontext.Value((&schema.Type{}).AppendJSON(nil, v))
	case schema.KindDecimal:
		return jsontext.Value(v.Text())
	}
	return nil
}

// decimal is a string with exactly its places. Input may also be a number of at most 15 digits,
// or have fewer places.
func (j jsonSchema) decimal(t *schema.Type) object {
	whole := t.Digits - t.Places
	if j.row != nil {
		pattern := fmt.Sprintf("^-?[0-9]{1,%d}", max(1, whole))
		if t.Places > 0 {
			pattern += fmt.Sprintf("\\.[0-9]{%d}", t.Places)
		}
		return object{{"type", typeOrNull(t.Optional, "string")}, {"pattern", pattern + "$"}}
	}
	digits, fraction := fmt.Sprintf("0*[0-9]{1,%d}", whole), fmt.Sprintf("[0-9]{1,%d}0*", t.Places)
	if whole == 0 {
		digits = "0+"
	}
	if t.Places == 0 {
		fraction = "0+"
	}
	largest := largestNumber(t)
	bounds := schema.Type{Kind: schema.Float, Min: schema.DecimalValue("-" + largest), Max: schema.DecimalValue(largest)}
	if order, ok := t.Min.Compare(bounds.Min); ok && order > 0 {
		bounds.Min = t.Min
	}
	if order, ok := t.Max.Compare(bounds.Max); ok && order < 0 {
		bounds.Max = t.Max
	}
	forms := list{
		object{{"type", "string"}, {"pattern", "^-?" + digits + "(\\." + fraction + ")?$"}},
		j.ranged(object{{"type", "number"}, {"format", "double"}}, &bounds),
	}
	if j.query {
		return withBounds(forms[0].(object), t)
	}
	if t.Optional {
		forms = append(forms, object{{"type", "null"}})
	}
	return withBounds(object{{"anyOf", forms}}, t)
}

// largestNumber has a nine for each digit that a JSON number may have.
func largestNumber(t *schema.Type) string {
	const most = 15
	text := cmp.Or(strings.Repeat("9", max(0, min(t.Digits, most)-t.Places)), "0")
	if t.Places > 0 {
		text += "." + strings.Repeat("0", max(0, t.Places-most)) + strings.Repeat("9", min(t.Places, most))
	}
	return text
}

// withBounds adds bounds of values that are strings, which JSON Schema cannot express.
func withBounds(out object, t *schema.Type) object {
	for _, bound := range []struct {
		name  string
		value schema.Value
	}{{"x-runner-minimum", t.Min}, {"x-runner-maximum", t.Max}} {
		if bound.value.IsNull() {
			continue
		}
		out.add(bound.name, boundText(bound.value))
	}
	return out
}

// boundText is the JSON of a bound, without quotes.
func boundText(v schema.Value) string {
	text := (&schema.Type{}).AppendJSON(nil, v)
	if len(text) > 1 && text[0] == '"' {
		text = text[1 : len(text)-1]
	}
	return string(text)
}

// Ids are ULIDs; an identity provider may create other ids of users and tenants.
const (
	ulidPattern       = "^[0-7][0-9abcdefghjkmnpqrstvwxyz]{25}$"
	externalIDPattern = "^[A-Za-z0-9._|@:-]{1,64}$"
)

// A URL has a scheme and a host. Base64 has padding, and no bits after the last byte.
const (
	urlPattern    = `^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]`
	base64Pattern = `^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$`
)

func (j jsonSchema) idPattern(t *schema.Type) string {
	of := j.row
	if t.Kind == schema.Relation {
		of = t.Entity
	}
	if of != nil && (of.Name == j.schema.Auth.User || of.Name == j.schema.Auth.Tenant) {
		return externalIDPattern
	}
	return ulidPattern
}

// meaning describes what JSON Schema cannot express about a type.
func (j jsonSchema) meaning(t *schema.Type) string {
	switch t.Kind {
	case schema.Time, schema.Date, schema.Bytes, schema.UUID:
		return boundsMeaning(t)
	case schema.Decimal:
		return joinDoc(" ", meaning(t), boundsMeaning(t))
	}
	return meaning(t)
}

func boundsMeaning(t *schema.Type) string {
	least, most := "", ""
	if !t.Min.IsNull() {
		least = "At least " + boundText(t.Min) + "."
	}
	if !t.Max.IsNull() {
		most = "At most " + boundText(t.Max) + "."
	}
	return joinDoc(" ", least, most)
}
