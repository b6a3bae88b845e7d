// Package tokenindex finds the key or session of a token in memory, by the HMAC of the token. It
// holds no token.
package tokenindex
