package languageserver

import (
	"cmp"
	"slices"
	"strings"

	"runner.example/schema/syntax"
)

// explained is what a word of the language means, in one sentence, and the value that counts without it.
type explained struct{ about, standard string }

// routeSettings explain the settings of routes, groups and functions.
var routeSettings = map[string]explained{
	"auth":      {"who may call: none, session(roles), apiKey(scopes) or anyOf(modes)", "none: every route needs one"},
	"rateLimit": {"the requests of a caller in a time, such as 600/minute by user", "no limit"},
	"as":        {"the scope whose grants an anonymous caller has", "no grants"},
	"body":      {"the maximum size of the body", "[front] body in runner.toml, 1mb"},
	"upload":    {"on: the body is a form or a file, which is stored before the handler runs", "off"},
	"timeout":   {"the maximum time of the handler", "[runtime] timeout in runner.toml, 10s"},
	"stream":    {"the maximum time of an answer that is sent while its handler runs", "the time of the handler"},
	"live":      {"how long a client may watch the answer: it gets each new one, when rows that the handler read have changed", "the route cannot be watched"},
	"input":     {"the type that the body must match", "any body"},
	"query":     {"the type that the query must match", "any query"},
	"verify":    {"the signature of a webhook: webhook(scheme, SECRET, tolerance: 5m)", "no check"},
	"csrf":      {"whether requests from pages of other origins are refused", "on"},
	"mints":     {"session: the handler may open sessions for any user", "it may not"},
	"cors":      {"the origins whose pages may read the responses", "only the app's own origin"},
}

// jobSettings explain the settings of jobs.
var jobSettings = map[string]explained{
	"as":          {"the scope under whose grants the job acts", "the authority of the caller that enqueued it"},
	"retries":     {"how often a job that failed runs again", "8"},
	"backoff":     {"the time before the first retry; it doubles with each further one", "10s"},
	"timeout":     {"the maximum time of one run", "[runtime] timeout in runner.toml, 10s"},
	"concurrency": {"how many of the jobs run at once: 4 by tenant", "no limit"},
	"schedule":    {"when the job is enqueued by itself: \"0 3 * * *\" in \"Europe/Berlin\"", "only the app enqueues it"},
}

// assetSettings explain the settings of assets.
var assetSettings = map[string]explained{
	"dir":       {"the directory of the files, relative to the app directory", "none: assets need one"},
	"spa":       {"the file that answers navigations to paths without a file", "they get 404"},
	"headers":   {"headers of each answer, in quotes; an empty value removes a default", "nosniff, Referrer-Policy, frame-ancestors"},
	"auth":      {"who may load the files: none, session(roles), apiKey(scopes) or anyOf(modes)", "that of the group, or none"},
	"rateLimit": {"the requests of a caller in a time, such as 600/minute by ip", "that of the group, or no limit"},
	"cors":      {"the origins whose pages may read the files", "only the app's own origin"},
}

// fieldAttrs explain the attributes of fields.
var fieldAttrs = map[string]string{
	"unique":   "no two rows, of one tenant, have the same value",
	"index":    "queries by this field use an index; @index(ignoreCase) ignores the case of letters",
	"tenant":   "the tenant that a row belongs to, filled in from the caller",
	"hidden":   "only a grant that names the field can read it",
	"readonly": "no handler can write the field",
	"created":  "the time when the row was inserted",
	"updated":  "the time of the last change of the row",
	"removed":  "no rule, query or type has the field any more, and rows keep its values",
	"min":      "the smallest value",
	"max":      "the largest value",
	"pattern":  "a regular expression (RE2) that the text must match",
	"was":      "the earlier name of the field, under which rows have it",
	"inverse":  "the field of the other entity that refers to this one",
	"onDelete": "what happens when the row that this one refers to is deleted: restrict, cascade or clear",
}

// entityAttrs explain the attributes of entities.
var entityAttrs = map[string]string{
	"allow":  "callers may do this: @@allow read, write to session when owner == auth.userId",
	"deny":   "callers may not do this, whatever else allows it",
	"unique": "no two rows, of one tenant, have the same values in these fields",
	"index":  "queries by these fields use an index: @@index(status, placedAt desc)",
}

// scopeAttrs explain what a scope consists of.
var scopeAttrs = map[string]string{
	"grant":      "what keys of the scope may do: @grant read, write on Order",
	"issue":      "which callers may create keys of the scope: @issue when auth.role == \"admin\"",
	"manage":     "which callers reach all keys of the scope in their tenant",
	"allTenants": "keys of the scope are of no tenant, and reach the rows of all",
}

// declarations explain the declarations.
var declarations = map[string]string{
	"app":       "the name of the app",
	"auth":      "sessions, roles, and the entities of users and tenants",
	"secret":    "a secret that handlers may read",
	"var":       "a value that each server may set: var LIMIT: int = 10",
	"outbound":  "the origins that handlers may call",
	"module":    "settings of a module in build/",
	"python":    "settings of handlers in Python",
	"enum":      "a list of words: enum Status { open, closed }",
	"type":      "the shape of a body or a result",
	"entity":    "a kind of row that is stored",
	"apiKeys":   "API keys: their scopes and what these grant",
	"functions": "functions that clients call by name",
	"jobs":      "work in the background, with retries and schedules",
	"routes":    "HTTP routes with a common prefix and common settings",
	"assets":    "a directory whose files browsers load: assets(\"/\", dir: \"public\")",
}

// value is the value of a setting as written, on one line.
func (f *file) value(s *syntax.RouteSetting) string {
	_, value, _ := strings.Cut(f.slice(s.Loc), ":")
	return strings.Join(strings.Fields(value), " ")
}

// setting returns the effective setting of a name; nil if it is not set. own reports that it is written on the endpoint
// itself.
func (e *endpoint) setting(name string) (s *syntax.RouteSetting, own bool) {
	if e.own != nil {
		for _, s := range slices.Backward(e.own.List) {
			if s.Name.Name == name {
				return s, true
			}
		}
	}
	for _, s := range slices.Backward(e.inherited) {
		if s.Name.Name == name {
			return s, false
		}
	}
	return nil, false
}

// effective returns the value of a setting, "" if it is not set, and whether it is written on the endpoint itself.
func (e *endpoint) effective(name string) (value string, own bool) {
	s, own := e.setting(name)
	if s == nil {
		return "", false
	}
	return e.file.value(s), own
}

// fromGroups are the auth mode and the limit that an endpoint has from its groups: "auth session · 600/minute".
func (e *endpoint) fromGroups() string {
	if !e.exposed {
		return ""
	}
	var parts []string
	if auth, own := e.effective("auth"); !own {
		parts = append(parts, "auth "+cmp.Or(auth, "is missing"))
	}
	if rate, own := e.effective("rateLimit"); !own {
		parts = append(parts, cmp.Or(rate, "no limit"))
	}
	return strings.Join(parts, " · ")
}
