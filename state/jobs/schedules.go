package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/schedule"
	"runner.example/schema"
	"runner.example/state/store"
)

// activeSchedule is a schedule of the active schema.
type activeSchedule struct {
	spec *schedule.Schedule // nil until it was synced
	next Time               // as the store says; 0: not known
}

// storedSchedule is the value of a schedule's key.
type storedSchedule struct {
	Cron string `json:"cron"`
	Zone string `json:"zone"`
	Next Time   `json:"next"`
}

func scheduleKey(name string) []byte { return []byte(schedulePrefix + name) }

func (q *Queue) followSchedule(_ store.Seq, c store.Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.schedules[string(c.Key[len(schedulePrefix):])]
	if s == nil {
		return
	}
	var stored storedSchedule
	if !c.Deleted && json.Unmarshal(c.Value, &stored) != nil {
		q.opt.Logger.Error("schedule not readable", "job", string(c.Key[len(schedulePrefix):]))
	}
	s.next = stored.Next
	q.signal()
}

// syncSchedules writes the schedules of a new schema into the store, and removes others. One that is
// the same there keeps its next time, which may have passed.
func (q *Queue) syncSchedules(ctx context.Context, now time.Time) error {
	q.mu.Lock()
	s, synced := q.schema, q.synced
	q.mu.Unlock()
	if s == nil || synced {
		return nil
	}
	found := map[string]*activeSchedule{}
	for i := range s.Jobs {
		if d := s.Jobs[i].Schedule; d != nil {
			spec, err := schedule.Parse(d.Cron, d.Zone)
			if err != nil {
				return fmt.Errorf("schedule of job %s: %w", s.Jobs[i].Name, err)
			}
			found[s.Jobs[i].Name] = &activeSchedule{spec: spec}
		}
	}
	_, err := q.store.Update(ctx, func(tx *store.Tx) error {
		stored := map[string]storedSchedule{}
		for item, err := range tx.Scan([]byte(schedulePrefix), nil, false) {
			if err != nil {
				return err
			}
			name := string(item.Key[len(schedulePrefix):])
			if found[name] == nil {
				if err := tx.Delete(bytes.Clone(item.Key)); err != nil {
					return err
				}
				continue
			}
			var one storedSchedule
			if json.Unmarshal(item.Value, &one) == nil { // else it is written again
				stored[name] = one
			}
		}
		for name, t := range found {
			d, have := s.Job(name).Schedule, stored[name]
			if have.Cron != d.Cron || have.Zone != d.Zone {
				have = storedSchedule{d.Cron, d.Zone, timeOf(t.spec.Next(now))}
				if err := setSchedule(tx, name, have); err != nil {
					return err
				}
			}
			t.next = have.Next
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write the schedules: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.schema == s {
		q.schedules, q.synced = found, true
	}
	return nil
}

func setSchedule(tx *store.Tx, name string, s storedSchedule) error {
	value, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return tx.Set(scheduleKey(name), value)
}

// fire enqueues the jobs whose schedules are due: each once in the whole cluster.
func (q *Queue) fire(ctx context.Context, now time.Time) (failed error) {
	q.mu.Lock()
	due := map[string]*schedule.Schedule{}
	for name, t := range q.schedules {
		if t.next > 0 && t.next <= timeOf(now) {
			due[name] = t.spec
		}
	}
	s := q.schema
	q.mu.Unlock()
	for name, spec := range due {
		declared := s.Job(name)
		if declared == nil || declared.Schedule == nil {
			continue // of the schema before
		}
		var created bool
		var at, next Time
		_, err := q.store.Update(ctx, func(tx *store.Tx) error {
			created, at, next = false, 0, 0
			value, err := tx.Get(scheduleKey(name))
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			var stored storedSchedule
			if err == nil {
				err = json.Unmarshal(value, &stored)
			}
			next = stored.Next
			if err != nil || stored.Next == 0 || stored.Next > timeOf(now) {
				return err
			}
			if stored.Cron != declared.Schedule.Cron || stored.Zone != declared.Schedule.Zone {
				next = 0 // of another schema: this node waits until it changes
				return nil
			}
			at = stored.Next
			enqueued, err := enqueueScheduled(tx, declared, at, now)
			if err != nil {
				return err
			}
			created = enqueued.Created
			stored.Next = timeOf(spec.Next(now))
			next = stored.Next
			return setSchedule(tx, name, stored)
		})
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("fire the schedule of job %s: %w", name, err))
			continue
		}
		q.setNext(name, next)
		if at > 0 && !created {
			q.opt.Logger.Warn("schedule skipped: previous job has not ended", "job", name, "scheduledFor", at.String())
		}
	}
	return failed
}

// setNext records when a schedule fires next.
func (q *Queue) setNext(name string, next Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.schedules[name]; t != nil && next >= t.next {
		t.next = next
	} else if t != nil && next == 0 { // another schema has removed it
		t.next = 0
	}
}

// enqueueScheduled writes a job that a schedule has enqueued, unless the one before is live.
func enqueueScheduled(tx *store.Tx, declared *schema.Job, at Time, now time.Time) (Enqueued, error) {
	params, err := checkParams(declared, nil, now, nil)
	if err != nil {
		return Enqueued{}, err
	}
	j := &record{Origin: tx.Node(), Job: Job{
		ID: newID(now), Name: declared.Name, Params: params, Caller: callerOf(&caller.Caller{}), Key: "schedule",
		Scheduled: true,
		Enqueued:  timeOf(now), ScheduledFor: at, Due: timeOf(now),
	}}
	return j.enqueue(tx, declared, nil)
}

// Fire enqueues a job with a schedule now, beside the times of the schedule.
func Fire(tx *store.Tx, s *schema.Schema, name string, now time.Time) (Enqueued, error) {
	declared := s.Job(name)
	switch {
	case declared == nil:
		return Enqueued{}, unknownJob(s, name)
	case declared.Schedule == nil:
		return Enqueued{}, invalidf("the job %s has no schedule", name)
	}
	return enqueueScheduled(tx, declared, timeOf(now), now)
}

// NextOf returns when the schedule of a job fires next, as the store says; the zero time if it is
// not known.
func NextOf(tx *store.Tx, name string) (time.Time, error) {
	value, err := tx.Get(scheduleKey(name))
	if errors.Is(err, store.ErrNotFound) {
		return time.Time{}, nil
	}
	var stored storedSchedule
	if err == nil {
		err = json.Unmarshal(value, &stored)
	}
	if err != nil || stored.Next == 0 {
		return time.Time{}, err
	}
	return stored.Next.Time(), nil
}
