package hostabi

import (
	"errors"

	"runner.example/entity"
)

// onRows runs an operation on rows, with the caller's authority and in the
// request's transaction.
func onRows(c *Call, op string, args []byte, out *entity.Result) error {
	if !c.reachesRows {
		c.rows.Reset(c.Host.Entities, c.Tx, &c.Caller, c.limits.Rows)
		c.rows.Context, c.rows.Work = c.Context, &c.work
		c.reachesRows = true
	}
	err := c.rows.Do(op, args, out)
	if errors.Is(err, entity.ErrOutdated) {
		c.outdated = true
	}
	return err
}

// Outdated reports that the schema was changed while the handler ran, so that
// what it did with rows counts for nothing: the request belongs to the release
// that is active now.
func (c *Call) Outdated() bool { return c.outdated }
