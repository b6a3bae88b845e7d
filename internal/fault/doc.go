// Package fault names every way a request or a host call can fail: one closed
// list of codes, shared by HTTP answers, guests and logs.
//
// One table (outcome.go) says what others see of a code: the status of an HTTP answer, the errno
// of a guest, the exit status of a command. docs/fault-codes.md shows it. A fault carries three
// texts: Detail may leave the process, Hint is for operators alone, the cause is for the log.
package fault
