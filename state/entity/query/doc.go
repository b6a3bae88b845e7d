// Package query reads the arguments of operations on rows, and decides what a caller may do.
//
// ReadArguments checks the shape of the JSON: closed, without repeated members, of limited
// depth. Authority is what one caller may do with one entity: it resolves names, so that a
// field that the caller may not read does not exist for it. The result is a Query, whose
// conditions and order are evaluated on rows in memory, or an Input with the values to write.
//
// Rights are compiled once for each entity of a schema; they are immutable and safe for
// concurrent use. An Authority and a Query belong to one goroutine and one transaction.
//
// The package reads no row from the store: rules that look up other rows do it through
// schema.RuleInput.
package query
