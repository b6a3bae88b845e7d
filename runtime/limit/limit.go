package limit

import (
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"runner.example/internal/caller"
)

// exact is the largest count that is kept as single time stamps.
const exact = 1000

// buckets is into how many parts the window of a larger count is cut.
const buckets = 240

// Spec is one declared limit: Count requests of one caller in any Per.
type Spec struct {
	// ID is the place of the declaration. Two limits with one Spec are one.
	ID    string
	Count int
	Per   time.Duration
	// By is "", "key", "user", "tenant", "ip" or "global": whose requests are
	// counted together.
	By string
}

// Limit is a Spec with its counters in a Limiter.
type Limit struct {
	spec Spec
	per  int64 // nanoseconds
	// bucket is the width of a bucket in nanoseconds, 0 for exact stamps.
	bucket int64
	// class is the place of this limit's lists in every shard.
	class int
	// salt spreads the limits of one caller over the shards.
	salt uint64
	// pools are of callers that are known by a key, user or tenant, and of addresses.
	pools [2]pool
	// policy and state are the texts before the parts that change.
	policy, state string
}

// pool is the callers of one limit that share a part of the memory. Known callers
// never share with addresses, of which anyone may have many.
type pool struct {
	limit *Limit
	// share is how many slots are for this pool alone, own how many of them are taken.
	share, own atomic.Int64
	// sketches count the callers for whom there was no slot, by shard, whose locks
	// guard them; nil where there are none.
	sketches [shards]*sketch
}

// poolOf gives the pool of a caller as AppendCaller names it.
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
	lim.policy = lim.state + ";q=" + strconv.Itoa(spec.Count) + ";w=" + strconv.FormatInt(seconds(lim.per), 10)
	return lim
}

// unit names a window as schemas do.
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

// entries is how many entries a ring of this limit can ever need: with
// buckets the one that is filling, one that is leaving, and all between.
func (lim *Limit) entries() int {
	if lim.bucket > 0 {
		return buckets + 2
	}
	return lim.spec.Count
}

// AppendCaller appends to dst the name under which this limit counts a
// request: what By says, and where the caller has none of it, as without By,
// the caller's identity. Names of different kinds are never equal.
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
// (draft-ietf-httpapi-ratelimit-headers) for the limits of uses.
func AppendPolicy(dst []byte, uses []Use) []byte {
	for i := range uses {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, uses[i].Limit.policy...)
	}
	return dst
}

// AppendState appends the value of a RateLimit header: for each limit what
// remains (r) and in how many seconds there will be more (t).
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

// RetryAfter tells in how many whole seconds, at least one, all the limits
// that refused will have room again.
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
