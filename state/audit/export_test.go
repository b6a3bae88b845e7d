package audit

import "context"

// RaiseFloor raises the floor of the records that are not sealed, which Seal does seldom.
func (l *Log) RaiseFloor(ctx context.Context) error {
	l.sealing.Lock()
	defer l.sealing.Unlock()
	return l.raiseFloor(ctx)
}
