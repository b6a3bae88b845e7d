// Package limit counts requests exactly: no more than N of one caller in any
// window, and the Nth never refused early.
//
// Up to N = 1,000 a counter is a ring of time stamps. Above, it is a window of
// 240 buckets, which still never lets more than N through and may refuse one
// bucket's width too early. Refused requests are not counted.
//
// All counters have one memory bound, and only a counter whose window is empty makes
// room for another. Half of the memory is divided between all limits, and for each
// between callers known by a key, user or tenant and addresses; the other half is for
// those that need more. So many callers of one limit leave the others theirs. Callers
// for whom there is no room are counted in a sketch of their limit and kind: upwards,
// never less than exactly. Of n such callers within 4/3 of a window, all of which
// have used up the limit, one that was never seen is refused with a probability of
// at most
//
//	(1 - e^(-n/w))^4
//
// where w is four times the counters, but no more than 2^22. With k sketches in use at
// once each has a part of w, at least 1/2k of it. A count leaves a sketch up to a third
// of a window late.
//
// The package is pure: it reads no clock, knows no HTTP and keeps nothing
// across a restart. Everything exported may be called by any number of
// goroutines; counters lie in shards, so that requests of different callers
// seldom wait for each other.
//
//	counter:  stamps  [ t3 | t4 | t5 | .. | t1 | t2 ]   a ring, oldest at head
//	          counts  [  7 |  9 |  1 | .. | 12 |  3 ]   with buckets only
package limit
