// Package webhook knows how senders sign what they deliver, and which deliveries
// were handled.
//
// What always holds: the signature is over the exact bytes of the body; all
// comparisons take the same time wherever they differ; an empty secret signs
// nothing; a delivery counts as handled only by the commit of the request that
// handled it, so that one whose handling failed may come again.
//
// The store's keys of this room; a delivery is the first 16 bytes of the SHA-256 of
// its route and its id:
//
//	webhook/handled/<delivery>                i64 until when that is known, in ms
//	webhook/until/<i64 until, in ms><delivery>  empty; what Sweep walks over
package webhook
