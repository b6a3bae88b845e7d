// Package pbkdf2 derives keys from passwords (RFC 8018, section 5.2), as crypto/pbkdf2 does.
// Unlike that package it counts its work on a cost.Meter, so a derivation with many
// iterations yields to other requests and ends with its own.
package pbkdf2
