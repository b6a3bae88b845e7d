// Package audit keeps what was changed by whom: one record per change, written
// in the transaction of the change, so that what cannot be recorded is not done.
//
// The records' order is that of the store's log: by the version that committed
// a record, and within one version by key. Over the records in this order runs a
// SHA-256 chain:
//
//	head(0) = 32 zero bytes
//	head(n) = SHA-256( head(n-1) ‖ u32 length of key ‖ key ‖ SHA-256(value) )
//
// so a head that was written down somewhere else proves every record up to it.
// Appending a record reads nothing that appending another writes, so unrelated changes do
// not conflict. A Log seals records soon after: it moves them, in the chain's order, to
// keys that are their numbers, together with the head after each. So the time to open a
// log or to list records does not grow with their number. Verifying computes all heads
// again. In a cluster all nodes have the same chain, and the owner seals.
//
// A record never holds a token or a body.
package audit
