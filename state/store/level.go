package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"runner.example/internal/fault"
	"runner.example/internal/level"
	"runner.example/internal/version"
	"runner.example/state/store/commitlog"
)

// levelKey holds the level of the store, as JSON of levelRecord. A store without it has the first one.
const levelKey = "level"

// levelRecord is a level, and who has set it.
type levelRecord struct {
	Level int `json:"level"`
	// Version is that of the runner that raised the level: each later one knows it too.
	Version string `json:"version"`
}

func (r levelRecord) encode() []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic("BUG: encode a level: " + err.Error())
	}
	return text
}

// Level returns the level in force: that of the newest entry that can be read.
func (s *Store) Level() int { return int(s.level.Load()) }

// Level returns the level as the transaction sees it. What the transaction writes must have the form of
// this level: an Update that called Level is not committed after an entry that raised it.
func (t *Tx) Level() (int, error) {
	r, err := t.levelRecord()
	return r.Level, err
}

func (t *Tx) levelRecord() (levelRecord, error) {
	text, err := t.Get([]byte(levelKey))
	if errors.Is(err, ErrNotFound) {
		return levelRecord{Level: level.First}, nil
	}
	if err != nil {
		return levelRecord{}, err
	}
	return decodeLevel(text)
}

func decodeLevel(text []byte) (r levelRecord, err error) {
	if err := json.Unmarshal(text, &r); err != nil || r.Level < level.First {
		return r, fmt.Errorf("the level %q of the store is not valid", text)
	}
	return r, nil
}

// RaiseLevel raises the level when the transaction commits, and returns the one before. All stores that
// share the log have the new one after this entry. It cannot be lowered. The caller makes sure that each
// node knows it. The error has the code Invalid if this program does not, and Conflict if the level is
// higher already.
func (t *Tx) RaiseLevel(to int) (before int, err error) {
	if before, err = t.Level(); err != nil || before == to {
		return before, err
	}
	switch known := t.store.levels; {
	case before > to:
		return before, fault.New(fault.Conflict, "the level is %d already, and cannot be lowered", before)
	case !known.Has(to):
		return before, fault.New(fault.Invalid, "this runner knows %s, and not level %d", known, to)
	}
	return before, t.Set([]byte(levelKey), levelRecord{to, version.Read().Version}.encode())
}

// openLevel reads the level. The error says what to do if this program does not know it. A standalone store
// without commits begins with the newest level: no older program has to read it.
func (s *Store) openLevel(standalone bool) error {
	if standalone && s.appliedSeq() == 0 {
		s.level.Store(int64(s.levels.Newest))
		return nil
	}
	tx := &Tx{store: s, ctx: context.Background()}
	defer tx.end()
	r, err := tx.levelRecord()
	if err != nil {
		return err
	}
	s.level.Store(int64(r.Level))
	return s.levels.Remedy(r.Level, r.Version)
}

// beginLevel adds the level of a standalone store to its first entry.
func (s *Store) beginLevel(e *commitlog.Entry) {
	if s.appliedSeq() > 0 || s.Level() == level.First {
		return
	}
	first := &commitlog.Proposal{Writes: []commitlog.Write{{
		Key: levelKey, Value: levelRecord{s.Level(), version.Read().Version}.encode(),
	}}}
	e.Proposals = append([]*commitlog.Proposal{first}, e.Proposals...)
}

// followLevel sets the level that a committed entry has raised. The error says what to do if this program
// does not know it: then nothing more may be applied.
func (s *Store) followLevel(e *commitlog.Entry) error {
	for p := range e.Committed {
		for i := range p.Writes {
			w := &p.Writes[i]
			if w.Key != levelKey {
				continue
			}
			r, err := decodeLevel(w.Value)
			if err != nil {
				return err
			}
			s.level.Store(int64(r.Level))
			if err := s.levels.Remedy(r.Level, r.Version); err != nil {
				return err
			}
		}
	}
	return nil
}
