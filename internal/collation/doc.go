// Package collation has the data of the root collation of CLDR: the order of texts if no language is given
// (UTS 10, UTS 35 part 5). It does not compare texts. A guest compares them, and asks for the data of the characters
// that it needs.
//
// The command gen generates the data from ICU. Weights are ranks. Primary ranks begin at 1 and have no gaps.
package collation
