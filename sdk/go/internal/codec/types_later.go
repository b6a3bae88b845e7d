//go:build wasip1 && go1.27

package codec

// PrepareAll does nothing: the list of a program's types was not tested with this release
// of Go. Plans are made at their first use.
func PrepareAll() {}
