// Package schema parses, checks, prints and evaluates the schema language: the
// text in which an app declares its routes, the scopes of its API keys, its
// entities and who may touch them.
//
// A text goes through three forms. Parse turns the bytes of one file into a
// tree (File), whatever the bytes, and reports every mistake of letters and
// grammar. Compile checks all files of an app together, names included, and
// makes the model (Schema) that the rest of the house works with. Format prints
// a file in its one canonical form.
//
// What always holds: every mistake of an app is reported at once, each at the
// place to repair and none as the echo of another; a Schema is immutable and
// safe for concurrent use; what Format returns means what it was given and
// keeps its comments; nesting is bounded, so walking a tree cannot overflow the
// stack. What never happens here: network, clocks, requests. Load alone reads
// files.
package schema
