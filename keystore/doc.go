// Package keystore issues, verifies, rotates and revokes API keys, sessions, and the platform
// keys of operators. It stores nothing that it could leak: of a token or a session's cookie it
// keeps an HMAC-SHA-256 under the pepper, or under a key derived from it. The
// pepper is a file outside the store and its backups.
//
// Invariants:
//
//   - A change of a key or a session, its audit record and all that follows from it
//     are in one transaction, the caller's. The indexes in memory follow the store's
//     log: a change applies to every Verify and VerifySession that begins after the
//     commit returned, and an uncommitted change never applies.
//   - Verify and VerifySession read only memory, do not allocate for a valid
//     credential, and take a lock only when the wall clock has just jumped. All their
//     failures are one error value; the reason is for the log.
//   - A token or cookie is in memory only from its creation to the response that shows
//     it. A token is never valid as a cookie, nor a cookie as a token. The token of a platform
//     key is valid as neither: each kind has an index and an HMAC key of its own.
//
// Keys in the store:
//
//	keystore/pepper                            check value of the pepper
//	keystore/key/<id>                          the key, JSON
//	keystore/tenant/<u16 length><tenant><id>   i64 end of the key's lifetime in ms
//	keystore/dead/<u16 length><tenant><id>     the same for a revoked or expired key
//	keystore/owner/<u16 length><tenant><'u' or 'k'><u16 length><owner><id>
//	                                           the same for a live key with an owner
//	keystore/count/<tenant>                    i64 number of keys that maxPerTenant counts
//	keystore/session/<id>                      the session, JSON
//	keystore/user/<u16 length><user><u16 length><tenant><1, revoked: 0><id>
//	                                           empty: the sessions of a user
//	keystore/platform/<id>                     the platform key, JSON
//	keystore/use/<id>                          i64 last use of a key, session or platform key in ms
//
// A session is deleted a day after its end, a key or platform key Options.KeepDead after it was revoked
// or expired. Until then its id, its end and the hashes of its tokens stay in memory, so
// that the log can say why they are refused.
//
// Two files in the data directory belong to one node: the pepper (unless it is kept
// elsewhere) and the clock file of package credtime.
package keystore
