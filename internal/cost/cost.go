package cost

// Every is how many units of work a Meter counts between two looks. A unit is what
// takes a nanosecond or a few: a byte that is searched, a step of a pattern. So looks
// are some 50 to 500 µs apart.
const Every = 1 << 16

// Meter counts work. A nil Meter counts nothing and never fails. One goroutine at a
// time may use it.
type Meter struct {
	left int // until the next look
	look func() error
	err  error
}

// Reset makes the Meter a new one, whose owner is asked by look. look may wait; its
// error ends the work.
func (m *Meter) Reset(look func() error) { *m = Meter{left: Every, look: look} }

// Spend tells of so many units that are about to be done. After an error, which is
// the same from then on, the work must end.
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
