package jobs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"runner.example/internal/caller"
	"runner.example/internal/clock"
	"runner.example/internal/cost"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/state/store"
)

// Request is what Enqueue is asked for.
type Request struct {
	Name string
	// Params is a JSON object; empty is the same as {}.
	Params []byte
	// Delay is how long the job waits. At is when it runs, if it is not zero: then Delay must be 0. A
	// time that has passed means at once.
	Delay time.Duration
	At    time.Time
	// Key makes Enqueue return the live job of this name, tenant and key, if there is one, instead of
	// a new one. Empty: there may be any number.
	Key string
	// Full is why no more such jobs of the caller may wait; nil: they may. See Queue.Full.
	Full error
	// RequestID is for the record.
	RequestID string
}

// ParseAt reads a time for Request.At, as RFC 3339. The error begins with "at".
func ParseAt(text string) (time.Time, error) {
	at, err := schema.ReadTime(text)
	if err != nil {
		return at, fault.New(fault.Invalid, "at %s", err)
	}
	if at.IsZero() { // it is a time too
		at = at.Add(1)
	}
	return at, nil
}

// Enqueued is the answer of Enqueue.
type Enqueued struct {
	ID string `json:"id"`
	// Created is false if the job existed before, by its key.
	Created bool `json:"created"`
}

const (
	maxKeyBytes = 200
	// MaxDelay is how far in the future a job may be due.
	MaxDelay = 366 * 24 * time.Hour
	// maxParamBytes limits the parameters of a job.
	maxParamBytes = 256 << 10
)

// Enqueue writes a job into tx: it exists when tx is committed. It acts for the caller. An error
// means that nothing was written; it has a fault that names the member that is wrong. m meters the
// work of checking parameters, and may be nil.
func Enqueue(tx *store.Tx, s *schema.Schema, by *caller.Caller, r Request, now time.Time,
	m *cost.Meter) (Enqueued, error) {
	declared := s.Job(r.Name)
	if declared == nil {
		return Enqueued{}, unknownJob(s, r.Name)
	}
	params, err := checkParams(declared, r.Params, now, m)
	if err != nil {
		return Enqueued{}, err
	}
	due, err := r.due(now)
	if err != nil {
		return Enqueued{}, err
	}
	if len(r.Key) > maxKeyBytes || !utf8.ValidString(r.Key) {
		value, _ := json.Marshal(r.Key)
		return Enqueued{}, fault.New(fault.Invalid, "key must be text of at most %d bytes", maxKeyBytes).
			About(fault.Subject{Field: "key", Value: value})
	}
	j := &record{Origin: tx.Node(), Job: Job{
		ID: newID(now), Name: r.Name, Params: params, Caller: callerOf(by), Key: r.Key, RequestID: r.RequestID,
		Enqueued: timeOf(now), ScheduledFor: due, Due: due,
	}}
	return j.enqueue(tx, declared, r.Full)
}

func unknownJob(s *schema.Schema, name string) error {
	var names []string
	for i := range s.Jobs {
		names = append(names, s.Jobs[i].Name)
	}
	value, _ := json.Marshal(name)
	return fault.New(fault.Invalid, "name: the schema declares no job %.100q%s", name, diag.DidYouMean(name[:min(len(name), 100)], names)).
		About(fault.Subject{Field: "name", Value: value})
}

// enqueue returns the live job with the key, if there is one. Otherwise it writes a new job, or returns
// full if that is an error.
func (r *record) enqueue(tx *store.Tx, declared *schema.Job, full error) (Enqueued, error) {
	live, err := r.liveOfKey(tx)
	if live != "" || err != nil {
		return Enqueued{ID: live}, err
	}
	if full != nil {
		return Enqueued{}, full
	}
	if err := r.setWaiting(tx, declared); err != nil {
		return Enqueued{}, err
	}
	return Enqueued{ID: r.ID, Created: true}, r.takeKey(tx)
}

// liveOfKey returns the id of the live job with the key, or nothing.
func (r *record) liveOfKey(tx *store.Tx) (id string, err error) {
	if r.Key == "" {
		return "", nil
	}
	value, err := tx.Get(uniqueKey(&r.Job))
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look up the key of a job: %w", err)
	}
	return string(value), nil
}

// takeKey writes that the job is the live one of its key.
func (r *record) takeKey(tx *store.Tx) error {
	if r.Key == "" {
		return nil
	}
	return tx.Set(uniqueKey(&r.Job), []byte(r.ID))
}

func (r *Request) due(now time.Time) (Time, error) {
	switch {
	case r.Delay < 0:
		return 0, fault.New(fault.Invalid, "delay must not be negative")
	case r.Delay > 0 && !r.At.IsZero():
		return 0, fault.New(fault.Invalid, "delay and at cannot both be given")
	case r.Delay > MaxDelay || r.At.Sub(now) > MaxDelay:
		return 0, fault.New(fault.Invalid, "a job can be due in at most %d days", MaxDelay/(24*time.Hour))
	case r.At.After(now):
		return timeOf(r.At), nil
	}
	return timeOf(now.Add(r.Delay)), nil
}

// checkParams returns the parameters with their defaults.
func checkParams(declared *schema.Job, params []byte, now time.Time, m *cost.Meter) (json.RawMessage, error) {
	given := params
	if len(params) == 0 {
		params = []byte("{}")
	}
	if len(params) > maxParamBytes {
		return nil, fault.New(fault.TooLarge, "params are %d KiB; the limit is %d KiB: store a row, and pass its id",
			(len(params)+1023)>>10, maxParamBytes>>10).About(fault.Subject{Field: "params", Value: params})
	}
	input := declared.Input()
	wrong := input.Check(params, m)
	if m.Err() != nil {
		return nil, m.Err()
	}
	if len(wrong) > 0 {
		where := "params"
		if wrong[0].Field != "" {
			where += "." + wrong[0].Field
		}
		return nil, fault.New(fault.Invalid, "%s %s", where, wrong[0].Message).About(fault.Subject{
			Field: cmp.Or(wrong[0].Field, "params"), Value: wrongValue(declared, given, wrong[0].Field), Public: wrong[0].Message})
	}
	return input.Fill(nil, params, now, m)
}

// wrongValue returns the value of the parameter that a field is in, or all of params if it is not in one.
func wrongValue(declared *schema.Job, params []byte, field string) []byte {
	name, _, _ := strings.Cut(field, ".")
	name, _, _ = strings.Cut(name, "[")
	var members map[string]json.RawMessage
	for i := range declared.Params {
		if declared.Params[i].Name == name && json.Unmarshal(params, &members) == nil && members[name] != nil {
			return members[name]
		}
	}
	return params
}

// Check returns the error with which Enqueue would refuse the parameters of a job, or nil.
func Check(s *schema.Schema, name string, params []byte) error {
	declared := s.Job(name)
	if declared == nil {
		return unknownJob(s, name)
	}
	_, err := checkParams(declared, params, clock.System(), nil)
	return err
}

// Retry makes a job that failed or was cancelled wait again, as if it had never run, and one that
// waits due now. The fault is Conflict for others.
func Retry(tx *store.Tx, s *schema.Schema, by *caller.Caller, id string, now time.Time) (*Job, error) {
	j, err := readReachable(tx, by, id)
	if err != nil {
		return nil, err
	}
	if s == nil || s.Job(j.Name) == nil {
		return nil, fault.New(fault.Conflict, "the active schema declares no job %q",
			j.Name).WithHint("runner jobs show " + j.ID)
	}
	switch j.State {
	case Running, Done:
		return nil, fault.New(fault.Conflict, "the job is %s", j.State).WithHint("runner jobs show " + j.ID)
	case Waiting:
		if err := tx.Delete(j.waitingKey()); err != nil {
			return nil, err
		}
	default:
		if err := j.undoEnd(tx); err != nil {
			return nil, err
		}
		j.Attempt, j.Error, j.Earlier = 0, "", nil
	}
	j.Due = timeOf(now)
	return &j.Job, j.setWaiting(tx, s.Job(j.Name))
}

// undoEnd removes the keys that end wrote.
func (r *record) undoEnd(tx *store.Tx) error {
	live, err := r.liveOfKey(tx)
	if live != "" {
		return fault.New(fault.Conflict, "the job %s has the same key and is live", live)
	}
	if err != nil {
		return err
	}
	err = errors.Join(r.takeKey(tx), tx.Delete(timedKey(expiresPrefix, r.Expires, r.ID)),
		tx.Delete(timedKey(failedPrefix, r.Ended, r.ID)))
	r.Ended, r.Expires = 0, 0
	return err
}

// Keep is how long jobs are kept that have ended.
type Keep struct {
	// Done is for jobs that are done or cancelled, Failed for those that failed.
	Done   time.Duration `toml:"jobs.keep_done" default:"7d" min:"0s" max:"3650d"`
	Failed time.Duration `toml:"jobs.keep_failed" default:"30d" min:"0s" max:"3650d"`
}

// end writes that the job has ended.
func (r *record) end(tx *store.Tx, state State, now time.Time, keep Keep) error {
	switch r.State {
	case Waiting:
		if err := tx.Delete(r.waitingKey()); err != nil {
			return err
		}
	case Running:
		if err := r.stop(tx); err != nil {
			return err
		}
	}
	kept := keep.Done
	if state == Failed {
		kept = keep.Failed
		if err := tx.Set(timedKey(failedPrefix, timeOf(now), r.ID), nil); err != nil {
			return err
		}
	}
	if r.Key != "" {
		if err := tx.Delete(uniqueKey(&r.Job)); err != nil {
			return err
		}
	}
	r.State, r.Group, r.Ended, r.Expires = state, nil, timeOf(now), timeOf(now.Add(kept))
	return errors.Join(r.set(tx), tx.Set(timedKey(expiresPrefix, r.Expires, r.ID), nil))
}

// stop writes that the job does not run any more.
func (r *record) stop(tx *store.Tx) error {
	err := tx.Delete(runningKey(r.ID))
	if r.Slot != nil {
		err = errors.Join(err, tx.Delete(r.Slot))
	}
	r.Lease, r.Slot = 0, nil
	return err
}
