// Package timezone returns the offset of a time zone at an instant, and the period in which
// it is valid. It uses the time zone data of the machine, and the data of Go where the
// machine has none.
//
// It accepts only the names of the IANA time zone database. It does not accept paths of
// files or the machine's own time zone.
package timezone
