package cost

// Every is the number of units of work between two checks of a Meter. A unit takes one or a
// few nanoseconds: a byte that is searched, a step of a pattern. So checks are about 50 to
// 500 µs apart.
const Every = 1 << 16

// Meter counts work. A nil Meter counts nothing and never fails. It is not safe for
// concurrent use.
type Meter struct {
	left  int // units until the next check
	check func() error
	err   error
}

// Reset resets the Meter. It calls check after every Every units. check may wait; its error
// ends the work.
func (m *Meter) Reset(check func() error) { *m = Meter{left: Every, check: check} }

// Spend counts units of work that are about to be done. If it returns an error, the work
// must end; all later calls return the same error.
func (m *Meter) Spend(units int) error {
	if m == nil {
		return nil
	}
	if m.left -= units; m.left > 0 {
		return nil
	}
	return m.checkNow()
}

// checkNow is the slow path of Spend, apart from it so that Spend can be inlined.
func (m *Meter) checkNow() error {
	if m.err != nil || m.check == nil {
		return m.err
	}
	m.left = Every
	if m.err = m.check(); m.err != nil {
		m.left = 0 // all later calls come here and fail
	}
	return m.err
}

// Err returns the error of Spend; nil if there was none.
func (m *Meter) Err() error {
	if m == nil {
		return nil
	}
	return m.err
}
