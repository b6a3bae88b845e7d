package schema

import (
	"time"

	"runner.example/internal/diag"
)

// Schema is a checked app description. It is immutable and safe for
// concurrent use.
type Schema struct {
	// App is the name of the `app` declaration, empty without one.
	App string
	// Typed reports that at least one entity is declared.
	Typed   bool
	APIKeys APIKeys
	// Secrets are the declared secret names, in order of declaration.
	Secrets []string
	// Routes are all routes with their effective settings, in order of
	// declaration.
	Routes []Route
}

// APIKeys holds the settings of the apiKeys block with its defaults filled in.
type APIKeys struct {
	// Prefix begins every token: "rnk" unless declared.
	Prefix string
	// DefaultLifetime and MaxLifetime are zero when not declared.
	DefaultLifetime, MaxLifetime time.Duration
	// MaxGrace bounds the grace period of a rotation: 30 days unless declared.
	MaxGrace time.Duration
	// MaxPerTenant is zero when not declared.
	MaxPerTenant int
	// Scopes are in order of declaration.
	Scopes []*Scope
}

// Scope is one access scope of the apiKeys block.
type Scope struct {
	Name string
	// System is the id given to @system: the stable identity of the capability.
	System     string
	AllTenants bool
	// Issue is nil when the scope has no @issue.
	Issue Expr
}

// Route is one HTTP route with the settings that hold for it.
type Route struct {
	Method string
	// Path is the whole template, prefixes joined: "/v1/orders/:id".
	Path    string
	Handler string
	Auth    Auth
	// Limits all hold; a request must pass every one of them.
	Limits []RateLimit
	// BodyBytes and Timeout are zero where the schema says nothing.
	BodyBytes int64
	Timeout   time.Duration
	// As names the scope whose grants an anonymous caller acts under.
	As  string
	Doc string
	// Span points at the route line.
	Span diag.Span
}

// Auth is a route's auth mode. Exactly the fields of the declared modes are
// set; anyOf sets several.
type Auth struct {
	None bool
	// Session accepts sessions; Roles (any of them) narrows it when not empty.
	Session bool
	Roles   []string
	// Scopes are those whose keys are accepted; empty: no API keys.
	Scopes []string
}

// RateLimit is one declared limit. Two routes under the same declaration
// share it, and so its counters.
type RateLimit struct {
	// ID is the same for all routes under one declaration: its place,
	// "orders.schema:83:42".
	ID    string
	Count int
	Per   time.Duration
	// By is "", "key", "user", "tenant", "ip" or "global"; empty counts per
	// key id, else per user id, else per client address.
	By string
}
