// Package runtime serves an app: Serve answers its requests, and Activate replaces the
// active release while requests are served.
//
// An activation succeeds completely or changes nothing. What a release needs is compiled
// and bound before one pointer is swapped. A request in flight finishes on the release it
// began with, whose modules are closed after its last request.
//
// Nothing is computed per request that could be computed per release, and the memory of a
// request is pooled. The packages that are joined here do not know each other: results are
// passed on as plain values.
package runtime
