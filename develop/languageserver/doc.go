// Package languageserver is the language server of the schema language: editors start it and talk with
// it over the Language Server Protocol.
//
//	server.go       the connection, and what the server can do
//	document.go     open documents, positions
//	snapshot.go     the schema files of one app at one moment, parsed
//	index.go        what each name in them means
//	diagnostics.go  the check of an app while its files change
//	handlers.go     handlers in the sources of handlers/
//	others          one file for each feature
//
// Features read the syntax trees and the index, not the checked schema: they work while the text has
// errors. Diagnostics are those of Options.Check, which runs in the background.
//
// Invariants: messages are handled one after the other, in their order, so a request sees the text that
// its client had. A request that waits for the user continues beside the others. A snapshot is immutable.
// A panic in a message becomes an error answer and a log line. The server writes no files: changes are
// edits that the editor applies.
package languageserver
