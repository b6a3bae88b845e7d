package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"runner.example/state/store"
)

// pauseTime is how long the jobs of a selection are not claimed after setPause.
const pauseTime = 15 * time.Second

// pause says that the jobs of a selection are not claimed, on any node. It is the value of its key.
type pause struct {
	Selection
	Until Time `json:"until"`
}

func pauseHash(s Selection) hash { return hashOf("pause", s.Name, s.Tenant) }

func pauseKey(s Selection) []byte {
	h := pauseHash(s)
	return append([]byte(pausePrefix), h[:]...)
}

func setPause(tx *store.Tx, s Selection, until time.Time) error {
	value, err := json.Marshal(pause{s, timeOf(until)})
	if err != nil {
		return err
	}
	return tx.Set(pauseKey(s), value)
}

func (q *Queue) followPause(_ store.Seq, c store.Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.noteLocked(c.Key)
	q.setPauseLocked(c.Key, c.Value)
}

// setPauseLocked notes a pause, or without a value its end.
func (q *Queue) setPauseLocked(key, value []byte) {
	h := hash(key[len(pausePrefix):])
	var p pause
	if value == nil || json.Unmarshal(value, &p) != nil {
		delete(q.paused, h)
		q.unblockLocked(h)
		return
	}
	q.paused[h] = p
}

// loadPauses reads the pauses of the store.
func (q *Queue) loadPauses(tx *store.Tx) error {
	for item, err := range tx.Scan([]byte(pausePrefix), nil, false) {
		if err != nil {
			return err
		}
		q.mu.Lock()
		if !q.changed[string(item.Key)] {
			q.setPauseLocked(item.Key, item.Value)
		}
		q.mu.Unlock()
	}
	return nil
}

// endPausesLocked ends the pauses whose time is over.
func (q *Queue) endPausesLocked(now Time) {
	for h, p := range q.paused {
		if p.Until < now {
			delete(q.paused, h)
			q.unblockLocked(h)
		}
	}
}

// pausedByLocked returns the pause of a group's jobs, false if there is none.
func (q *Queue) pausedByLocked(g *group) (hash, bool) {
	for h, p := range q.paused {
		if p.has(g.name, g.tenant) {
			return h, true
		}
	}
	return hash{}, false
}

// sweepPauses deletes the pauses that were over at now: those of a command that was interrupted.
func sweepPauses(tx *store.Tx, now time.Time) (failed error) {
	var over []Selection
	for item, err := range tx.Scan([]byte(pausePrefix), nil, false) {
		if err != nil {
			return err
		}
		var p pause
		if err := json.Unmarshal(item.Value, &p); err != nil {
			return fmt.Errorf("read a pause of jobs: %w", err)
		}
		if p.Until < timeOf(now) {
			over = append(over, p.Selection)
		}
	}
	for _, s := range over {
		failed = errors.Join(failed, tx.Delete(pauseKey(s)))
	}
	return failed
}
