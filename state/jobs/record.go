package jobs

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/schema"
	"runner.example/state/store"
)

// State is the state of a job.
type State string

// The states. Those after Running are final, except that operators may retry a job that failed or was
// cancelled.
const (
	Waiting   State = "waiting"
	Running   State = "running"
	Done      State = "done"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// States are all states.
var States = []State{Waiting, Running, Done, Failed, Cancelled}

// Job is a job as the store has it.
type Job struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	State State  `json:"state"`
	// Params is a JSON object that matches the parameters of the job, with their defaults.
	Params json.RawMessage `json:"params"`
	// Caller enqueued the job.
	Caller Caller `json:"caller"`
	// Key is that of Enqueue; empty: none. Scheduled says that a schedule has enqueued the job.
	Key       string `json:"key,omitempty"`
	Scheduled bool   `json:"scheduled,omitempty"`
	// RequestID is that of the request that enqueued the job.
	RequestID string `json:"requestId,omitempty"`
	// Enqueued is when it was enqueued. ScheduledFor is when it was to run first.
	Enqueued     Time `json:"enqueued"`
	ScheduledFor Time `json:"scheduledFor"`
	// Due is when it runs next, or ran last.
	Due Time `json:"due"`
	// Attempt counts the runs that have begun.
	Attempt int `json:"attempt"`
	// Node runs it, or ran it last; empty without a cluster. Lease is how long, while it is running.
	Node  string `json:"node,omitempty"`
	Lease Time   `json:"lease,omitzero"`
	// Ended is when it was done, failed or cancelled. Expires is when it is deleted.
	Ended   Time `json:"ended,omitzero"`
	Expires Time `json:"expires,omitzero"`
	// Error says why the last run failed: the kind and the message, then a line for each of the first
	// frames; empty: it did not fail.
	Error string `json:"error,omitempty"`
	// Earlier are the failed runs before that one, the newest first, at most two.
	Earlier []Attempt `json:"earlier,omitempty"`
}

// Attempt is an earlier run of a job that failed. Error is the beginning of the job's error after it.
type Attempt struct {
	Attempt int    `json:"attempt"`
	Error   string `json:"error"`
}

// record is a job with what only this package needs.
type record struct {
	Job
	// Origin is the node that enqueued it. Group is that of its key while it waits. Slot is the key of
	// its concurrency slot while it runs; nil: it has none.
	Origin      string
	Group, Slot []byte
}

// Caller is the identity and the authority of who enqueued a job.
type Caller struct {
	Kind       string          `json:"kind"`
	UserID     string          `json:"userId,omitempty"`
	Tenant     string          `json:"tenant,omitempty"`
	Roles      []string        `json:"roles,omitempty"`
	KeyID      string          `json:"keyId,omitempty"`
	Scope      string          `json:"scope,omitempty"`
	Capability string          `json:"capability,omitempty"`
	As         string          `json:"as,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Claims     json.RawMessage `json:"claims,omitempty"`
}

var kinds = []caller.Kind{caller.Anonymous, caller.Session, caller.APIKey, caller.System}

func callerOf(c *caller.Caller) Caller {
	return Caller{
		Kind: c.Kind.String(), UserID: c.UserID, Tenant: c.Tenant, Roles: c.Roles, KeyID: c.KeyID, Scope: c.Scope,
		Capability: c.Capability, As: c.As, Metadata: c.Metadata, Claims: c.Claims,
	}
}

// Actor returns the caller that the job acts as: who enqueued it, or within that caller's tenant the
// grants of the scope that the job names.
func (j *Job) Actor(declared *schema.Job, s *schema.Schema) (caller.Caller, error) {
	if declared.As != "" {
		c := caller.Caller{As: declared.As, Tenant: j.Caller.Tenant}
		if scope := s.Scope(declared.As); scope != nil {
			c.Capability = scope.System
		}
		return c, nil
	}
	from := &j.Caller
	c := caller.Caller{
		UserID: from.UserID, Tenant: from.Tenant, Roles: from.Roles, KeyID: from.KeyID, Scope: from.Scope,
		Capability: from.Capability, As: from.As, Metadata: from.Metadata, Claims: from.Claims,
	}
	for _, kind := range kinds {
		if kind.String() == from.Kind {
			c.Kind = kind
		}
	}
	var err error
	if c.Claims != nil {
		c.Claimed, err = schema.ReadClaims(c.Claims)
	}
	return c, err
}

// Time is an instant in milliseconds since 1970. Its JSON is RFC 3339 in UTC.
type Time int64

const timeLayout = "2006-01-02T15:04:05.000Z"

func timeOf(t time.Time) Time { return Time(t.UnixMilli()) }

// Time returns the time.
func (t Time) Time() time.Time { return time.UnixMilli(int64(t)).UTC() }

// String returns the time as RFC 3339.
func (t Time) String() string { return t.Time().Format(timeLayout) }

// MarshalText implements encoding.TextMarshaler.
func (t Time) MarshalText() ([]byte, error) { return t.Time().AppendFormat(nil, timeLayout), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Time) UnmarshalText(text []byte) error {
	read, err := time.Parse(timeLayout, string(text))
	*t = timeOf(read)
	return err
}

const (
	recordPrefix   = "jobs/j/"
	waitingPrefix  = "jobs/w/"
	runningPrefix  = "jobs/r/"
	keyPrefix      = "jobs/k/"
	countPrefix    = "jobs/c/"
	failedPrefix   = "jobs/f/"
	expiresPrefix  = "jobs/e/"
	schedulePrefix = "jobs/s/"
	pausePrefix    = "jobs/p/"
)

// idPrefix begins the ids of jobs.
const idPrefix = "job_"

func newID(now time.Time) string { return idPrefix + ids.New(now) }

func recordKey(id string) []byte { return []byte(recordPrefix + id) }

func runningKey(id string) []byte { return []byte(runningPrefix + id) }

func timedKey(prefix string, at Time, id string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte(prefix), uint64(at)), id...)
}

// hashBytes is the length of the hashes in keys.
const hashBytes = 16

type hash [hashBytes]byte

// hashOf returns a hash of the parts. Different parts have different hashes.
func hashOf(parts ...string) (h hash) {
	var all []byte
	for _, part := range parts {
		all = append(binary.AppendUvarint(all, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(all)
	copy(h[:], sum[:])
	return h
}

// tenantHash begins the hash of a group.
type tenantHash [6]byte

func tenantOf(tenant string) (t tenantHash) {
	h := hashOf("tenant", tenant)
	copy(t[:], h[:])
	return t
}

// groupOf returns the group of a job that is counted under count. For a job without a tenant, the byte
// after the hash of the tenant is the hash of the caller.
func groupOf(r *record, count string) hash {
	h, t := hashOf(r.Name, r.Caller.Tenant, count), tenantOf(r.Caller.Tenant)
	copy(h[:], t[:])
	if r.Caller.Tenant == "" {
		h[len(t)] = callersOf(&r.Caller, r.Scheduled)
	}
	return h
}

func uniqueKey(j *Job) []byte {
	kind := "key"
	if j.Scheduled {
		kind = "schedule"
	}
	h := hashOf(kind, j.Name, j.Caller.Tenant, j.Key)
	return append([]byte(keyPrefix), h[:]...)
}

// countOf returns what the job is counted under, false if it is not limited.
func countOf(j *Job, declared *schema.Job) (_ hash, limited bool) {
	if declared == nil || declared.Concurrency == nil {
		return hash{}, false
	}
	switch by := declared.Concurrency.By; by {
	case "":
		return hashOf(j.Name), true
	case "tenant":
		return hashOf(j.Name, by, j.Caller.Tenant), true
	case "user":
		return hashOf(j.Name, by, j.Caller.Tenant, cmp.Or(j.Caller.UserID, j.Caller.KeyID)), true
	default:
		var params map[string]json.RawMessage
		_ = json.Unmarshal(j.Params, &params) // it was checked
		return hashOf(j.Name, "param "+by, j.Caller.Tenant, string(params[by])), true
	}
}

// waitingJob is the value of a key of a waiting job: what a node keeps of its group. It is stored as
// its texts, each after its length as a uvarint.
type waitingJob struct {
	name, tenant, origin string
	count                string // the hash; empty: it is not limited
}

func (w waitingJob) encode() (value []byte) {
	for _, text := range []string{w.name, w.tenant, w.origin, w.count} {
		value = append(binary.AppendUvarint(value, uint64(len(text))), text...)
	}
	return value
}

func decodeWaiting(value []byte) (w waitingJob, ok bool) {
	for _, text := range []*string{&w.name, &w.tenant, &w.origin, &w.count} {
		n, size := binary.Uvarint(value)
		if size <= 0 || n > uint64(len(value)-size) {
			return w, false
		}
		*text, value = string(value[size:size+int(n)]), value[size+int(n):]
	}
	return w, true
}

// readWaiting reads the key of a waiting job. The id is not copied.
func readWaiting(key []byte) (group hash, due Time, id []byte, ok bool) {
	rest, ok := bytes.CutPrefix(key, []byte(waitingPrefix))
	if !ok || len(rest) <= hashBytes+8 {
		return group, 0, nil, false
	}
	copy(group[:], rest)
	return group, Time(binary.BigEndian.Uint64(rest[hashBytes:])), rest[hashBytes+8:], true
}

func (r *record) waitingKey() []byte { return timedKey(waitingPrefix+string(r.Group), r.Due, r.ID) }

// setWaiting writes that the job waits until it is due.
func (r *record) setWaiting(tx *store.Tx, declared *schema.Job) error {
	w := waitingJob{name: r.Name, tenant: r.Caller.Tenant, origin: r.Origin}
	if h, limited := countOf(&r.Job, declared); limited {
		w.count = string(h[:])
	}
	group := groupOf(r, w.count)
	r.State, r.Group = Waiting, group[:]
	value, err := r.encode()
	if err == nil {
		err = r.checkFits(tx, value)
	}
	if err != nil {
		return err
	}
	return errors.Join(tx.Set(recordKey(r.ID), value), tx.Set(r.waitingKey(), w.encode()))
}

// stored is the form of a record in the store, without what its key says. Times are milliseconds.
type stored struct {
	Name         string          `json:"n"`
	State        State           `json:"s"`
	Params       json.RawMessage `json:"p"`
	Caller       Caller          `json:"b"`
	Key          string          `json:"k,omitempty"`
	Scheduled    bool            `json:"sc,omitempty"`
	RequestID    string          `json:"rq,omitempty"`
	Enqueued     int64           `json:"e"`
	ScheduledFor int64           `json:"f"`
	Due          int64           `json:"d"`
	Attempt      int             `json:"a,omitempty"`
	Node         string          `json:"no,omitempty"`
	Lease        int64           `json:"l,omitempty"`
	Ended        int64           `json:"en,omitempty"`
	Expires      int64           `json:"x,omitempty"`
	Error        string          `json:"er,omitempty"`
	Earlier      []Attempt       `json:"ea,omitempty"`
	Origin       string          `json:"o,omitempty"`
	Group        []byte          `json:"g,omitempty"`
	Slot         []byte          `json:"sl,omitempty"`
}

func (r *record) encode() ([]byte, error) {
	value, err := json.Marshal(&stored{
		r.Name, r.State, r.Params, r.Caller, r.Key, r.Scheduled, r.RequestID, int64(r.Enqueued),
		int64(r.ScheduledFor), int64(r.Due),
		r.Attempt, r.Node, int64(r.Lease), int64(r.Ended), int64(r.Expires), r.Error, r.Earlier, r.Origin, r.Group, r.Slot,
	})
	if err != nil {
		return nil, fmt.Errorf("encode job %s: %w", r.ID, err)
	}
	return value, nil
}

func (r *record) set(tx *store.Tx) error {
	value, err := r.encode()
	if err != nil {
		return err
	}
	return tx.Set(recordKey(r.ID), value)
}

const (
	// maxChanged limits the keys that a change of a job writes. maxChangedBytes limits the bytes of these
	// keys, of their values and of the growth of the record; names and the tenant are counted separately.
	maxChanged      = 8
	maxChangedBytes = 1024
)

// checkFits returns an error if a change of the job may not fit into the transaction; value is its record.
// A handler may catch the error and commit, so nothing of the change may be written then.
func (r *record) checkFits(tx *store.Tx, value []byte) error {
	if !tx.Fits(maxChanged, len(value)+len(r.Name)+len(r.Caller.Tenant)+maxChangedBytes) {
		return store.ErrTooLarge
	}
	return nil
}

// ErrNotFound is the error for an id that no job has, or that the caller cannot reach.
var ErrNotFound error = fault.New(fault.NotFound, "there is no job with this id").
	WithHint("runner jobs list shows jobs")

func read(tx *store.Tx, id string) (*record, error) {
	value, err := tx.Get(recordKey(id))
	if errors.Is(err, store.ErrNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read job %s: %w", id, err)
	}
	return decode(id, value)
}

// errUnreadable matches the error of a record that is not one of this version. Only its own job is lost to
// the queue: it stays in the store.
var errUnreadable = errors.New("its record is not readable")

func decode(id string, value []byte) (*record, error) {
	var s stored
	if err := json.Unmarshal(value, &s); err != nil {
		return nil, fmt.Errorf("job %s: %w: %w", id, errUnreadable, err)
	}
	return &record{Origin: s.Origin, Group: s.Group, Slot: s.Slot, Job: Job{
		ID: id, Name: s.Name, State: s.State, Params: s.Params, Caller: s.Caller, Key: s.Key, Scheduled: s.Scheduled,
		RequestID: s.RequestID,
		Enqueued:  Time(s.Enqueued), ScheduledFor: Time(s.ScheduledFor), Due: Time(s.Due), Attempt: s.Attempt, Node: s.Node,
		Lease: Time(s.Lease), Ended: Time(s.Ended), Expires: Time(s.Expires), Error: s.Error, Earlier: s.Earlier,
	}}, nil
}
