// Package clock has the two clocks of the runner. Nothing else reads the machine's.
//
// The calendar says which time it is: what is stored, what expires, and what guests see. An operator or a time
// server can set it, and it may go back. A part that needs it gets a Calendar with its options, so that a test
// chooses the date.
//
// The stopwatch says how much time has passed: deadlines, time limits, measurements. It never goes back, and it
// starts anew with the process. It is read with Mark and In. A test that needs one of its own runs in a bubble
// of testing/synctest.
package clock
