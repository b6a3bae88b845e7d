// Package settings reads runner.toml and the environment into the option structs of the
// packages.
//
// A package declares a setting as a field of its Options, with tags:
//
//	ReadTimeout time.Duration `toml:"front.read_timeout" default:"10s" min:"1ms" max:"1h"`
//
//	toml      section and key; the suffix ",not" is for a bool with the opposite meaning
//	default   the value as it is written in the file
//	min, max  the limits of a number, a size or a duration
//	unit      "size" for a number of bytes, written as 64kb
//	multiple  a size must be a multiple of this one
//	oneof     the accepted words, separated by |
//	nonempty  "true" if a text must not be empty
//	reload    "true" if a reload applies a new value
//
// The key, its default and its limits are written there and nowhere else. A package that
// makes a part calls FillZero for its own Options, once, when the part is made: so an option
// that is zero has the same default as a setting that is not in the file. A field with a
// default and without a key is no setting, and is filled in the same way. The comment of
// the field is the comment of the key in the generated runner.toml. Fields are strings,
// bools, integers, shares (a float64 from 0 to 1), durations, lists of strings or networks, or implement
// encoding.TextUnmarshaler. Two fields may have the same key: both are set.
//
// Errors are diagnostics with the place in the file or the name of the variable, all at
// once. A line of the file is never shown, because it may contain a secret.
package settings
