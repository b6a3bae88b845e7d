// Package collation has the data of the root collation of CLDR, by which texts are ordered where no language is given
// (UTS 10, UTS 35 part 5). It does not compare texts: a guest does, with the data of the characters that it meets.
//
// The data is made from ICU by gen. Weights are ranks: primary ones from 1, without gaps.
package collation
