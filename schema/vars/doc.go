// Package vars reads the values of a schema's variables: the default that a declaration has, and
// the text that an operator has set. Both are written in the same way; only strings and URLs are
// set without quotes. It shows no value in an error, since errors are logged.
package vars
