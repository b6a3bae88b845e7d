// Package credtime gives the credential time: the time that credentials are created with
// and checked against. It follows the wall clock only as far as that is plausible, so that
// a clock that is set to another date neither ends credentials nor revives expired ones.
//
// The rules are at the type Clock. Times are milliseconds since 1970.
package credtime
