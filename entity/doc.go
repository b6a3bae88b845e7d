// Package entity keeps rows that obey the schema and lets a caller touch exactly
// those that the schema lets it touch.
//
// # The path of an operation
//
//	Access.Do(op, JSON) ─► arguments   closed shape, every name and value checked
//	   │ authority                     what this caller may do with this entity
//	   │ plan                          the index for where + order, a range of its keys
//	   │ walk                          rows of that range: counted, decoded
//	   │ authority, then where         row by row
//	   ▼
//	read: rows written as JSON, up to the limit     write: checked whole, then buffered
//
// # What always holds
//
//   - Every operation passes through one authority; what it may not see is, for
//     it, not there: not found, not counted, not in the way of a filter. Keys of
//     rows and entries begin with the tenant, so that nothing done for one tenant
//     depends on the rows of another.
//   - A row and its index entries change together, and only in the transaction of
//     the caller. An operation that fails has changed nothing.
//   - A transaction reads the generation of the catalog. When the schema has
//     changed since the model was made, it fails with ErrOutdated and nothing was
//     done.
//   - Rows written before a field was added have, of that field, the value that
//     the catalog recorded when it was added.
//
// # What never happens here
//
// No network, no clock but the transaction's, no commit: a transaction belongs to
// whoever called. What is touched is bounded before it is done.
//
// # Goroutines and bytes
//
// A Model is immutable (but for indexes that become built) and for any number of
// goroutines; an Access is for one, within one transaction. Arguments are read
// during Do and not kept; a Result's JSON belongs to the caller.
package entity
