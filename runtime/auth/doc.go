// Package auth authenticates requests: it takes a request's credential and returns a caller
// or a refusal.
//
// The refusal is the same for every credential that is not valid. The log has the reason,
// and the audit has counts. After too many guesses from one address, more guesses get 429
// instead; a valid credential from there is not affected, nor is one that has only expired. Package auth decides only one
// question of authority: a key may use a route if the active schema gives it a scope that
// the route names.
//
// An Authenticator may be used by any number of goroutines. It does not read the store; Run
// writes there in the background. Of a credential only its prefix is kept or shown.
package auth
