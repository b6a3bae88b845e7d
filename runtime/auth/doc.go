// Package auth finds out who calls: a request's credential in, a caller or a
// refusal out.
//
// Whatever is wrong with a credential, the refusal is one and the same; what
// it was goes to the log, and as counts to the audit. Who fails too often from
// one address is told to wait instead, which changes nothing for a good
// credential from there. What a caller may do is decided elsewhere, but for
// this: a key opens a route only when the active schema gives it a scope that
// the route names.
//
// An Authenticator may be used by any number of goroutines. It reads nothing
// from the store; Run writes there, in the background. No credential is kept
// or shown, not even in part but for its prefix.
package auth
