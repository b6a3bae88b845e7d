// Package schema is the model of an app: its routes, functions, types, entities, API key
// scopes, and the rules that decide who may access which rows. Package schema/compiler
// builds a Schema from schema files.
//
// A Type reads and writes the JSON of a field's Value (Parse, AppendJSON). An ObjectType
// checks the JSON of a whole request body (Check). A Rule evaluates to true, false or
// unknown for a Scene (Eval). Policies, grants, @issue and @manage share this evaluator.
//
// Invariants: a Schema is immutable after it was built and safe for concurrent use. A
// Value is immutable. Numbers of all kinds compare exactly. JSON input is rejected if it
// repeats an object member, is not valid UTF-8 or nests more than 64 levels deep. The
// package does not read files, and does not use the network or the clock.
package schema
