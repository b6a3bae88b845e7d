// Package owner says which user can change a file. On Windows that is in access lists, which it does not read: the
// directories of a user's profile are the user's alone.
package owner
