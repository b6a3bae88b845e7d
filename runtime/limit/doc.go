// Package limit counts requests exactly: no more than N of one caller in any
// window, and the Nth never refused early.
//
// Up to N = 1,000 a counter is a ring of time stamps. Above, it is a window of
// 240 buckets, which still never lets more than N through and may refuse one
// bucket's width too early. Refused requests are not counted. All counters
// have one memory bound; only a counter whose window is empty makes room for
// another, and callers that find none share one counter of their limit.
//
// The package is pure: it reads no clock, knows no HTTP and keeps nothing
// across a restart. Everything exported may be called by any number of
// goroutines; counters lie in shards, so that requests of different callers
// seldom wait for each other.
//
//	counter:  stamps  [ t3 | t4 | t5 | .. | t1 | t2 ]   a ring, oldest at head
//	          counts  [  7 |  9 |  1 | .. | 12 |  3 ]   with buckets only
package limit
