// Package runtime serves an app: Serve answers its requests, and Activate replaces the
// active bundle while requests are served.
//
// A Bundle is a schema, its modules and its secrets in memory. Once its modules are compiled and its routes
// bound to them it can be active. An activation succeeds completely or changes nothing: one pointer is
// swapped. A request in flight finishes on the bundle it began with, whose modules are closed after its last
// request.
//
// Nothing is computed per request that could be computed per activation, and the memory of a
// request is pooled. The packages that are joined here do not know each other: results are
// passed on as plain values.
package runtime
