// Package codec reads and writes JSON exactly as encoding/json does, and faster. For each type
// it makes a plan once: how to read and write its values, with the offsets of their fields.
// Later no reflection is needed.
//
// A plan supports the types that handlers usually have. encoding/json reads and writes the
// other parts of a value: types with methods of their own, fields with the option string,
// arrays. If an input has an error or a duplicate member, the value is reset and
// encoding/json reads the whole text. So results and errors are those of encoding/json.
//
// Plans are made at the first use of a type, or by Prepare. All functions may be called from
// any goroutine.
package codec
