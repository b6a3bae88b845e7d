// Package keystore issues, verifies, rotates and revokes API keys and sessions,
// and stores nothing that it could leak: of a token or a session's cookie it
// keeps an HMAC-SHA-256 under the pepper, or under a key derived from it, and the
// pepper is a file outside the store and outside its backups.
//
// What always holds:
//
//   - A change of a key or a session, its audit record and what follows from both
//     are one transaction of the caller's. The indexes in memory follow the
//     store's log, so a change counts for every Verify and VerifySession that
//     begins after the transaction's commit returned, and a change that was not
//     committed never counts.
//   - Verify and VerifySession read memory alone, allocate nothing for what is good,
//     and take a lock only when the wall clock has just jumped. All their failures
//     are one error value; why, is for the log.
//   - A token or cookie is in memory only between its making and the answer that
//     shows it. Neither is ever good in the other's place.
//
// The store's keys of this room:
//
//	keystore/pepper                            check value of the pepper
//	keystore/key/<id>                          the key, JSON
//	keystore/tenant/<u16 length><tenant><id>   i64 end of the key's life in ms
//	keystore/dead/<u16 length><tenant><id>     the same of a revoked or expired key
//	keystore/count/<tenant>                    i64 number of keys that maxPerTenant counts
//	keystore/session/<id>                      the session, JSON
//	keystore/use/<id>                          i64 last use of a key or session in ms
//
// A session is deleted a day after its end, a key DefaultKeepDead or what Options say
// after it was revoked or expired. Until then memory holds its id, its end
// and the hashes of its tokens, so that the log can say why they are refused.
//
// What belongs to one node is a file beside the store: the pepper (unless it is
// kept elsewhere) and clock, the time that credentials are checked against; its rules
// are at the type clock.
package keystore
