// Package connlimit limits the connections of a listener: all of them, and those of one address.
package connlimit
