// Package router finds the route of a request: method and raw path in, index
// of a route and its parameters out.
//
// It matches the bytes of the target as they came and never a decoded path, so
// that no proxy in front and no guest behind can read another route out of
// them. Who may take a route, and what it does, is decided elsewhere by the
// index found here.
//
// A Router is pure and never changes after New: any number of goroutines may
// use one. A Match belongs to one request at a time.
package router
