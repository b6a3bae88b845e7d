package generate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"runner.example/schema"
)

// OpenAPIOptions is what a document says that no schema knows. The zero value is
// useful.
type OpenAPIOptions struct {
	// Version is the one of the app: "0.0.0" when it is empty.
	Version string
	// Servers are the URLs where the app is served. Without any, it is the server that
	// the document comes from.
	Servers []string
}

// OpenAPI gives a document of OpenAPI 3.1.1 about the routes and the exposed functions
// of the schema, as JSON. What handlers answer is not declared, so answers of routes
// are any JSON; bodies, parameters, results and refusals are described as far as the
// runner holds them to it. Fields that are hidden do not appear.
func OpenAPI(s *schema.Schema, opt OpenAPIOptions) []byte {
	d := &openAPI{schema: s, body: jsonSchema{schema: s}, responses: map[string]bool{}}
	d.problem = "Problem"
	for s.Type(d.problem) != nil || s.Entity(d.problem) != nil || slices.ContainsFunc(s.Enums, func(e *schema.Enum) bool { return e.Name == d.problem }) {
		d.problem += "_"
	}
	for _, o := range operations(s) {
		d.operation(&o)
	}
	return d.document(opt).text()
}

type openAPI struct {
	schema *schema.Schema
	body   jsonSchema
	paths  []*pathItem
	// responses, query and mints note which components are in use; undeclared:
	// sessions are accepted and no kind of session is declared.
	responses                map[string]bool
	query, mints, undeclared bool
	// problem is the component's name of refusals.
	problem string
}

// pathItem is what can be asked of one path.
type pathItem struct {
	path, shape string
	params      []string
	methods     object
	used        map[string]bool
}

func (d *openAPI) document(opt OpenAPIOptions) object {
	doc := object{
		{"openapi", "3.1.1"},
		{"info", object{
			{"title", cmp.Or(d.schema.App, "runner")},
			{"version", cmp.Or(opt.Version, "0.0.0")},
			{"description", "Refusals are `application/problem+json` (RFC 9457), with a stable `code`, and a `requestId` by which the operator finds them in the log."},
		}},
		{"jsonSchemaDialect", "https://spec.openapis.org/oas/3.1/dialect/base"},
	}
	servers := list{}
	for _, url := range opt.Servers {
		servers = append(servers, object{{"url", url}})
	}
	if len(servers) == 0 {
		servers = list{object{{"url", "/"}}}
	}
	doc.add("servers", servers)
	paths := object{}
	for _, p := range d.paths {
		paths.add(p.path, p.methods)
	}
	doc.add("paths", paths)
	return append(doc, member{"components", d.components()})
}

// ---- operations ----

func (d *openAPI) operation(o *operation) {
	at, params := d.place(o)
	name := o.name
	if o.function != nil {
		name = "call." + name // as the client has it; no handler has such a name
	}
	summary, _, _ := strings.Cut(o.Doc, "\n")
	op := object{
		{"operationId", name},
		{"summary", cmp.Or(summary, o.Handler)},
		{"description", joinDoc("\n\n", o.Doc, "`"+o.access()+"`", d.seal(o))},
	}
	if parameters := append(params, d.parameters(o)...); len(parameters) > 0 {
		op.add("parameters", parameters)
	}
	if body := d.requestBody(o); body != nil {
		op.add("requestBody", body)
	}
	op.add("responses", d.answers(o))
	op.add("security", d.security(o.Auth))
	if len(o.Limits) > 0 {
		op.add("x-runner-rate-limits", listOf(limitTexts(o.Limits)))
	}
	if o.BodyBytes > 0 {
		op.add("x-runner-max-body-bytes", int(o.BodyBytes))
	}
	at.methods.add(strings.ToLower(o.Method), op)
	at.used[o.Method] = true
}

// place finds or makes the path's item, and gives the operation's parameters by the
// names that they have there: OpenAPI takes paths that differ in names alone for the
// same path, and knows no parameter that goes over slashes. Where another route has one
// segment of a rest, two are the fewest that it gets, and they are parameters of their
// own.
func (d *openAPI) place(o *operation) (*pathItem, list) {
	path, shape, params, rest := template(o.Path)
	at := d.itemOf(shape)
	for n := 1; at != nil && at.used[o.Method]; n++ {
		last := len(params) - 1
		first := fmt.Sprintf("%s_%d", params[last], n)
		for slices.Contains(params, first) {
			first += "_"
		}
		path = strings.TrimSuffix(path, "{"+params[last]+"}") + "{" + first + "}/{" + params[last] + "}"
		shape, params = shape+"/{}", slices.Insert(params, last, first)
		at = d.itemOf(shape)
	}
	if at == nil {
		at = &pathItem{path: path, shape: shape, params: params, used: map[string]bool{}}
		d.paths = append(d.paths, at)
	}
	out := list{}
	for i, name := range at.params {
		param := object{{"name", name}, {"in", "path"}, {"required", true}}
		if rest && i == len(at.params)-1 {
			param.add("description", "The rest of the path: one segment or several, with slashes between them.")
			param.add("schema", object{{"type", "string"}, {"pattern", `^[^/\\]+(/[^/\\]+)*$`}})
			param.add("x-runner-rest", true)
		} else {
			param.add("schema", object{{"type", "string"}, {"pattern", `^[^/\\]+$`}})
		}
		out = append(out, param)
	}
	return at, out
}

func (d *openAPI) itemOf(shape string) *pathItem {
	for _, p := range d.paths {
		if p.shape == shape {
			return p
		}
	}
	return nil
}

// template writes a path as OpenAPI does, and without the names of its parameters.
func template(path string) (named, shape string, params []string, rest bool) {
	segments := strings.Split(path, "/")
	shapes := slices.Clone(segments)
	for i, segment := range segments {
		if segment == "" || segment[0] != ':' && segment[0] != '*' {
			continue
		}
		rest = segment[0] == '*'
		params = append(params, segment[1:])
		segments[i], shapes[i] = "{"+segment[1:]+"}", "{}"
	}
	return strings.Join(segments, "/"), strings.Join(shapes, "/"), params, rest
}

// signed are the headers that a signed request has, by the scheme.
var signed = map[string][]string{
	"standard": {"webhook-id", "webhook-timestamp", "webhook-signature"},
	"stripe":   {"Stripe-Signature"},
	"github":   {"X-Hub-Signature-256"},
	"slack":    {"X-Slack-Request-Timestamp", "X-Slack-Signature"},
}

// seal tells of the signature that requests must carry.
func (d *openAPI) seal(o *operation) string {
	if o.Verify == nil {
		return ""
	}
	return fmt.Sprintf("The body must be signed in the way of %s webhooks.", o.Verify.Scheme)
}

// parameters are those beside the path's: what handlers read of a query is not
// declared, so any will do.
func (d *openAPI) parameters(o *operation) list {
	var out list
	if o.function == nil {
		d.query = true
		out = append(out, componentRef("parameters", "query"))
	}
	if o.Verify != nil {
		for _, name := range signed[o.Verify.Scheme] {
			out = append(out, object{{"name", name}, {"in", "header"}, {"required", true}, {"schema", object{{"type", "string"}}}})
		}
	}
	return out
}

func (d *openAPI) requestBody(o *operation) object {
	if !o.takesBody() {
		return nil
	}
	input := o.input(d.schema)
	switch {
	case input == nil:
		return object{
			{"description", "What the handler takes; the schema does not say."},
			{"content", object{{"application/json", object{{"schema", object{}}}}, {"*/*", object{}}}},
		}
	case o.function != nil:
		return jsonBody(jsonSchema{schema: d.schema, filled: true}.object("", input.Fields), needsBody(input))
	}
	return jsonBody(componentRef("schemas", input.Name), needsBody(input))
}

func jsonBody(body object, required bool) object {
	return object{{"required", required}, {"content", object{{"application/json", object{{"schema", body}}}}}}
}

// security lists what is accepted: each entry is enough by itself. The words in it
// are scopes of keys, or roles of sessions.
func (d *openAPI) security(auth schema.Auth) list {
	accepted := list{} // none: no credential is needed
	for _, scope := range auth.Scopes {
		accepted = append(accepted, object{{"bearerKey", list{scope}}}, object{{"headerKey", list{scope}}})
	}
	if !auth.Session {
		return accepted
	}
	names := list{}
	for _, role := range auth.Roles {
		names = append(names, list{role})
	}
	if len(auth.Roles) == 0 {
		names = list{list{}}
	}
	for _, needed := range names {
		for _, kind := range d.sessions() {
			accepted = append(accepted, object{{kind, needed}})
		}
	}
	return accepted
}

// sessions are the kinds that are declared; without entities none may be.
func (d *openAPI) sessions() (kinds []string) {
	if d.schema.Auth.Cookie != nil {
		kinds = append(kinds, "cookieSession")
	}
	if d.schema.Auth.JWT != nil {
		kinds = append(kinds, "jwtSession")
	}
	if kinds == nil {
		d.undeclared, kinds = true, []string{"noSession"}
	}
	return kinds
}

// answers are those that can be foreseen. What a handler refuses by itself, and what
// goes wrong, is the default.
func (d *openAPI) answers(o *operation) object {
	guarded, body := !o.Auth.None, o.takesBody()
	status, success := "2XX", object{{"description", "What the handler answers."}}
	var schemaOf any = object{}
	if o.function != nil && o.function.Result != nil {
		status, success = "200", object{{"description", "The result, as the handler gave it. Other successes of handlers are not described."}}
		schemaOf = d.body.result(o.function.Result)
	}
	headers := object{{"X-Request-Id", componentRef("headers", "X-Request-Id")}}
	if len(o.Limits) > 0 {
		headers.add("RateLimit-Policy", componentRef("headers", "RateLimit-Policy"))
		headers.add("RateLimit", componentRef("headers", "RateLimit"))
	}
	if o.CreatesSession {
		headers.add("Set-Cookie", componentRef("headers", "Set-Cookie"))
		d.mints = true
	}
	success.add("headers", headers)
	if o.Method != "HEAD" {
		success.add("content", object{{"application/json", object{{"schema", schemaOf}}}})
	}
	out := object{{status, success}}
	for _, r := range refusals {
		happens := false
		switch r.name {
		case "BadRequest":
			happens = o.Verify == nil && o.input(d.schema) == nil
		case "InvalidInput":
			happens = o.Verify == nil && o.input(d.schema) != nil
		case "NotSigned":
			happens = o.Verify != nil
		case "Unauthorized":
			happens = guarded
		case "WrongSignature":
			happens = o.Verify != nil && !guarded
		case "Forbidden":
			happens = guarded
		case "NotFound":
			happens = len(o.Params) > 0
		case "Conflict", "BodyTooLarge":
			happens = body
		case "TooManyRequests":
			happens = guarded || len(o.Limits) > 0
		case "Unavailable", "Failure":
			happens = true
		}
		if happens {
			d.responses[r.name] = true
			out.add(r.status, componentRef("responses", r.name))
		}
	}
	return out
}

// refusals are the components of answers that are no success.
var refusals = []struct {
	name, status, description string
	headers                   []string
}{
	{"BadRequest", "400", "The request is malformed: `invalid_request`, `bad_path`, `invalid_json`; or the handler refused it.", nil},
	{"InvalidInput", "400", "The body does not fit: `invalid_input`, with every mistake in `errors`; or the request is malformed: `invalid_json`, `invalid_request`, `bad_path`.", nil},
	{"NotSigned", "400", "The request carries no signature: `missing_signature`; or it is malformed: `invalid_input`, `invalid_json`, `invalid_request`.", nil},
	{"Unauthorized", "401", "There is no credential, `missing_credentials`, or it does not count here, `invalid_token`.", []string{"WWW-Authenticate"}},
	{"WrongSignature", "401", "The signature does not fit or is too old: `invalid_signature`.", []string{"WWW-Authenticate"}},
	{"Forbidden", "403", "The caller may not do this: `insufficient_scope`, `insufficient_role`, `cross_origin`, `forbidden`.", []string{"WWW-Authenticate"}},
	{"NotFound", "404", "What the path names does not exist, or the caller may not see it: `not_found`.", nil},
	{"Conflict", "409", "Other requests changed the same rows, or a value that must be unique is taken: `conflict`.", nil},
	{"BodyTooLarge", "413", "The body is larger than this route takes: `body_too_large`.", nil},
	{"TooManyRequests", "429", "The caller has used up a limit, or sent too many wrong credentials: `rate_limited`.", []string{"Retry-After", "RateLimit-Policy", "RateLimit"}},
	{"Unavailable", "503", "There is no room at the moment: `overloaded`, `not_ready`, `handler_unavailable`, which say when to come back; or `unavailable`.", []string{"Retry-After"}},
	{"Failure", "default", "Any other refusal: of the handler, or because it failed, took too long or needed too much.", nil},
}

// ---- components ----

func (d *openAPI) components() object {
	out := object{{"schemas", d.schemas()}}
	responses, headers := object{}, map[string]bool{"X-Request-Id": len(d.responses) > 0, "Set-Cookie": d.mints}
	for _, r := range refusals {
		if !d.responses[r.name] {
			continue
		}
		with := object{{"X-Request-Id", componentRef("headers", "X-Request-Id")}}
		for _, name := range r.headers {
			headers[name] = true
			with.add(name, componentRef("headers", name))
		}
		responses.add(r.name, object{
			{"description", r.description},
			{"headers", with},
			{"content", object{{"application/problem+json", object{{"schema", componentRef("schemas", d.problem)}}}}},
		})
	}
	if len(responses) > 0 {
		out.add("responses", responses)
	}
	if d.query {
		out.add("parameters", object{{"query", object{
			{"name", "query"}, {"in", "query"},
			{"description", "What the handler reads of the query; the schema does not say. At most 100 pairs."},
			{"schema", object{{"type", "object"}, {"additionalProperties", object{{"type", "string"}}}}},
			{"style", "form"}, {"explode", true},
		}}})
	}
	described := object{}
	for _, h := range answerHeaders {
		if headers[h.name] {
			described.add(h.name, object{{"description", h.description}, {"schema", object{{"type", h.kind}}}})
		}
	}
	if len(described) > 0 {
		out.add("headers", described)
	}
	if schemes := d.securitySchemes(); len(schemes) > 0 {
		out.add("securitySchemes", schemes)
	}
	return out
}

var answerHeaders = []struct{ name, kind, description string }{
	{"X-Request-Id", "string", "The host's name for this request, by which its operator finds it in the log."},
	{"Set-Cookie", "string", "The session's cookie, when the handler opened or ended one."},
	{"WWW-Authenticate", "string", "What to send (RFC 9110, RFC 6750)."},
	{"Retry-After", "integer", "In how many seconds to come back."},
	{"RateLimit-Policy", "string", "The limits of this route, as in the IETF draft on rate limit headers."},
	{"RateLimit", "string", "What is left of each limit (r), and in how many seconds there will be more (t)."},
}

func (d *openAPI) schemas() object {
	out := object{}
	for _, e := range d.schema.Enums {
		enum := object{{"type", "string"}}
		enum.addText("description", e.Doc)
		out.add(e.Name, append(enum, member{"enum", listOf(e.Values)}))
	}
	for _, e := range d.schema.Entities {
		out.add(e.Name, jsonSchema{schema: d.schema, row: e}.object(e.Doc, e.Fields))
	}
	for _, t := range d.schema.Types {
		out.add(t.Name, d.body.object(t.Doc, t.Fields))
	}
	text := object{{"type", "string"}}
	return append(out, member{d.problem, object{
		{"type", "object"},
		{"description", "A refusal (RFC 9457)."},
		{"properties", object{
			{"type", object{{"type", "string"}, {"format", "uri-reference"}}},
			{"title", text},
			{"status", object{{"type", "integer"}}},
			{"detail", text},
			{"instance", object{{"type", "string"}, {"format", "uri-reference"}}},
			{"code", object{{"type", "string"}, {"description", "What is wrong, in a word that stays: `invalid_token`."}}},
			{"requestId", text},
			{"errors", object{
				{"type", "array"},
				{"description", "Every mistake of the body, with `invalid_input`."},
				{"items", object{
					{"type", "object"},
					{"properties", object{
						{"field", object{{"type", "string"}, {"description", "The member's path: `lines[2].sku`. Empty for the whole."}}},
						{"message", text},
					}},
					{"required", list{"field", "message"}},
				}},
			}},
		}},
		{"required", list{"type", "title", "status", "code", "requestId"}},
	}})
}

func (d *openAPI) securitySchemes() object {
	out := object{}
	if scopes := d.schema.APIKeys.Scopes; len(scopes) > 0 {
		text := "A key has one scope:\n"
		for _, scope := range scopes {
			text += fmt.Sprintf("\n- `%s` (%s)", scope.Name, scope.System)
			if scope.Doc != "" {
				text += ": " + strings.Join(strings.Fields(scope.Doc), " ")
			}
		}
		out.add("bearerKey", object{
			{"type", "http"}, {"scheme", "bearer"}, {"bearerFormat", d.schema.APIKeys.Prefix + "_…"},
			{"description", "An API key. " + text},
		})
		out.add("headerKey", object{
			{"type", "apiKey"}, {"in", "header"}, {"name", "X-API-Key"},
			{"description", "The same key, in a header of its own; one of the two, not both. " + text},
		})
	}
	roles := ""
	if declared := d.schema.Auth.Roles; declared != nil {
		roles = " Roles: `" + strings.Join(declared, "`, `") + "`."
	}
	if cookie := d.schema.Auth.Cookie; cookie != nil {
		out.add("cookieSession", object{
			{"type", "apiKey"}, {"in", "cookie"}, {"name", cookie.Name},
			{"description", "A session of a user, in a cookie that the app set." + roles},
		})
	}
	if jwt := d.schema.Auth.JWT; jwt != nil {
		out.add("jwtSession", object{
			{"type", "http"}, {"scheme", "bearer"}, {"bearerFormat", "JWT"},
			{"description", fmt.Sprintf("A JWT that %s issued for %s.%s", jwt.Issuer, jwt.Audience, roles)},
		})
	}
	if d.undeclared {
		out.add("noSession", object{
			{"type", "http"}, {"scheme", "bearer"},
			{"description", "A session of a user. The schema declares no kind of them, so nobody has one."},
		})
	}
	return out
}
