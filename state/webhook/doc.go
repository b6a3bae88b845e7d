// Package webhook verifies the signatures of webhook deliveries, and records which
// deliveries were handled.
//
// # Invariants
//
//   - A signature covers the exact bytes of the body.
//   - Signatures are compared in constant time.
//   - An empty secret is refused.
//   - A delivery is handled only when the transaction of its request is committed. So a
//     sender can repeat a delivery whose request failed.
//
// # Keys in the store
//
// A delivery is the first 16 bytes of the SHA-256 of its route and its id:
//
//	webhook/handled/<delivery>                  i64 end of the record, in ms
//	webhook/until/<i64 end, in ms><delivery>    empty; Sweep scans these
package webhook
