package limit

import (
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"runner.example/internal/caller"
)

// exact is the largest limit that is counted with one time stamp per request.
const exact = 1000

// buckets is the number of parts of the window of a larger limit.
const buckets = 240

// Spec is one declared limit: Count requests of one caller in any Per.
type Spec struct {
	// ID is the place of the declaration. Equal Specs are one limit.
	ID    string
	Count int
	Per   time.Duration
	// By is "", "key", "user", "tenant", "ip" or "global": which requests are counted
	// together.
	By string
}

// Limit is a Spec with its counters in a Limiter.
type Limit struct {
	limiter *Limiter
	spec    Spec
	per     int64 // nanoseconds
	// bucket is the width of a bucket in nanoseconds, 0 for exact stamps.
	bucket int64
	// class is the index of this limit's lists in every shard.
	class int
	// salt distributes the limits of one caller over the shards.
	salt uint64
	// pools are for callers known by a key, user or tenant, and for addresses.
	pools [2]pool
	// state and window are the constant parts of the header values.
	state, window string
}

// pool has the callers of one limit that share a part of the memory. Known callers never
// share with addresses, because one client may have many addresses.
type pool struct {
	limit *Limit
	// share is the number of slots reserved for this pool, own the number of them in use.
	share, own atomic.Int64
	// sketches count the callers without a slot, by shard, whose locks guard them; nil if
	// there are none.
	sketches [shards]*sketch
}

// poolOf returns the pool of a caller that AppendCaller named.
func (lim *Limit) poolOf(caller []byte) *pool {
	if len(caller) > 0 && caller[0] == 'a' {
		return &lim.pools[1]
	}
	return &lim.pools[0]
}

// newLimit compiles a spec.
func newLimit(spec Spec) *Limit {
	lim := &Limit{spec: spec, per: int64(spec.Per)}
	for i := range lim.pools {
		lim.pools[i].limit = lim
	}
	if spec.Count > exact {
		lim.bucket = (lim.per + buckets - 1) / buckets
	}
	name := strconv.Itoa(spec.Count) + "/" + unit(spec.Per)
	if spec.By != "" {
		name += " by " + spec.By
	}
	lim.state = strconv.Quote(name)
	lim.window = ";w=" + strconv.FormatInt(seconds(lim.per), 10)
	return lim
}

// unit returns the name of a window as schemas have it.
func unit(per time.Duration) string {
	switch per {
	case time.Second:
		return "second"
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	case 24 * time.Hour:
		return "day"
	}
	return per.String()
}

// entries returns the largest ring that this limit can need: with buckets, the one that is
// filling, the one that is leaving, and all between.
func (lim *Limit) entries() int {
	if lim.bucket > 0 {
		return buckets + 2
	}
	return lim.spec.Count
}

// AppendCaller appends to dst the name under which this limit counts a request: what By
// says. Without By, or if the caller has no such value, it is the caller's identity. Names
// of different kinds are never equal.
func (lim *Limit) AppendCaller(dst []byte, who *caller.Caller, address netip.Addr) []byte {
	switch {
	case lim.spec.By == "global":
		return dst
	case lim.spec.By == "tenant" && who.Tenant != "":
		return append(append(dst, 't'), who.Tenant...)
	case lim.spec.By == "user" && who.UserID != "":
		return append(append(dst, 'u'), who.UserID...)
	case lim.spec.By == "ip":
		return caller.AppendAddress(dst, address)
	}
	return who.AppendIdentity(dst, address)
}

// AppendPolicy appends the value of a RateLimit-Policy header
// (draft-ietf-httpapi-ratelimit-headers) for the limits of uses: for each limit the requests (q) that
// this node admits in so many seconds (w).
func AppendPolicy(dst []byte, uses []Use) []byte { return appendPolicy(dst, uses, (*Limit).count) }

// AppendWholePolicy is AppendPolicy for a node that has the whole of each limit.
func AppendWholePolicy(dst []byte, uses []Use) []byte {
	return appendPolicy(dst, uses, func(lim *Limit) int { return lim.spec.Count })
}

func appendPolicy(dst []byte, uses []Use, count func(*Limit) int) []byte {
	for i := range uses {
		lim := uses[i].Limit
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(append(dst, lim.state...), ";q="...)
		dst = strconv.AppendInt(dst, int64(count(lim)), 10)
		dst = append(dst, lim.window...)
	}
	return dst
}

// AppendState appends the value of a RateLimit header: for each limit the remaining
// requests (r) and the seconds until there are more (t).
func AppendState(dst []byte, uses []Use) []byte {
	for i := range uses {
		use := &uses[i]
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(append(dst, use.Limit.state...), ";r="...)
		dst = strconv.AppendInt(dst, int64(use.Remaining), 10)
		dst = append(dst, ";t="...)
		dst = strconv.AppendInt(dst, seconds(int64(use.Reset)), 10)
	}
	return dst
}

// RetryAfter returns the whole seconds, at least one, until all limits that refused admit a
// request again.
func RetryAfter(uses []Use) int {
	wait := int64(1)
	for i := range uses {
		if uses[i].Refused {
			wait = max(wait, seconds(int64(uses[i].Reset)))
		}
	}
	return int(wait)
}

// seconds rounds nanoseconds up.
func seconds(ns int64) int64 { return (ns + int64(time.Second) - 1) / int64(time.Second) }
