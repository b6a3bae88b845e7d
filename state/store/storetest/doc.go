// Package storetest has what tests of other packages need to open several stores that share one
// log, as the nodes of a cluster do.
package storetest
