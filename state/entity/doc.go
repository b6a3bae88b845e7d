// Package entity runs operations on rows, and gives a caller exactly the rows and fields that
// the schema grants it.
//
// # The path of an operation
//
//	Access.Do(op, JSON) ─► query.ReadArguments   closed shape, every name and value checked
//	   │ query.Authority                         what this caller may do with this entity
//	   │ plan                                    the index for where + order, a range of its keys
//	   │ scan                                    rows of that range: counted, decoded
//	   │ authority, then where                   row by row
//	   ▼
//	read: rows written as JSON, up to the limit     write: checked completely, then buffered
//	   │ include                                 rows of relations, each with its own authority
//	   │ aggregate                               groups and totals instead of rows
//
// Three packages below it do the parts: layout (the bytes in the store), catalog (activation
// of schemas, index builds), query (arguments and authority).
//
// # Invariants
//
//   - Every operation passes through one authority. A row that the caller may not see is not
//     found, not counted, and does not affect a filter. Keys of rows and entries begin with
//     the tenant, so operations for one tenant do not depend on the rows of another.
//   - A row and its index entries change together, and only in the caller's transaction. An
//     operation that fails has changed nothing.
//   - A transaction reads the generation of the catalog. When the schema has changed since
//     the model was created, it fails with ErrOutdated, and nothing was done.
//   - Rows written before a field was added have, for that field, the value that the catalog
//     recorded when it was added.
//   - Fields that only another schema declares are not read, and stay in their rows: an update
//     carries them over.
//
// # What never happens here
//
// No network, no clock but the transaction's, no commit: the caller owns the transaction.
// Limits are checked before rows are touched.
//
// # Goroutines and bytes
//
// A Model is immutable except for indexes that become built, and safe for concurrent use. An
// Access is for one goroutine, within one transaction. Arguments are read during Do and not
// kept; the caller owns a Result's JSON.
package entity
