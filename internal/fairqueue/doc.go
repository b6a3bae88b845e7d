// Package fairqueue hands out a fixed number of slots to claims that compete for them.
//
// A claim belongs to a group, such as a handler or an origin. The groups share the slots:
// each group leaves some slots to the others (Share), so a group with many claims delays
// only itself.
//
// A claim that waits does so for two parties, such as a handler and a caller. Parties take
// turns: the second waiter of a party comes after the first of each other party that waits.
// Within a turn waiters are served in the order in which they came, and holders that gave
// their slot back for a while before others.
//
//	turn        0  0  1  2  3  4        caller a has sent five requests before b sent one,
//	caller      a  b  a  a  a  a        which is served second
//
// Every wait ends: with a slot, with the caller's context, or after the caller's time
// limit.
//
// The package does not know what a slot stands for, and starts no goroutine.
package fairqueue
