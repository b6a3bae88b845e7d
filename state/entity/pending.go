package entity

import "runner.example/schema"

// pendingRows has the changes that the running operation has decided for rows of its table.
// Rules see them: otherwise one list could insert rows that the rules forbid together.
type pendingRows struct {
	table *table
	rows  map[string][]schema.Value // by tail, in their new form; nil: deleted
	order []string                  // the tails
}

// of returns the new values of a row; false when they are not decided.
func (a *pendingRows) of(t *table, tail string) ([]schema.Value, bool) {
	if t != a.table {
		return nil, false
	}
	values, decided := a.rows[tail]
	return values, decided
}

// decide records the new values of a row, nil for a deletion.
func (a *pendingRows) decide(tail string, values []schema.Value) {
	if a.rows == nil {
		a.rows = map[string][]schema.Value{}
	}
	a.rows[tail] = values
	a.order = append(a.order, tail)
}
