// Package python holds the SDK for handlers written in Python: the package runner, and the program that starts an app.
//
// It is Go only so far that it can be embedded, to be laid beside the handlers of an app.
package python
