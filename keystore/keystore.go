package keystore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/settings"
	"runner.example/keystore/credtime"
	"runner.example/keystore/tokenindex"
	"runner.example/state/store"
)

// Options configure a Keystore. The zero value keeps everything in memory, the pepper
// too: for a store that is itself in memory.
type Options struct {
	// Dir is the data directory, which must exist. It holds the clock file and, unless
	// PepperFile is set, the pepper file.
	Dir string
	// PepperFile is the path of the pepper, under which tokens are hashed; empty: the file
	// "pepper" in the data directory. A relative path starts from the app directory. The
	// file is created for a new store with mode 0600. Do not put it into a backup of the
	// data directory.
	PepperFile string `toml:"keystore.pepper_file"`
	// Machine is the source of time; the zero value is the kernel.
	Machine credtime.Machine
	// KeepDead is how long a revoked or expired key is kept for listing before it is
	// deleted.
	KeepDead time.Duration `toml:"keystore.keep_dead" default:"90d" min:"1h" max:"36500d"`
	// Logger gets what cannot be returned as an error; nil: it is discarded.
	Logger *slog.Logger
}

// PepperPath is the path of the pepper file; empty for a store in memory.
func (o Options) PepperPath() string {
	if o.PepperFile != "" || o.Dir == "" {
		return o.PepperFile
	}
	return filepath.Join(o.Dir, "pepper")
}

func (o Options) clockPath() string {
	if o.Dir == "" {
		return ""
	}
	return filepath.Join(o.Dir, "clock")
}

// ErrInvalidToken is the one answer to every token that is not valid, for any reason.
var ErrInvalidToken error = fault.New(fault.InvalidToken, "the credential is not valid")

// Reason says why a token was refused. It is for the log, never for a response.
type Reason string

// The reasons to refuse a token of a key or a session.
const (
	Malformed  Reason = "malformed" // its form or checksum
	Unknown    Reason = "unknown"   // no key or session has it
	KeyExpired Reason = "expired"
	KeyRevoked Reason = "revoked"
	KeyOff     Reason = "disabled"
	GraceOver  Reason = "grace_over" // an old token of a rotated key
	Idle       Reason = "idle"       // a session that was not used for too long
)

// Identity is the key that a token belongs to. Its permissions follow from the active
// schema: the key has only the names.
type Identity struct {
	ID         string
	Scope      string
	Capability string
	Tenant     string
	// Metadata is the key's JSON object, nil without one. It is shared and must not be
	// changed.
	Metadata json.RawMessage
	// Refused is empty for a valid token. For another it is the reason, and of the
	// fields above only ID may be set.
	Refused Reason
}

// Keystore has the keys, sessions and platform keys of one store. It is safe for concurrent use; a method
// that takes a transaction is called by the goroutine that owns it.
type Keystore struct {
	store  *store.Store
	logger *slog.Logger
	pepper []byte
	macs   *macs
	clock  *credtime.Clock
	index  *tokenindex.Index[entry]
	dead   *tokenindex.Index[deadKey] // tokens of revoked and expired keys, which are not in index
	epoch  atomic.Uint64
	uses   uses

	sessionMACs  *macs
	sessionIndex *tokenindex.Index[sessionEntry]

	// Platform are the platform keys.
	Platform *PlatformKeys

	mu       sync.RWMutex // guards the fields below, and changes of the indexes
	keys     map[string]*known
	sessions map[string]*knownSession
	// unindexed has the ids of sessions without an entry in the index by user, by user.
	unindexed map[string]map[string]bool
	useOf     map[string]*use // by the id of a key or session
	unlisted  map[string]bool // the ids of live keys that may be missing in the list of their owner
	unhook    func()

	// warnedScopes has the schema for which logNoIssueRule has logged, by the name of the scope.
	warnedScopes sync.Map

	upkeep upkeep
}

// upkeep is the state of the background task.
type upkeep struct {
	stop func()
	done chan struct{}

	mu       sync.Mutex // one run at a time
	keepDead time.Duration
	// unmoved are expired keys that are still in the lists of their tenants. It is complete if listed
	// is true, and used only by the owner of a cluster.
	unmoved []string
	listed  bool
}

// known is one key in the index.
type known struct {
	version store.Seq
	macs    [][sha256.Size]byte
	entry   *entry // nil if the record cannot be read
}

// entry is what Verify needs of a key. It is immutable.
type entry struct {
	identity Identity
	expires  int64  // ms
	revoked  int64  // ms, 0: it is not
	refused  Reason // "" unless the key is revoked or disabled
	use      *use
}

// Open reads all keys of st into memory and follows the store until Close. If the pepper
// file cannot be used, or is not the one that this store was created with, the fault is
// Invalid and its text names the file.
func Open(ctx context.Context, st *store.Store, opt Options) (*Keystore, error) {
	settings.FillZero(&opt)
	pepper, err := openPepper(ctx, st, opt)
	if err != nil {
		return nil, err
	}
	return open(ctx, st, opt, pepper)
}

// Fork is Open for a fork of the keystore's store, which has the same pepper, with another source of time.
func (k *Keystore) Fork(ctx context.Context, st *store.Store, machine credtime.Machine) (*Keystore, error) {
	return open(ctx, st, Options{Machine: machine, KeepDead: k.upkeep.keepDead, Logger: k.logger}, k.pepper)
}

func open(ctx context.Context, st *store.Store, opt Options, pepper []byte) (*Keystore, error) {
	logger := cmp.Or(opt.Logger, slog.New(slog.DiscardHandler))
	clock, err := credtime.Open(opt.clockPath(), opt.Machine, logger)
	if err != nil {
		return nil, err
	}
	k := &Keystore{
		store: st, logger: logger, pepper: pepper, macs: newMACs(pepper), clock: clock, index: tokenindex.New[entry](),
		dead: tokenindex.New[deadKey](), sessionIndex: tokenindex.New[sessionEntry](),
		keys: map[string]*known{}, sessions: map[string]*knownSession{}, unindexed: map[string]map[string]bool{},
		useOf: map[string]*use{}, unlisted: map[string]bool{},
		upkeep: upkeep{keepDead: opt.KeepDead, done: make(chan struct{})},
	}
	sessionKey := k.Derive("sessions")
	k.sessionMACs = newMACs(sessionKey[:])
	k.Platform = newPlatformKeys(k)
	// Follow first, then read: a commit in between is seen twice, and its version shows
	// which is newer.
	k.unhook = st.OnApply([]byte(prefixAll), k.apply)
	if err := k.load(ctx); err != nil {
		k.unhook()
		return nil, err
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	k.upkeep.stop = stop
	go k.runUpkeep(background)
	return k, nil
}

// Close stops following the store and writes pending last uses and the clock file. The
// store must still be open. A node that is cut off from its cluster, or whose disk is full, cannot write them: that
// is logged, and no error.
func (k *Keystore) Close() error {
	k.upkeep.stop()
	<-k.upkeep.done
	k.unhook()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := k.writePending(ctx)
	if store.IsFull(err) || k.store.InCluster() && fault.CodeOf(err) == fault.Unavailable {
		k.logger.Warn("last uses or clock file not written", "cause", err)
		return nil
	}
	return err
}

// Verify returns the key that the token belongs to, or ErrInvalidToken with the
// reason in the Identity. It records the use. It neither keeps nor changes token.
func (k *Keystore) Verify(token []byte) (Identity, error) {
	if len(token) > maxTokenLen {
		return Identity{Refused: Malformed}, ErrInvalidToken
	}
	mac := k.macs.of(token)
	n := k.index.Find(mac)
	if n == nil {
		if !ValidToken(token) { // no key has such a token, so it is checked last
			return Identity{Refused: Malformed}, ErrInvalidToken
		}
		return deadIdentity(k.dead, mac), ErrInvalidToken
	}
	now, latest := k.clock.Read()
	if reason := n.Of.refusedAt(latest, n.Until); reason != "" {
		return Identity{ID: n.Of.identity.ID, Refused: reason}, ErrInvalidToken
	}
	k.uses.touch(n.Of.use, now)
	return n.Of.identity, nil
}

// refusedAt says why a token of the key that is valid up to until is refused at now.
func (e *entry) refusedAt(now, until int64) Reason {
	switch {
	case e.refused == KeyRevoked:
		return KeyRevoked
	case now >= e.expires:
		return KeyExpired
	case e.refused != "":
		return e.refused
	case now >= until:
		return GraceOver
	}
	return ""
}

// Now returns the credential time, which advances independently of jumps of the wall
// clock.
func (k *Keystore) Now() time.Time { return timeOf(k.clock.Now()) }

// Ready says why this node must not get requests: its clock is quarantined. It returns nil
// if it may.
func (k *Keystore) Ready() error { return k.clock.Quarantined() }

// Epoch returns a number that grows with every change of any key or session: after the
// change applies to Verify and VerifySession, and before its commit returns. A caller that
// read it before a Verify, and reads the same later, need not verify again.
func (k *Keystore) Epoch() uint64 { return k.epoch.Load() }

func (k *Keystore) load(ctx context.Context) error {
	now := k.clock.Now()
	return k.store.View(ctx, func(tx *store.Tx) error {
		for _, prefix := range []string{prefixKey, prefixSession, prefixPlatform, prefixUse} {
			for item, err := range tx.Scan([]byte(prefix), nil, false) {
				if err != nil {
					return fmt.Errorf("read keys: %w", err)
				}
				if prefix == prefixKey {
					err = k.loadKey(item, now)
				} else {
					err = k.follow(item.Version, item.Key, item.Value)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// apply follows one change that the store is about to make readable.
func (k *Keystore) apply(seq store.Seq, change store.Change) {
	if change.Deleted { // sweepKeys removes keys from memory
		if id, ok := strings.CutPrefix(string(change.Key), prefixSession); ok {
			k.removeSession(id)
		}
		if id, ok := strings.CutPrefix(string(change.Key), prefixPlatform); ok {
			k.Platform.remove(id)
		}
		return
	}
	if err := k.follow(seq, change.Key, change.Value); err != nil {
		k.logger.Error("cannot load key record", "cause", err)
	}
}

func (k *Keystore) follow(version store.Seq, key, value []byte) error {
	name := string(key)
	if id, ok := strings.CutPrefix(name, prefixKey); ok {
		return k.followKey(version, id, value)
	}
	if id, ok := strings.CutPrefix(name, prefixSession); ok {
		return k.followSession(version, id, value)
	}
	if id, ok := strings.CutPrefix(name, prefixPlatform); ok {
		return k.Platform.follow(version, id, value)
	}
	if id, ok := strings.CutPrefix(name, prefixUse); ok {
		return k.followUse(id, value)
	}
	return nil
}

func (k *Keystore) followKey(version store.Seq, id string, value []byte) error {
	r, err := decodeRecord(value)
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.epoch.Add(1)
	old := k.keys[id]
	if old != nil && version < old.version {
		return nil
	}
	next := &known{version: version}
	if err == nil {
		next.macs, next.entry = k.putTokensLocked(r)
	}
	if old != nil {
		k.removeTokensLocked(old, next)
	}
	k.keys[id] = next
	if err == nil && r.unlisted && r.Revoked == 0 {
		k.unlisted[id] = true
	}
	if err != nil {
		return fmt.Errorf("read key %s: %w", id, err)
	}
	return nil
}

func (k *Keystore) putTokensLocked(r *record) ([][sha256.Size]byte, *entry) {
	e := &entry{
		identity: Identity{ID: r.ID, Scope: r.Scope, Capability: r.Capability, Tenant: r.Tenant, Metadata: r.Metadata},
		expires:  orEndless(r.Expires),
		revoked:  r.Revoked,
		use:      k.useLocked(r.ID),
	}
	switch {
	case r.Revoked != 0:
		e.refused = KeyRevoked
	case r.Disabled:
		e.refused = KeyOff
	}
	out := make([][sha256.Size]byte, len(r.Tokens))
	for i, t := range r.Tokens {
		out[i] = [sha256.Size]byte(t.MAC)
		k.index.Put(out[i], orEndless(t.Until), e)
	}
	return out, e
}

// removeTokensLocked removes the tokens that old has and next does not.
func (k *Keystore) removeTokensLocked(old, next *known) {
	kept := make(map[[sha256.Size]byte]bool, len(next.macs))
	for _, mac := range next.macs {
		kept[mac] = true
	}
	for _, mac := range old.macs {
		if !kept[mac] {
			k.index.Remove(mac)
		}
	}
}

func (k *Keystore) followUse(id string, value []byte) error {
	at, err := decodeTime(value)
	if err != nil {
		return fmt.Errorf("read last use of %s: %w", id, err)
	}
	k.mu.RLock()
	u := k.useOf[id]
	k.mu.RUnlock()
	if u != nil { // nil for a dead key
		u.atLeast(at)
	}
	return nil
}

func (k *Keystore) useLocked(id string) *use {
	u := k.useOf[id]
	if u == nil {
		u = &use{id: id}
		k.useOf[id] = u
	}
	return u
}

// lastUse returns when the key or session was last used, in ms; 0: never. That of a dead
// key is read from the store.
func (k *Keystore) lastUse(tx *store.Tx, id string) (int64, error) {
	k.mu.RLock()
	u := k.useOf[id]
	k.mu.RUnlock()
	if u != nil {
		return u.last.Load(), nil
	}
	return storedUse(tx, id)
}

const (
	writeEvery   = time.Minute
	closeTimeout = 10 * time.Second
	usesPerWrite = 5000 // in one transaction
)

// runUpkeep writes last uses and the clock file once a minute, and removes expired and
// revoked keys from memory. It adds keys that an older version wrote to the lists of their
// owners. Once an hour it deletes keys and sessions that ended long ago; in a cluster the owner
// does that.
func (k *Keystore) runUpkeep(ctx context.Context) {
	defer close(k.upkeep.done)
	ticker := time.NewTicker(writeEvery)
	defer ticker.Stop()
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for {
		if err := k.addToOwnerLists(ctx); err != nil && ctx.Err() == nil {
			k.logger.Warn("old keys not added to owner lists", "cause", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := k.writePending(ctx); err != nil && ctx.Err() == nil {
				k.logger.Warn("last uses or clock file not written", "cause", err)
			}
			if err := k.dropDead(ctx); err != nil && ctx.Err() == nil {
				k.logger.Warn("dead keys not removed from tenant lists", "cause", err)
			}
		case <-sweep.C:
			if err := k.sweep(ctx); err != nil && ctx.Err() == nil {
				k.logger.Warn("dead keys and sessions not deleted", "cause", err)
			}
		}
	}
}

// writePending writes last uses and the clock file. It is for one goroutine at a time.
func (k *Keystore) writePending(ctx context.Context) error {
	if err := k.clock.Save(); err != nil {
		return fmt.Errorf("write clock file: %w", err)
	}
	taken := k.uses.take()
	for n := usesPerWrite; len(taken) > 0; {
		n = min(len(taken), n)
		err := writeUses(ctx, k.store, taken[:n])
		if errors.Is(err, store.ErrConflict) && n > 1 { // another node writes some of them
			n /= 2
			continue
		}
		if err != nil {
			for _, u := range taken {
				k.uses.add(u)
			}
			return fmt.Errorf("write last uses: %w", err)
		}
		taken = taken[n:]
	}
	return nil
}

func writeUses(ctx context.Context, st *store.Store, some []*use) error {
	_, err := st.Update(ctx, func(tx *store.Tx) error {
		for _, u := range some {
			if err := u.write(tx); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
