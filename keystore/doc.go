// Package keystore issues, verifies, rotates and revokes API keys, and stores
// nothing that it could leak: of a token it keeps an HMAC-SHA-256 under the
// pepper, a file outside the store and outside its backups.
//
// What always holds:
//
//   - A change of a key, its audit record and what follows from both are one
//     transaction of the caller's. The index in memory follows the store's log,
//     so a change counts for every Verify that begins after the transaction's
//     commit returned, and a change that was not committed never counts.
//   - Verify reads memory alone, takes no lock and allocates nothing. All its
//     failures are one error value; why, is for the log.
//   - A token is in memory only between its making and the answer that shows it.
//
// The store's keys of this room:
//
//	keystore/pepper                            check value of the pepper
//	keystore/key/<id>                          the key, JSON
//	keystore/tenant/<u16 length><tenant><id>   i64 end of the key's life in ms
//	keystore/use/<id>                          i64 last use in ms
//
// What belongs to one node is a file beside the store: the pepper (unless it is
// kept elsewhere) and clock, the latest wall time that this node has seen.
package keystore
