package audit

import "context"

// RaiseFloor raises the floor of the records that are not sealed, which Seal does seldom.
func (l *Log) RaiseFloor(ctx context.Context) error {
	l.sealing.Lock()
	defer l.sealing.Unlock()
	return l.raiseFloor(ctx)
}

// CountFromStart makes the next record the first of this process.
func CountFromStart() { appended.Store(0) }
