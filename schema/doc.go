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
// The model reads values and decides about rows: a Type reads and writes the
// JSON of a field's Value (Parse, AppendJSON) and an ObjectType checks a whole
// body (Check); a Rule, with its names resolved when it was compiled, is true,
// false or unknown of a Scene (Eval). There is one evaluator, for policies,
// grants and @issue alike.
//
// What always holds: every mistake of an app is reported at once, each at the
// place to repair and none as the echo of another; a Schema is immutable and
// safe for concurrent use; what Format returns means what it was given and
// keeps its comments; nesting is bounded, so walking a tree cannot overflow the
// stack; a Value is immutable and numbers of all kinds compare exactly; JSON from
// outside that repeats a member, is no UTF-8 or nests more than 64 deep is
// refused. What never happens here: network, clocks, requests. Load alone reads
// files.
package schema
