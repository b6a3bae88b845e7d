package jobs

import "runner.example/internal/fairqueue"

// owner is a tenant, or a part of the callers without one (callersOf). Owners share the slots of a node.
// callers is 0 for a tenant.
type owner struct {
	tenant  string
	callers byte
}

// share identifies the jobs of one owner and one name.
type share struct {
	owner owner
	name  string
}

// callersOf returns the part of the callers without a tenant that a job's caller belongs to. There may be
// any number of callers, and nodes keep the groups in memory, so a hash divides the callers.
func callersOf(c *Caller, scheduled bool) byte {
	switch {
	case scheduled:
		return hashOf("schedule")[0]
	case c.UserID != "":
		return hashOf("user", c.UserID)[0]
	case c.KeyID != "":
		return hashOf("key", c.KeyID)[0]
	default:
		return hashOf("other", c.Kind, c.As)[0]
	}
}

// A share alone, and an owner alone, can have so many times the slots that it leaves to others: three
// quarters and seven eighths of all slots.
const (
	timesOfShare = 3
	timesOfOwner = 7
)

// 1/slotsOfNames of the slots is kept for other names when the jobs of one name of all callers without a
// tenant have the rest.
const slotsOfNames = 16

// slots counts the slots of a node and their holders.
type slots struct {
	count int
	tally
}

// tally counts jobs by who they are of.
type tally struct {
	held   int // all
	owners map[owner]int
	shares map[share]int
	// noTenant are the jobs without a tenant, names the same by name.
	noTenant int
	names    map[string]int
}

func newTally() tally {
	return tally{owners: map[owner]int{}, shares: map[share]int{}, names: map[string]int{}}
}

func newSlots(count int) slots { return slots{count, newTally()} }

func (s *slots) free() int { return s.count - s.held }

// mayTake reports whether another job may run.
func (s *slots) mayTake(of share) bool {
	free := s.free()
	return fairqueue.ShareTimes(s.owners[of.owner], free, timesOfOwner) &&
		fairqueue.ShareTimes(s.shares[of], free, timesOfShare) &&
		(of.owner.tenant != "" || s.names[of.name] == 0 || free > s.count/slotsOfNames)
}

// add adds n to the jobs of a share.
func (t *tally) add(of share, n int) {
	t.held += n
	addTo(t.owners, of.owner, n)
	addTo(t.shares, of, n)
	if of.owner.tenant == "" {
		t.noTenant += n
		addTo(t.names, of.name, n)
	}
}

// addTo adds n to a count. Counts of 0 are not kept.
func addTo[K comparable](counts map[K]int, key K, n int) {
	if counts[key] += n; counts[key] == 0 {
		delete(counts, key)
	}
}
