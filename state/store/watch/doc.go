// Package watch finds the watches that a written key concerns. An Index has entries, each with keys and ranges of keys,
// and finds those with a given key in logarithmic time: keys are in a map, ranges in an interval tree.
//
// The package knows neither commits nor transactions.
package watch
