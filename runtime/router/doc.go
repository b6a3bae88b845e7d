// Package router finds the route of a request: from method and raw path, the index of a
// route and its parameters.
//
// It matches the raw bytes of the target, never a decoded path, so that a proxy in front or
// a guest behind cannot see another route in them. Authority is decided elsewhere, by the
// index found here.
//
// A Router never changes after New: any number of goroutines may use one. A Match belongs
// to one request at a time.
package router
