// Package fileinfo finds the name and the type of a file that a client or a handler has made.
//
// A name is text for people: Name makes it one element without control characters, and the runner never makes a path
// of it. The type is that of the bytes: Type does not believe what the maker has declared.
package fileinfo
