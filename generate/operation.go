package generate

import (
	"fmt"
	"strings"

	"runner.example/schema"
)

// operation is what a caller can ask for: a route, or an exposed function.
type operation struct {
	*schema.Route
	// function is nil of a route.
	function *schema.Function
	// name is the handler's. Where one handler serves several routes, each has its
	// method and path in its name as well: "showGetV1OrdersId". No two routes have
	// the same name, nor have two functions.
	name string
}

// operations are the routes and then the exposed functions, in order of declaration.
func operations(s *schema.Schema) []operation {
	served := map[string]int{}
	for _, r := range s.Routes {
		served[r.Handler]++
	}
	taken := map[string]bool{}
	for name, routes := range served {
		taken[name] = routes == 1
	}
	var all []operation
	for i := range s.Routes {
		r := &s.Routes[i]
		name := r.Handler
		if served[name] > 1 {
			name = free(name+pascal(r.Method)+pascal(r.Path), taken)
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

// free is the name, with a number where it is taken, and takes it.
func free(name string, taken map[string]bool) string {
	unique := name
	for n := 2; taken[unique]; n++ {
		unique = fmt.Sprintf("%s%d", name, n)
	}
	taken[unique] = true
	return unique
}

// pascal writes the words of a text, which only letters and digits make, each with
// a capital letter: "PATCH" is "Patch", "/v1/orders/:id" is "V1OrdersId".
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

// input is the type of the body, nil when anything will do.
func (o *operation) input(s *schema.Schema) *schema.ObjectType {
	if o.function != nil {
		return o.function.Input()
	}
	return s.Type(o.Input)
}

// takesBody reports that requests of the method have a body.
func (o *operation) takesBody() bool {
	switch o.Method {
	case "POST", "PUT", "PATCH", "DELETE":
		return true
	}
	return false
}

// needsBody reports that no body, which counts as an empty object, does not fit.
func needsBody(input *schema.ObjectType) bool {
	if input == nil {
		return false
	}
	for _, f := range input.Fields {
		if !isOptional(f) {
			return true
		}
	}
	return false
}

// access tells in words of the schema who may ask and how often.
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
