package audit

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"runner.example/internal/caller"
	"runner.example/state/store"
)

// OK is the Result of a change that was made.
const OK = "ok"

// RefuseCredentials is the Action of the records that count refused credentials. They
// alone expire: anyone can cause them.
const RefuseCredentials = "credentials.refuse"

// expire is the Action of a checkpoint.
const expire = "audit.expire"

// Record is one change.
type Record struct {
	// Time is when it was made, exact to a millisecond; zero: the transaction's
	// time.
	Time Timestamp `json:"time"`
	// RequestID is that of the request or command; it leads to the log.
	RequestID string `json:"requestId"`
	Actor     Actor  `json:"actor"`
	// Action is what was done: "apiKeys.create".
	Action string `json:"action"`
	// Target is the id of what was changed.
	Target string `json:"target"`
	// Result is OK, or the code of what went wrong.
	Result string `json:"result"`
	// Reason says more about the result; may be empty.
	Reason string `json:"reason"`
	// Address is the client's; empty for an operator's command on the machine itself.
	Address string `json:"address"`
	// Node is the name of the node that made the change, in a cluster; Append sets it.
	Node string `json:"node,omitempty"`
	// Count is how many of the same the record stands for; 0: it is about one.
	Count int `json:"count,omitempty"`
	// Removed is set in the checkpoints that Expire writes, and in no others.
	Removed []Gap `json:"removed,omitempty"`
}

// Gap is a part of the chain whose records were removed: those after the head From,
// up to the head To. Both are written as Head.String does.
type Gap struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Timestamp is a time that is written as RFC 3339 in UTC with milliseconds.
type Timestamp struct{ time.Time }

// MarshalJSON writes the time.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000Z07:00"`)), nil
}

// Actor is who did it.
type Actor struct {
	// Kind is that of the caller: "anonymous", "session", "apiKey" or "system".
	Kind string `json:"kind"`
	// ID is the user, the API key or the operator; empty when not known.
	ID string `json:"id"`
}

// ActorOf returns the caller as an actor.
func ActorOf(c caller.Caller) Actor {
	if c.Kind == caller.APIKey {
		return Actor{c.Kind.String(), c.KeyID}
	}
	return Actor{c.Kind.String(), c.UserID}
}

var prefix = []byte("audit/")

// floorKey holds a time, in milliseconds, 8 bytes big endian: no record that is not
// sealed has a key from before it. The keys of sealed records leave traces in the store
// that take time to pass over, and readers begin behind them. It moves seldom.
var floorKey = []byte("auditfloor")

func floorOf(tx *store.Tx) (uint64, error) {
	value, err := tx.Get(floorKey)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read where audit records begin: %w", err)
	case len(value) != 8:
		return 0, fmt.Errorf("audit chain is broken: %q is not where audit records begin", value)
	}
	return binary.BigEndian.Uint64(value), nil
}

// Append writes the record into tx. It makes no transaction conflict with another that
// does.
func Append(tx *store.Tx, r Record) error {
	if r.Time.IsZero() {
		r.Time.Time = tx.Now()
	}
	r.Time.Time = r.Time.UTC().Truncate(time.Millisecond)
	r.Node = tx.Node()
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the audit record of %s: %w", r.Action, err)
	}
	floor, err := floorOf(tx)
	if err != nil {
		return err
	}
	key, err := newKey(max(ulid.Timestamp(tx.Now()), floor))
	if err != nil {
		return fmt.Errorf("make the audit record's key: %w", err)
	}
	return tx.Set(key, value)
}

// appended counts the records of this process, so that those of one transaction
// are in the order of their making.
var appended atomic.Uint64

// newKey returns the prefix and a ULID: 48 bits of time in milliseconds, then 48 of the
// count and 32 of chance, against other nodes and the counts of earlier runs.
func newKey(ms uint64) ([]byte, error) {
	var id ulid.ULID
	if err := id.SetTime(ms); err != nil {
		return nil, err
	}
	var count [8]byte
	binary.BigEndian.PutUint64(count[:], appended.Add(1))
	copy(id[6:12], count[2:])
	rand.Read(id[12:])
	key := make([]byte, len(prefix)+ulid.EncodedSize)
	copy(key, prefix)
	return key, id.MarshalTextTo(key[len(prefix):])
}
