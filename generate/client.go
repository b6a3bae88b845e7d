package generate

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"runner.example/schema"
)

// What a client is made of beside the schema.
//
//go:embed client.ts
var clientText string

// Client gives a client of the app in TypeScript: one file that imports nothing. Its
// createClient makes an object with a method for each route and, under call, one for
// each exposed function. The schema's types are in a namespace of their own, where their
// names meet no others; fields that are hidden do not appear. Answers of routes are not
// declared, so their type is up to the caller.
func Client(s *schema.Schema) []byte {
	c := &client{typeScript{schema: s}}
	c.line(0, "// A client of %s, written by the runner: change the schema instead.", appName(s))
	c.line(0, "")
	c.line(0, "/** What the schema declares: values as JSON has them, so times and ids are strings, and decimals in rows. Other decimals may be numbers as well. */")
	c.line(0, "export declare namespace schema {")
	c.declarations(func(f *schema.Field) {
		if !f.Hidden {
			c.rowField(f)
		}
	})
	c.line(0, "}")
	c.line(0, "")
	var routes, functions []operation
	for _, o := range operations(s) {
		if o.function == nil {
			routes = append(routes, o)
		} else {
			functions = append(functions, o)
		}
	}
	rename(routes, "call", "then")
	rename(functions, "then")
	c.declare(routes, functions)
	c.line(0, "")
	c.define(routes, functions)
	c.line(0, "")
	c.text.WriteString(clientText)
	return []byte(c.text.String())
}

func appName(s *schema.Schema) string {
	if s.App == "" {
		return "an app"
	}
	return "the app " + s.App
}

type client struct{ typeScript }

// declare writes the type of a client.
func (c *client) declare(routes, functions []operation) {
	c.line(0, "/** The app's routes, by the names of their handlers. A refusal is thrown as a ProblemError. */")
	c.line(0, "export interface Client {")
	for _, o := range routes {
		c.route(&o)
	}
	c.begin()
	c.doc(1, "The app's exposed functions.")
	c.line(1, "readonly call: {")
	for _, o := range functions {
		c.function(&o)
	}
	c.line(1, "};")
	c.line(0, "}")
}

func (c *client) route(o *operation) {
	c.begin()
	c.doc(1, joinDoc("\n\n", o.Doc, "`"+o.Method+" "+o.Path+"`, "+o.access()))
	parts, optional := []string{"RouteOptions"}, "?"
	if len(o.Params) > 0 {
		var params []string
		for _, name := range o.Params {
			params = append(params, name+": Param")
		}
		parts, optional = append(parts, "{ params: { "+strings.Join(params, "; ")+" } }"), ""
	}
	switch input := o.input(c.schema); {
	case input != nil && needsBody(input):
		parts, optional = append(parts, "{ body: schema."+typeName(input.Name)+" }"), ""
	case input != nil:
		parts = append(parts, "{ body?: schema."+typeName(input.Name)+" | undefined }")
	case o.takesBody():
		parts = append(parts, "{ body?: unknown }")
	}
	c.line(1, "%s<Result = unknown>(request%s: %s): Promise<Result>;", memberName(o), optional, strings.Join(parts, " & "))
}

func (c *client) function(o *operation) {
	if !strings.HasSuffix(c.text.String(), "{\n") {
		c.line(0, "")
	}
	c.doc(2, joinDoc("\n\n", o.Doc, o.access()))
	result, of := "Result", "<Result = unknown>"
	if t := o.function.Result; t != nil && t.Kind != schema.JSON {
		result, of = orNull(t, c.resultType(t)), ""
	}
	input := o.input(c.schema)
	if len(input.Fields) == 0 {
		c.line(2, "%s%s(args?: Record<string, never>, options?: CallOptions): Promise<%s>;", memberName(o), of, result)
		return
	}
	optional := "?"
	if needsBody(input) {
		optional = ""
	}
	c.line(2, "%s%s(", memberName(o), of)
	c.line(3, "args%s: {", optional)
	for _, f := range input.Fields {
		c.doc(4, f.Doc, meaning(&f.Type))
		c.line(4, "%s%s: %s;", f.Name, optionalMark(f), orNull(&f.Type, valueType(&f.Type, "schema.", asSent)))
	}
	c.line(3, "},")
	c.line(3, "options?: CallOptions,")
	c.line(2, "): Promise<%s>;", result)
}

// resultType is the type of a result; of an entity, rows.
func (c *client) resultType(t *schema.Type) string {
	if t.Kind != schema.Relation {
		return valueType(t, "schema.", asSent)
	}
	name := "schema." + typeName(t.Entity.Name)
	if t.List {
		name += "[]"
	}
	return name
}

// define writes what makes a client.
func (c *client) define(routes, functions []operation) {
	c.line(0, "/** Makes a client; it can be used for any number of requests at once. */")
	c.line(0, "export function createClient(options: ClientOptions = {}): Client {")
	if len(routes)+len(functions) > 0 {
		c.line(1, "const send = connect(options);")
	} else {
		c.line(1, "connect(options);")
	}
	c.line(1, "return {")
	for _, o := range routes {
		c.line(2, "%s: (request) => send(%s, %s, request),", memberName(&o), strconv.Quote(o.Method), strconv.Quote(o.Path))
	}
	c.line(2, "call: {")
	for _, o := range functions {
		c.line(3, "%s: (args, options) => send(%s, %s, { ...options, body: args ?? {} }),", memberName(&o), strconv.Quote(o.Method), strconv.Quote(o.Path))
	}
	c.line(2, "},")
	c.line(1, "};")
	c.line(0, "}")
}

// rename gives those of the operations another name that have one of these: it would
// hide the functions, or let the client be taken for a promise.
func rename(all []operation, names ...string) {
	taken := map[string]bool{}
	for _, o := range all {
		taken[o.name] = true
	}
	for i := range all {
		if o := &all[i]; slices.Contains(names, o.name) {
			for taken[o.name] {
				o.name += "_"
			}
			taken[o.name] = true
		}
	}
}

// memberName is the operation's name in a client: in quotes where TypeScript would
// take it for something else.
func memberName(o *operation) string {
	if o.name == "new" || o.name == "constructor" {
		return strconv.Quote(o.name)
	}
	return o.name
}
