package hostabi

import (
	"errors"

	"runner.example/state/entity"
)

// runRowOperation runs an operation on rows, with the caller's authority and in the
// request's transaction.
func runRowOperation(c *Call, op string, args []byte, out *entity.Result) error {
	if !c.rowsReady {
		c.rows.Reset(c.Host.Entities, c.Tx, &c.Caller, c.limits.Rows)
		c.rows.Context, c.rows.Work, c.rows.Observe = c.Context, &c.work, c.Host.Observe
		c.rows.FileOf, c.rows.SawFile = c.fileOf, c.sawFile
		c.rowsReady = true
	}
	err := c.rows.Do(op, args, out)
	if errors.Is(err, entity.ErrOutdated) {
		c.outdated = true
	}
	return err
}

// ReadsClock reports whether the run has read the calendar's time, or had an answer from rules that did. Without a
// commit, the handler may answer something else a moment later.
func (c *Call) ReadsClock() bool { return c.readsClock || c.rowsReady && c.rows.ReadsNow() }

// Outdated reports whether another schema was activated while the handler ran. Then its
// writes must be discarded, and the request runs again on the active release.
func (c *Call) Outdated() bool { return c.outdated }
