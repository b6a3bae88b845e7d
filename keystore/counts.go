package keystore

import "github.com/oklog/ulid/v2"

// Counts are numbers of keys and of sessions by state. A rotating key counts as active.
type Counts struct{ Keys, Sessions map[Status]int }

// Counts counts the keys and sessions in memory, including expired and revoked ones that are
// still kept. Its time is proportional to their number; it does not delay verification.
func (k *Keystore) Counts() Counts {
	now := k.clock.Now()
	c := Counts{
		Keys:     map[Status]int{Active: 0, Disabled: 0, Expired: 0, Revoked: 0},
		Sessions: map[Status]int{Active: 0, Expired: 0, Revoked: 0},
	}
	state := func(revoked, ended, disabled bool) Status {
		switch {
		case revoked:
			return Revoked
		case ended:
			return Expired
		case disabled:
			return Disabled
		}
		return Active
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, known := range k.keys {
		if e := known.entry; e != nil {
			c.Keys[state(e.revoked != 0, now >= e.expires, e.refused != "")]++
		}
	}
	dead := map[ulid.ULID]bool{} // a key has several tokens
	k.dead.Each(func(d *deadKey) {
		if !dead[d.id] {
			dead[d.id] = true
			c.Keys[state(d.revoked, true, false)]++
		}
	})
	for _, known := range k.sessions {
		if e := known.entry; e != nil {
			c.Sessions[state(e.revoked != 0, now >= e.end(), false)]++
		}
	}
	return c
}
