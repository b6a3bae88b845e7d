package level

import (
	"fmt"

	"runner.example/internal/fault"
)

// First is the level of data that names none, and of a runner that does not say what it knows.
const First = 1

// released is the newest level of this release. A change of what the level covers raises it; see
// docs/decisions/levels.md.
const released = 1

// Range is the levels that a runner knows, both included. The zero value is First alone.
type Range struct {
	Oldest int `json:"oldest"`
	Newest int `json:"newest"`
}

// Known returns the levels that this program knows.
func Known() Range { return Range{Oldest: First, Newest: newest} }

// OrFirst returns r, or First alone if r is zero.
func (r Range) OrFirst() Range {
	if r == (Range{}) {
		return Range{First, First}
	}
	return r
}

// Has reports whether a runner that knows r can use data of that level.
func (r Range) Has(level int) bool {
	r = r.OrFirst()
	return r.Oldest <= level && level <= r.Newest
}

// String returns "level 1" or "levels 1 to 2".
func (r Range) String() string {
	r = r.OrFirst()
	if r.Oldest == r.Newest {
		return fmt.Sprintf("level %d", r.Newest)
	}
	return fmt.Sprintf("levels %d to %d", r.Oldest, r.Newest)
}

// Remedy returns nil if a runner that knows r can use data of that level, which the runner with the
// version by has raised; "" or "devel": it has none. Otherwise the error has the code Invalid, and says what to do.
func (r Range) Remedy(level int, by string) error {
	r = r.OrFirst()
	switch {
	case r.Has(level):
		return nil
	case level < r.Oldest:
		return fault.New(fault.Invalid,
			"the data has level %d, and this runner knows %s: use the release before, which knows both, for runner level raise, and this one then",
			level, r)
	case by == "" || by == "devel":
		return fault.New(fault.Invalid,
			"the data has level %d, and this runner knows %s: install a newer runner", level, r)
	}
	return fault.New(fault.Invalid,
		"the data has level %d, and this runner knows %s: install runner %s, which raised the level, or a newer one", level, r, by)
}
