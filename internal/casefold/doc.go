// Package casefold makes texts equal that differ only in the case of their letters, by the
// case folding of Unicode. It does not normalize: é as one code point and as e with an accent
// stay different.
package casefold
