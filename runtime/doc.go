// Package runtime serves an app: Serve is the corridor that every request
// walks, Activate puts a checked app in place under traffic.
//
// An activation is all or nothing. What a release needs is compiled and bound
// before one pointer is swapped; a request in flight finishes on the release it
// began with, whose modules are closed when the last one has left.
//
// Nothing is computed per request that could be computed per release, and what
// a request needs for itself is pooled. The rooms that are joined here do not
// know each other: what one finds out is handed to the next in plain values.
package runtime
