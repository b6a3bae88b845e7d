// Package leveltest compares the forms of what nodes share with those of their level, which are in testdata of
// the packages that write them.
package leveltest
