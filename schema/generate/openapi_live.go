package generate

import (
	"reflect"
	"slices"
)

// eventStream is a media type of server-sent events, which no schema can describe.
func eventStream(description string) object {
	return object{{"schema", object{{"type", "string"}, {"description", description}}}}
}

// sharedWatches adds the paths where clients watch several live routes over one connection.
func (d *openAPI) sharedWatches(all []operation) {
	var prefixes []string
	taken := map[string]bool{}
	for _, o := range all {
		if !isLive(o) || slices.Contains(prefixes, o.Prefix) {
			continue
		}
		prefixes = append(prefixes, o.Prefix)
		var routes []operation
		for _, other := range all {
			if isLive(other) && other.Prefix == o.Prefix {
				routes = append(routes, other)
			}
		}
		// Names of handlers do not begin with _.
		op := d.sharedWatch(uniqueName("_live"+pascal(o.Prefix), taken), routes)
		d.paths = append(d.paths, &pathItem{path: o.LivePath(), methods: object{{"post", op}}})
	}
}

// sharedWatch is the operation that watches some of the live routes.
func (d *openAPI) sharedWatch(name string, routes []operation) object {
	guarded := slices.ContainsFunc(routes, func(o operation) bool { return o.Auth.ChecksCredentials() })
	responses := object{
		{"200", object{
			{"description", "The connection is open."},
			{"headers", object{{"X-Request-Id", componentRef("headers", "X-Request-Id")}}},
			{"content", object{{"text/event-stream", eventStream(
				"First the event `open`, whose data is JSON with the `connection`; then the events of each watch, as its route has them, with a field `watch` that has its name.")}}},
		}},
		{"204", object{{"description", "The watches of the open connection were changed."}}},
	}
	happen := []string{"BadRequest", "NotFound", "TooManyRequests", "Unavailable", "Failure"}
	if guarded {
		happen = append(happen, "Unauthorized", "Forbidden")
	}
	for _, r := range errorResponses {
		if slices.Contains(happen, r.name) {
			d.responses[r.name] = true
			responses.add(r.status, componentRef("responses", r.name))
		}
	}
	return object{
		{"operationId", name},
		{"summary", "Watch live routes over one connection"},
		{"description", "With `watches` it opens a connection, with one credential for all of them. With `connection` it adds watches to one, and removes some."},
		{"requestBody", jsonBody(object{
			{"type", "object"},
			{"properties", object{
				{"watches", watchList("What to watch from the beginning.")},
				{"connection", object{{"type", "string"}, {"description", "The `connection` that the event `open` named."}}},
				{"add", watchList("Further watches. One of the same name is replaced.")},
				{"remove", object{{"type", "array"}, {"description", "The names of watches to end."}, {"items", object{{"type", "string"}}}}},
			}},
		}, true)},
		{"responses", responses},
		{"security", d.anySecurity(routes, guarded)},
	}
}

func watchList(description string) object {
	return object{{"type", "array"}, {"description", description}, {"maxItems", 100}, {"items", object{
		{"type", "object"},
		{"properties", object{
			{"name", object{{"type", "string"}, {"pattern", "^[A-Za-z0-9._-]{1,64}$"}, {"description", "The name of the watch on this connection."}}},
			{"path", object{{"type", "string"}, {"description", "The path of a live route, with its query."}}},
			{"lastEventId", object{{"type", "string"}, {"description", "As `Last-Event-ID` of the route."}}},
		}},
		{"required", list{"name", "path"}},
	}}}
}

// anySecurity are the credentials that some of the routes accept.
func (d *openAPI) anySecurity(routes []operation, guarded bool) list {
	out, open := list{}, false
	for _, o := range routes {
		open = open || o.Auth.None
		for _, accepted := range d.security(o.Auth) {
			same := func(other any) bool { return reflect.DeepEqual(other, accepted) }
			if len(accepted.(object)) > 0 && !slices.ContainsFunc(out, same) {
				out = append(out, accepted)
			}
		}
	}
	if open && guarded {
		out = append(out, object{}) // a credential is optional
	}
	return out
}
