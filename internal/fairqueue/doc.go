// Package fairqueue hands out a fixed number of slots to claims that compete for them.
//
// A claim belongs to a group, such as a handler or an origin. The groups share the slots:
// each group leaves some slots to the others (Share), so a group with many claims delays
// only itself.
//
// A claim that waits belongs to two parties, such as a handler and a caller. Waiters are served
// in rounds (round-robin): each waiting party has one waiter in a round, so the second waiter of
// a party comes after the first waiter of every other party. Within a round, waiters are served
// in the order in which they came. Holders that gave their slot back for a while come before the
// others of the round.
//
//	round       0  0  1  2  3  4        caller a has sent five requests before b sent one,
//	caller      a  b  a  a  a  a        which is served second
//
// Every wait ends: with a slot, with the caller's context, or after the caller's time
// limit.
//
// The package does not know what a slot stands for, and starts no goroutine.
package fairqueue
