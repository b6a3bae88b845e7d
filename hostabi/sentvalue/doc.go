// Package sentvalue finds out whether a client has sent a value: in the path, the query, or the
// body of its request.
package sentvalue
