// Package watch finds the watches that a written key concerns. An Index has entries, each with keys and ranges of keys,
// and finds those with a given key in logarithmic time: keys are in a map, ranges in a balanced tree that knows the
// greatest end below each of its nodes.
//
// The package knows neither commits nor transactions.
package watch
