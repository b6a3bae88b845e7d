// Package limit counts requests exactly: no more than N of one caller in any
// window, and the Nth never refused early.
//
// Up to N = 1,000 a counter is a ring of time stamps. Above, it is a window of
// 240 buckets, which still never lets more than N through and may refuse one
// bucket's width too early. Refused requests are not counted.
//
// All counters share one memory limit, and only a counter whose window is empty is
// replaced by another. Half of the memory is divided between all limits, and for each
// limit between callers known by a key, user or tenant and addresses. The other half is
// shared. So many callers of one limit cannot take the memory of the others. Callers
// without a counter are counted in a count-min sketch of their limit and kind, whose
// count is never too low. If n such callers have used up the limit within 4/3 of a
// window, a new caller is refused with a probability of at most
//
//	(1 - e^(-n/w))^4
//
// where w is four times the counters, but at most 2^22. With k sketches in use at once
// each has a part of w, at least 1/2k of it. A count expires from a sketch up to a third
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
