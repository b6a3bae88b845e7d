package keystore

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"runner.example/internal/secret"
	"runner.example/keystore/tokenindex"
	"runner.example/state/store"
)

const (
	// platformPrefix begins every token of a platform key; its form is that of all tokens.
	platformPrefix = "rnp"
	// platformIDs is the prefix of ids.
	platformIDs = "pkey_"
)

// Role says what a platform key may do on a node.
type Role string

// The roles. Each may do what the one before it may.
const (
	RoleRead   Role = "read"   // see the state of the node and its releases
	RoleDeploy Role = "deploy" // send and activate releases
	RoleAdmin  Role = "admin"  // everything that an operator may
)

// Roles are all roles, the weakest first.
func Roles() []Role { return []Role{RoleRead, RoleDeploy, RoleAdmin} }

// Allows reports whether a key with the role r may do what needs the role needed.
func (r Role) Allows(needed Role) bool {
	all := Roles()
	have, need := slices.Index(all, r), slices.Index(all, needed)
	return need >= 0 && have >= need
}

// PlatformKey is a key for operating a node over the network. It belongs to the node: it needs no
// schema, and no route accepts it. In JSON, times are RFC 3339 in UTC with milliseconds, and those
// that are not set are null; token is left out except in the results of Create and Rotate.
type PlatformKey struct {
	ID   string
	Name string
	Role Role
	// Status is Active, Rotating, Expired or Revoked.
	Status Status
	// Hint is the newest token's prefix and last four characters.
	Hint string
	Times
	Token secret.Token
}

// platformJSON is a PlatformKey's JSON form.
type platformJSON struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Role   Role   `json:"role"`
	Status Status `json:"status"`
	Hint   string `json:"hint"`
	timesJSON
	Token string `json:"token,omitempty"`
}

// MarshalJSON encodes the key and, if it is set, its token: only the operator that created or
// rotated the key may get it.
func (p PlatformKey) MarshalJSON() ([]byte, error) {
	return json.Marshal(platformJSON{
		p.ID, p.Name, p.Role, p.Status, p.Hint, p.Times.toJSON(), p.Token.Reveal(),
	})
}

// JSONForm returns the zero value of what MarshalJSON encodes.
func (PlatformKey) JSONForm() []any { return []any{platformJSON{}} }

// UnmarshalJSON decodes what MarshalJSON encoded.
func (p *PlatformKey) UnmarshalJSON(data []byte) error {
	var j platformJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*p = PlatformKey{
		ID: j.ID, Name: j.Name, Role: j.Role, Status: j.Status, Hint: j.Hint,
		Times: j.times(),
	}
	if j.Token != "" {
		p.Token = secret.NewToken(j.Token)
	}
	return nil
}

// PlatformIdentity is the platform key that a token belongs to.
type PlatformIdentity struct {
	ID   string
	Role Role
	// Refused is empty for a valid token. For another it is the reason, and of the fields
	// above only ID may be set.
	Refused Reason
}

// PlatformKeys are the platform keys of a Keystore. They have an index and an HMAC key of their
// own, so that the token of one is never valid as an API key or a cookie, nor one of those here.
type PlatformKeys struct {
	of    *Keystore // its lock guards known, and changes of index
	macs  *macs
	index *tokenindex.Index[platformEntry]
	known map[string]*knownPlatformKey
}

// knownPlatformKey is one platform key in the index.
type knownPlatformKey struct {
	version store.Seq
	macs    [][sha256.Size]byte
	entry   *platformEntry // nil if the record cannot be read
}

// platformEntry is what Verify needs of a platform key. It is immutable.
type platformEntry struct {
	identity PlatformIdentity
	expires  int64 // ms
	revoked  int64 // ms, 0: it is not
	use      *use
}

func newPlatformKeys(k *Keystore) *PlatformKeys {
	key := k.Derive("platform keys")
	return &PlatformKeys{
		of: k, macs: newMACs(key[:]), index: tokenindex.New[platformEntry](), known: map[string]*knownPlatformKey{},
	}
}

// Verify returns the key that the token belongs to, or ErrInvalidToken with the reason in the
// identity. It records the use. It neither keeps nor changes token, reads only memory, and may be
// called by any goroutine.
func (p *PlatformKeys) Verify(token []byte) (PlatformIdentity, error) {
	if !ValidToken(token) {
		return PlatformIdentity{Refused: Malformed}, ErrInvalidToken
	}
	n := p.index.Find(p.macs.of(token))
	if n == nil {
		return PlatformIdentity{Refused: Unknown}, ErrInvalidToken
	}
	now, latest := p.of.clock.Read()
	if reason := n.Of.refusedAt(latest, n.Until); reason != "" {
		return PlatformIdentity{ID: n.Of.identity.ID, Refused: reason}, ErrInvalidToken
	}
	p.of.uses.touch(n.Of.use, now)
	return n.Of.identity, nil
}

// refusedAt says why a token of the key that is valid up to until is refused at now.
func (e *platformEntry) refusedAt(now, until int64) Reason {
	switch {
	case e.revoked != 0:
		return KeyRevoked
	case now >= e.expires:
		return KeyExpired
	case now >= until:
		return GraceOver
	}
	return ""
}

// follow takes over a record that the store has or is about to make readable.
func (p *PlatformKeys) follow(version store.Seq, id string, value []byte) error {
	r, err := decodePlatform(value)
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	old := p.known[id]
	if old != nil && version < old.version {
		return nil
	}
	next := &knownPlatformKey{version: version}
	if err == nil {
		next.entry = &platformEntry{
			identity: PlatformIdentity{ID: r.ID, Role: r.Role},
			expires:  orEndless(r.Expires), revoked: r.Revoked, use: p.of.useLocked(r.ID),
		}
		for _, t := range r.tokens() {
			mac := [sha256.Size]byte(t.MAC)
			p.index.Put(mac, orEndless(t.Until), next.entry)
			next.macs = append(next.macs, mac)
		}
	}
	p.removeLocked(old, next.macs)
	p.known[id] = next
	if err != nil {
		return fmt.Errorf("read platform key %s: %w", id, err)
	}
	return nil
}

// remove removes a key whose record was deleted.
func (p *PlatformKeys) remove(id string) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.removeLocked(p.known[id], nil)
	delete(p.known, id)
	delete(p.of.useOf, id)
}

// removeLocked removes the tokens of a key, which may be nil, except those that are kept.
func (p *PlatformKeys) removeLocked(old *knownPlatformKey, kept [][sha256.Size]byte) {
	if old == nil {
		return
	}
	for _, mac := range old.macs {
		if !slices.Contains(kept, mac) {
			p.index.Remove(mac)
		}
	}
}

// sweep deletes the keys that ended before a time, in ms, with an audit record.
func (p *PlatformKeys) sweep(ctx context.Context, before int64) error {
	ended := p.endedBefore(before)
	if len(ended) == 0 {
		return nil
	}
	_, err := p.of.store.UpdateAsOwner(ctx, func(tx *store.Tx) error {
		deleted := 0
		for _, id := range ended {
			r, err := readPlatform(tx, id)
			if errors.Is(err, store.ErrNotFound) || err == nil && r.end() >= before { // revoked after it expired
				continue
			}
			if err == nil {
				err = errors.Join(tx.Delete(platformKeyOf(id)), tx.Delete(useKeyOf(id)))
			}
			if err != nil {
				return err
			}
			deleted++
		}
		return recordSweep(tx, "platformKeys.sweep", before, deleted)
	})
	if err != nil {
		return fmt.Errorf("delete platform keys: %w", err)
	}
	return nil
}

func (p *PlatformKeys) endedBefore(ms int64) (ids []string) {
	p.of.mu.RLock()
	defer p.of.mu.RUnlock()
	for id, known := range p.known {
		if e := known.entry; e != nil && (e.revoked != 0 && e.revoked < ms || e.revoked == 0 && e.expires < ms) {
			ids = append(ids, id)
		}
	}
	return ids
}
