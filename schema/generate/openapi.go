package generate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"runner.example/internal/settings"
	"runner.example/schema"
)

// OpenAPIOptions has the parts of a document that are not in the schema. The zero value is
// useful.
type OpenAPIOptions struct {
	// Version is the version of the app; empty is "0.0.0".
	Version string
	// Servers are the URLs of the app; empty is the server of the document.
	Servers []string
}

// OpenAPI returns an OpenAPI 3.1.1 document, in JSON, of the routes and the exposed functions
// of the schema. Responses that the schema does not declare are any JSON.
// Bodies, parameters, results and errors are described as far as the runner enforces them.
// Hidden fields are omitted.
func OpenAPI(s *schema.Schema, opt OpenAPIOptions) []byte {
	d := &openAPI{schema: s, body: jsonSchema{schema: s}, responses: map[string]bool{}}
	d.problem = "Problem"
	for s.Type(d.problem) != nil || s.Entity(d.problem) != nil ||
		slices.ContainsFunc(s.Enums, func(e *schema.Enum) bool { return e.Name == d.problem }) {
		d.problem += "_"
	}
	all := operations(s)
	for _, o := range all {
		d.operation(&o)
	}
	d.sharedWatches(all)
	return d.document(opt).text()
}

type openAPI struct {
	schema *schema.Schema
	body   jsonSchema
	paths  []*pathItem
	// responses, query and createsSession record which components are used.
	responses             map[string]bool
	query, createsSession bool
	// undeclared reports that sessions are accepted but no kind of session is declared.
	undeclared bool
	// problem is the name of the component for errors.
	problem string
}

// pathItem has the operations of one path.
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
			{
				"description",
				"Errors are `application/problem+json` (RFC 9457), with a stable `code` and a `requestId` that the operator can find in the log.",
			},
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
	at, params := d.item(o)
	name := o.name
	if o.function != nil {
		name = "call." + name // as in the client; handlers' names have no dot
	}
	summary, _, _ := strings.Cut(o.Doc, "\n")
	op := object{
		{"operationId", name},
		{"summary", cmp.Or(summary, o.Target())},
		{"description", joinDoc("\n\n", o.Doc, "`"+o.access()+"`", d.signature(o))},
	}
	if parameters := append(params, d.parameters(o)...); len(parameters) > 0 {
		op.add("parameters", parameters)
	}
	if body := d.requestBody(o); body != nil {
		op.add("requestBody", body)
	}
	op.add("responses", d.responsesOf(o))
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

// item finds or creates the path's item, and returns the operation's parameters by their
// names there. In OpenAPI, paths that differ only in names of parameters are the same path,
// and a parameter cannot contain slashes. If another route matches a rest parameter of one
// segment, the rest has at least two segments, each with a parameter of its own.
func (d *openAPI) item(o *operation) (*pathItem, list) {
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
			param.add("description", "The rest of the path: one or more segments separated by slashes.")
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

// template returns a path in OpenAPI syntax, and the same without names of parameters.
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

// signed has the headers of a signed request, by scheme.
var signed = map[string][]string{
	"standard": {"webhook-id", "webhook-timestamp", "webhook-signature"},
	"stripe":   {"Stripe-Signature"},
	"github":   {"X-Hub-Signature-256"},
	"slack":    {"X-Slack-Request-Timestamp", "X-Slack-Signature"},
}

// signature describes the signature that requests must have.
func (d *openAPI) signature(o *operation) string {
	if o.Verify == nil {
		return ""
	}
	text := fmt.Sprintf("The body must have a signature of the webhook scheme `%s`.", o.Verify.Scheme)
	if o.Verify.Scheme == "standard" {
		text += " The headers `svix-id`, `svix-timestamp` and `svix-signature` may stand for the `webhook-*` headers."
	}
	return text
}

// parameters are the parameters that are not in the path. If the schema does not declare the
// query, any parameters are accepted.
func (d *openAPI) parameters(o *operation) list {
	var out list
	switch query := o.query(d.schema); {
	case query != nil:
		in := jsonSchema{schema: d.schema, filled: true, query: true}
		for _, f := range query.Fields {
			param := in.field(f)
			out = append(out, object{{"name", f.Name}, {"in", "query"}, {"required", !f.MayOmit()}, {"schema", param}})
		}
	case o.function == nil && o.File == nil:
		d.query = true
		out = append(out, componentRef("parameters", "query"))
	}
	if o.Live > 0 {
		out = append(out, object{
			{"name", "Last-Event-ID"}, {"in", "header"}, {"required", false},
			{"description", "With `Accept: text/event-stream`: the `id` of the last event that the client has received. An event that would be the same is not sent."},
			{"schema", object{{"type", "string"}}},
		})
	}
	if o.Verify != nil {
		for _, name := range signed[o.Verify.Scheme] {
			out = append(out, object{
				{"name", name}, {"in", "header"}, {"required", o.Verify.Scheme != "standard"},
				{"schema", object{{"type", "string"}}},
			})
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
	case o.Upload:
		return object{
			{"description", "A form with texts and files, or the bytes of one file. The schema does not declare the names."},
			{"content", object{{"multipart/form-data", object{{"schema", object{{"type", "object"}}}}}, {"*/*", object{}}}},
		}
	case input == nil:
		return object{
			{"description", "The body that the handler expects; the schema does not declare it."},
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

// security lists the accepted credentials; one entry is sufficient. Its words are scopes of
// keys or roles of sessions.
func (d *openAPI) security(auth schema.Auth) list {
	accepted := list{} // with none alone it stays empty: no credential is needed
	for _, scope := range auth.Scopes {
		accepted = append(accepted, object{{"bearerKey", list{scope}}}, object{{"headerKey", list{scope}}})
	}
	names := list{}
	for _, role := range auth.Roles {
		names = append(names, list{role})
	}
	if auth.Session && len(auth.Roles) == 0 {
		names = list{list{}}
	}
	for _, needed := range names {
		for _, kind := range d.sessions() {
			accepted = append(accepted, object{{kind, needed}})
		}
	}
	if auth.None && auth.ChecksCredentials() {
		accepted = append(accepted, object{}) // a credential is optional
	}
	return accepted
}

// sessions are the declared kinds of sessions. In untyped mode there may be none.
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

// responsesOf are the predictable responses of an operation. Other errors, and errors that
// the handler returns, are the default.
func (d *openAPI) responsesOf(o *operation) object {
	guarded, body := o.Auth.ChecksCredentials(), o.takesBody()
	headers := object{{"X-Request-Id", componentRef("headers", "X-Request-Id")}}
	if len(o.Limits) > 0 {
		headers.add("RateLimit-Policy", componentRef("headers", "RateLimit-Policy"))
		headers.add("RateLimit", componentRef("headers", "RateLimit"))
	}
	if o.CreatesSession {
		headers.add("Set-Cookie", componentRef("headers", "Set-Cookie"))
		d.createsSession = true
	}
	redirected := append(slices.Clone(headers), member{"Location", componentRef("headers", "Location")})
	out := object{}
	if o.File != nil {
		addFile(&out, headers)
	}
	for _, a := range answers {
		if o.File != nil {
			break
		}
		response := object{{"description", a.description}, {"headers", headers}}
		switch {
		case a.body == location:
			response = object{{"description", a.description}, {"headers", redirected}}
		case a.body == anything && o.Method != "HEAD":
			content := object{}
			if result := o.result(); result != nil && a.status != "202" {
				content = d.body.result(result)
			}
			types := object{{"application/json", object{{"schema", content}}}}
			if o.Live > 0 && a.status == "200" {
				types.add("text/event-stream", eventStream(
					"With `Accept: text/event-stream`: server-sent events for at most "+settings.FormatDuration(o.Live)+". `value` has the response of the handler, and comes again when it has changed; "+
						"`problem` has an error in its place, in JSON, and the watch goes on; `end` has the error that ended it. "+
						"Connect again with `Last-Event-ID`, unless an `end` came."))
			}
			response.add("content", types)
		}
		out.add(a.status, response)
	}
	for _, r := range errorResponses {
		happens := false
		switch r.name {
		case "BadRequest":
			happens = o.Verify == nil && o.input(d.schema) == nil && o.Query == ""
		case "InvalidInput":
			happens = o.Verify == nil && (o.input(d.schema) != nil || o.Query != "")
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
		case "RangeNotSatisfiable", "PreconditionFailed":
			happens = o.File != nil
		case "Conflict", "BodyTooLarge":
			happens = body
		case "EncodedBody":
			happens = o.input(d.schema) != nil
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

// addFile adds the responses of a route that sends a file.
func addFile(out *object, headers object) {
	for _, r := range [][2]string{{"200", "The file."}, {"206", "The part of the file that `Range` asks for."}} {
		out.add(r[0], object{{"description", r[1]}, {"headers", headers}, {"content", object{{"*/*", object{}}}}})
	}
	out.add("304", object{{"description", "The client has this file: `If-None-Match` or `If-Modified-Since` names it."}, {"headers", headers}})
}

// The contents of an answer.
const (
	anything = iota
	nothing
	location
)

// answers are the responses of a handler that are not errors. The schema does not declare
// which of them it sends. Each has its own status, because generators do not agree on 2XX.
var answers = []struct {
	status, description string
	body                int
}{
	{"200", "The response of the handler; the declared result, if there is one.", anything},
	{"201", "The response of the handler, which created something.", anything},
	{"202", "The response of the handler, which accepted the request for later.", anything},
	{"204", "The handler returned no content.", nothing},
	{"301", "The resource is at another URL for good.", location},
	{"302", "The resource is at another URL for now.", location},
	{"303", "The client continues at another URL, with GET.", location},
	{"307", "The client repeats the request at another URL for now.", location},
	{"308", "The client repeats the request at another URL for good.", location},
}

// errorResponses are the components for errors.
var errorResponses = []struct {
	name, status, description string
	headers                   []string
}{
	{
		"BadRequest", "400",
		"The request is malformed: `invalid_request`, `bad_path`, `invalid_json`; or the handler rejected it.", nil,
	},
	{
		"InvalidInput", "400",
		"The body or the query does not match its type: `invalid_input`, see `errors`; or the request is malformed: `invalid_json`, `invalid_request`, `bad_path`.",
		nil,
	},
	{
		"NotSigned", "400",
		"The request has no signature: `missing_signature`; or it is malformed: `invalid_input`, `invalid_json`, `invalid_request`.",
		nil,
	},
	{"Unauthorized", "401", "The credential is missing, `missing_credentials`, or not valid, `invalid_token`.",
		[]string{"WWW-Authenticate"}},
	{"WrongSignature", "401", "The signature is wrong or too old: `invalid_signature`.", []string{"WWW-Authenticate"}},
	{
		"Forbidden", "403",
		"The caller may not do this: `insufficient_scope`, `insufficient_role`, `cross_origin`, `forbidden`.",
		[]string{"WWW-Authenticate"},
	},
	{"NotFound", "404", "The resource does not exist, or the caller may not see it: `not_found`.", nil},
	{
		"Conflict", "409",
		"`conflict`: a unique value already exists, see `errors`. `write_conflict`: other requests changed the same rows, see `Retry-After`.",
		[]string{"Retry-After"},
	},
	{"BodyTooLarge", "413", "The body is too large for this route: `body_too_large`; or too large to be stored: `too_large`.", nil},
	{"PreconditionFailed", "412", "The file is not the one that `If-Match` or `If-Unmodified-Since` names: `precondition_failed`.", nil},
	{"RangeNotSatisfiable", "416", "The file has none of the bytes that `Range` asks for: `range_not_satisfiable`. `Content-Range` has its size.", nil},
	{"EncodedBody", "415", "The body has a `Content-Encoding`: `unsupported_encoding`. Send it without one.", nil},
	{
		"TooManyRequests", "429",
		"The caller has exceeded a rate limit, or sent too many invalid credentials: `rate_limited`.",
		[]string{"Retry-After", "RateLimit-Policy", "RateLimit"},
	},
	{
		"Unavailable", "503",
		"The server is overloaded or not ready: `overloaded`, `not_ready`, `handler_unavailable`, `key_store_stale`, with `Retry-After`; or `unavailable`.",
		[]string{"Retry-After"},
	},
	{"Failure", "default", "Any other error: the handler returned it, failed, timed out, or exceeded a limit.", nil},
}

// ---- components ----

func (d *openAPI) components() object {
	out := object{{"schemas", d.schemas()}}
	responses, headers := object{}, map[string]bool{"X-Request-Id": len(d.responses) > 0, "Set-Cookie": d.createsSession}
	headers["Location"] = len(d.paths) > 0
	for _, r := range errorResponses {
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
			{"description", "Query parameters of the handler; the schema does not declare them. At most 100 pairs."},
			{"schema", object{{"type", "object"}, {"additionalProperties", object{{"type", "string"}}}}},
			{"style", "form"}, {"explode", true},
		}}})
	}
	described := object{}
	for _, h := range responseHeaders {
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

var responseHeaders = []struct{ name, kind, description string }{
	{"Location", "string", "The URL to go to."},
	{"X-Request-Id", "string", "The id of this request, which the operator can find in the log."},
	{"Set-Cookie", "string", "The session cookie, if the handler created or ended a session."},
	{"WWW-Authenticate", "string", "The accepted authentication scheme (RFC 9110, RFC 6750)."},
	{"Retry-After", "integer", "The number of seconds after which to retry."},
	{"RateLimit-Policy", "string", "The limits of this route, as in the IETF draft on rate limit headers."},
	{"RateLimit", "string", "The remaining requests of each limit (r), and the seconds until more are available (t)."},
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
		{"description", "An error (RFC 9457). Handlers may add members and codes of their own."},
		{"properties", object{
			{"type", object{{"type", "string"}, {"format", "uri-reference"}}},
			{"title", text},
			{"status", object{{"type", "integer"}}},
			{"detail", text},
			{"instance", object{{"type", "string"}, {"format", "uri-reference"}}},
			{"code", object{{"type", "string"}, {"description", "A stable error code: `invalid_token`."}}},
			{"requestId", text},
			{"errors", object{
				{"type", "array"},
				{"description", "The errors of the body or the query, with `invalid_input`, and the fields of a `conflict`."},
				{"items", object{
					{"type", "object"},
					{"properties", object{
						{"field", object{
							{"type", "string"}, {"description", "The path of the member: `lines[2].sku`. Empty for the whole body."},
						}},
						{"message", text},
					}},
					{"required", list{"field", "message"}},
				}},
			}},
		}},
		{"required", list{"type", "title", "status", "code", "requestId"}},
		{"additionalProperties", true},
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
			{"description", "The same key in a header of its own. Send one of the two. " + text},
		})
	}
	roles := ""
	if declared := d.schema.Auth.Roles; declared != nil {
		roles = " Roles: `" + strings.Join(declared, "`, `") + "`."
	}
	if cookie := d.schema.Auth.Cookie; cookie != nil {
		out.add("cookieSession", object{
			{"type", "apiKey"}, {"in", "cookie"}, {"name", cookie.Name},
			{"description", "A user session, in a cookie that the app set." + roles},
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
			{"description", "A user session. The schema does not declare any kind of session, so no caller has one."},
		})
	}
	return out
}
