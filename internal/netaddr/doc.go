// Package netaddr says which IP addresses are public, private, or of no service at all, and checks ports.
// It never opens a connection.
package netaddr
