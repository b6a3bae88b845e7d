// Package secret holds values that must not be seen: whatever prints one shows
// "…", and only Reveal gives the value itself, so that every place that does
// so can be found by that name.
//
// It also knows where the secrets that a schema declares are read from, and
// writes a new credential to a File. No error of it holds a value.
package secret
