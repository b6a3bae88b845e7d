package generate

import (
	"fmt"
	"strings"

	"runner.example/schema"
)

// operation is a route or an exposed function.
type operation struct {
	*schema.Route
	// function is nil for a route.
	function *schema.Function
	// name is the name of the handler; of a route that sends a file it is "getV1PostsIdPhoto". If a handler serves several routes, their names also
	// have method and path: "showGetV1OrdersId". Names of routes are unique, and so are
	// names of functions.
	name string
}

// operations are the routes and then the exposed functions, in order of declaration.
func operations(s *schema.Schema) []operation {
	served := map[string]int{}
	for i := range s.Routes {
		if r := &s.Routes[i]; !isMount(r) && r.File == nil {
			served[r.Handler]++
		}
	}
	taken := map[string]bool{}
	for name, routes := range served {
		taken[name] = routes == 1
	}
	var all []operation
	for i := range s.Routes {
		r := &s.Routes[i]
		if isMount(r) {
			continue
		}
		name := r.Handler
		switch {
		case r.File != nil:
			name = uniqueName("get"+pascal(r.Path), taken)
		case served[name] > 1:
			name = uniqueName(name+pascal(r.Method)+pascal(r.Path), taken)
		}
		all = append(all, operation{Route: r, name: name})
	}
	for i := range s.Functions {
		if f := &s.Functions[i]; f.Exposed {
			all = append(all, operation{Route: f.Route(), function: f, name: f.Name})
		}
	}
	return all
}

// isMount reports whether the route is that of an application, which has operations of its own.
func isMount(r *schema.Route) bool { return r.Method == "ANY" || strings.HasSuffix(r.Path, "/*") }

// uniqueName returns the name, with a number appended if it is taken, and marks it as taken.
func uniqueName(name string, taken map[string]bool) string {
	unique := name
	for n := 2; taken[unique]; n++ {
		unique = fmt.Sprintf("%s%d", name, n)
	}
	taken[unique] = true
	return unique
}

// pascal joins the words of a text, each with a capital letter: "PATCH" is "Patch",
// "/v1/orders/:id" is "V1OrdersId". A word consists of letters and digits.
func pascal(text string) string {
	var out strings.Builder
	words := strings.FieldsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
	for _, word := range words {
		rest := word[1:]
		if word == strings.ToUpper(word) {
			rest = strings.ToLower(rest)
		}
		out.WriteString(strings.ToUpper(word[:1]) + rest)
	}
	return out.String()
}

// input is the type of the body, nil if any body is accepted.
func (o *operation) input(s *schema.Schema) *schema.ObjectType {
	if o.function != nil {
		return o.function.Input()
	}
	return s.Type(o.Input)
}

// query is the type of the query, nil if any parameters are accepted.
func (o *operation) query(s *schema.Schema) *schema.ObjectType { return s.Type(o.Query) }

// result is the type of a 200 or 201 response, nil if it is not declared.
func (o *operation) result() *schema.Type {
	if o.function != nil {
		return o.function.Result
	}
	return o.Result
}

// takesBody reports whether requests of the method have a body.
func (o *operation) takesBody() bool {
	switch o.Method {
	case "POST", "PUT", "PATCH", "DELETE":
		return true
	}
	return false
}

// needsBody reports whether a body is required. Without one, the input is an empty object.
func needsBody(input *schema.ObjectType) bool {
	if input == nil {
		return false
	}
	for _, f := range input.Fields {
		if !f.MayOmit() {
			return true
		}
	}
	return false
}

// access is the auth mode and the rate limits in schema syntax.
func (o *operation) access() string {
	text := "auth: " + o.Auth.String()
	if len(o.Limits) > 0 {
		text += ", rateLimit: " + strings.Join(limitTexts(o.Limits), " and ")
	}
	return text
}

func limitTexts(limits []schema.RateLimit) []string {
	texts := make([]string, len(limits))
	for i, l := range limits {
		texts[i] = l.String()
	}
	return texts
}
