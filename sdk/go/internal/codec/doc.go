// Package codec reads and writes JSON exactly as encoding/json does, and faster. For each type
// it makes a plan once: the steps of its values with the offsets of their fields. Nothing of
// a plan is looked up by reflection later.
//
// A plan knows the types that handlers usually have. What it does not know (a type with
// methods of its own, a field with the option string, an array) is handed to encoding/json
// with the part of the text that it is for. On an input that is not plain (an error, a
// member that comes twice) the value is reset and encoding/json reads it all. So results and
// errors are those of encoding/json.
//
// Plans are made at the first use of a type, or by Prepare. All functions may be called from
// any goroutine.
package codec
