package cost

// Every is how many units of work a Meter counts between two calls of its owner. A unit
// takes one or a few nanoseconds: a byte that is searched, a step of a pattern. So the
// calls are about 50 to 500 µs apart.
const Every = 1 << 16

// Meter counts work. A nil Meter counts nothing and never fails. One goroutine at a
// time may use it.
type Meter struct {
	left int // until the next look
	look func() error
	err  error
}

// Reset resets the Meter. It calls look after every Every units; look may wait, and its
// error ends the work.
func (m *Meter) Reset(look func() error) { *m = Meter{left: Every, look: look} }

// Spend reports units of work that are about to be done. After an error, which all later
// calls return too, the work must end.
func (m *Meter) Spend(units int) error {
	if m == nil {
		return nil
	}
	if m.left -= units; m.left > 0 {
		return nil
	}
	return m.lookAgain()
}

// lookAgain is the rare part of Spend.
func (m *Meter) lookAgain() error {
	if m.err != nil || m.look == nil {
		return m.err
	}
	m.left = Every
	if m.err = m.look(); m.err != nil {
		m.left = 0 // all that follows fails
	}
	return m.err
}

// Err is the error of Spend, nil while there was none.
func (m *Meter) Err() error {
	if m == nil {
		return nil
	}
	return m.err
}
