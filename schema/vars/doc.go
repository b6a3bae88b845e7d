// Package vars reads the values of a schema's variables: the default that a declaration has, and
// the text that an operator has set. Both have the same syntax, except that strings and URLs
// have quotes only in a declaration. It shows no value in an error, since errors are logged.
package vars
