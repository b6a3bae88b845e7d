// Package symbols names the places at which a handler failed: the active functions with
// their files and lines.
package symbols
