package python

import (
	"encoding/json"

	"runner.example/schema"
)

// facts is schema.json: what the SDK must know of the schema.
type facts struct {
	// Handlers are the names that routes, functions and jobs call, each once.
	Handlers []string `json:"handlers"`
	// Entities have the types of their fields. A type is its name as the schema writes it, without bounds and "?":
	// "decimal", or the name of an enum. A list of such values is "list of decimal". A relation to one row is
	// {"one":"Customer"}, the rows of a to-many relation are {"many":"Line"}.
	Entities map[string]map[string]any `json:"entities"`
	// Vars are the variables with their types. Jobs have the types of their parameters.
	Vars map[string]string         `json:"vars"`
	Jobs map[string]map[string]any `json:"jobs"`
}

// schemaFile returns schema.json. Equal schemas have equal bytes.
func schemaFile(s *schema.Schema) ([]byte, error) {
	f := facts{
		Handlers: []string{}, Entities: map[string]map[string]any{}, Vars: map[string]string{}, Jobs: map[string]map[string]any{},
	}
	seen := map[string]bool{}
	name := func(handler string) {
		if !seen[handler] {
			seen[handler] = true
			f.Handlers = append(f.Handlers, handler)
		}
	}
	for _, handler := range s.HandlersOfRoutes() {
		name(handler)
	}
	for i := range s.Functions {
		name(s.Functions[i].Name)
	}
	for i := range s.Jobs {
		name(s.Jobs[i].Name)
		f.Jobs[s.Jobs[i].Name] = typesOf(s.Jobs[i].Params)
	}
	for _, e := range s.Entities {
		f.Entities[e.Name] = typesOf(e.Fields)
	}
	for _, v := range s.Vars {
		f.Vars[v.Name] = v.Type
	}
	text, err := json.MarshalIndent(f, "", " ")
	return append(text, '\n'), err
}

// typesOf returns the types of fields, as facts describes them.
func typesOf(fields []*schema.Field) map[string]any {
	types := map[string]any{}
	for _, field := range fields {
		t := field.Type
		switch {
		case t.Kind == schema.Relation:
			types[field.Name] = map[string]string{"one": t.Entity.Name}
		case t.Kind == schema.ToMany:
			types[field.Name] = map[string]string{"many": t.Entity.Name}
		case t.List:
			t.List, t.Optional = false, false
			types[field.Name] = "list of " + t.String()
		default:
			t.Optional = false
			types[field.Name] = t.String()
		}
	}
	return types
}
