// Package c holds the SDK for handlers written in C and C++: one header, and one on
// top of it for C++.
//
// It is Go only so far that it can be embedded, for the runner to compile with.
package c
