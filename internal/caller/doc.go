// Package caller describes who calls: what authentication found out and what
// authority is decided from. It decides nothing itself.
package caller
