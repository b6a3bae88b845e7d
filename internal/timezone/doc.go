// Package timezone answers what the offset of a time zone is at an instant, and how long it
// holds. It uses the time zone data of the machine, and the data of Go where the machine has
// none.
//
// It accepts the names of the IANA time zone database only: no file of the machine and not
// the machine's own time zone.
package timezone
