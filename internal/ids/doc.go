// Package ids makes ids: ULIDs in lower case, whose order is that of their times, to the millisecond.
//
// New never fails. The random bytes are those of crypto/rand, which ends the process rather than
// fail; a time that a ULID cannot hold, before 1970 or after 10889, is replaced by the nearest that it
// can. Two ids of one millisecond come in any order, except for those of one Sequence.
package ids
