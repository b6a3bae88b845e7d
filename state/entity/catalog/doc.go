// Package catalog keeps the record of which schema the stored rows follow, and changes it.
//
// # An activation
//
//	Activate ─► compare    the schema with the catalog: what is new, refused, or to be checked
//	   │ survey            reads the rows of one snapshot: required values, enums, duplicates
//	   │ build             entries of new unique indexes, and of relations that return
//	   │ catch up          rows written meanwhile, in rounds
//	   │ freeze            stops writers, if rows were checked, and adds the rest
//	   ▼ commit            catalog and generation, in one transaction
//
// BuildIndexes then builds the other indexes in small transactions beside those that serve.
//
// # Invariants
//
//   - The catalog and its generation change in one transaction. A transaction that reads the
//     generation of another schema fails with ErrOutdated, or conflicts.
//   - The number of a table, a field or an index is never assigned twice.
//   - An activation that fails or is interrupted leaves nothing but marks, which the next one
//     removes.
//   - An index is read only by snapshots of a commit at which every row has its entry.
//
// Activations of one store must not run at the same time; everything else may run beside
// them.
package catalog
