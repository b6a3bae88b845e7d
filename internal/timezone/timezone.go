package timezone

import (
	_ "embed"
	"math"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // the machine may have no time zone data

	"runner.example/internal/fault"
)

// names are the names of zones, one a line, of the data in Go. TestEveryZoneIsKnown compares
// them.
//
//go:embed zones.txt
var names string

// canonical maps names in lower case to their spelling in the database.
var canonical = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for name := range strings.Lines(names) {
		name = strings.TrimSpace(name)
		all[strings.ToLower(name)] = name
	}
	return all
})

// locations has a *time.Location for each name that was used, so it never has more entries
// than names.
var locations sync.Map

// Period is a time in which the offset of a zone does not change.
type Period struct {
	// Zone is the zone's name as the database spells it.
	Zone string `json:"zone"`
	// Offset is in seconds east of UTC.
	Offset int `json:"offset"`
	// Abbreviation is that of the database, such as "CEST", or "+03" if there is none.
	Abbreviation string `json:"abbreviation"`
	// From and Until are in seconds since 1970. From is part of the period, Until is not.
	// nil means that the period has no beginning or no end.
	From  *int64 `json:"from"`
	Until *int64 `json:"until"`
}

// MaxSeconds is the largest distance of an instant from 1970. A Date of ECMAScript has the
// same limit.
const MaxSeconds = 8_640_000_000_000

// At returns the period of a zone that contains an instant, in seconds since 1970. The name
// of the zone is compared without regard to case. At is safe for concurrent use.
func At(zone string, seconds int64) (Period, error) {
	if seconds < -MaxSeconds || seconds > MaxSeconds {
		return Period{}, fault.New(fault.Invalid, "an instant is at most %d seconds from 1970", MaxSeconds)
	}
	location, err := Load(zone)
	if err != nil {
		return Period{}, err
	}
	t := time.Unix(seconds, 0).In(location)
	p := Period{Zone: location.String()}
	p.Abbreviation, p.Offset = t.Zone()
	from, until := t.ZoneBounds()
	if !until.IsZero() && !until.After(t) {
		// Go 1.26 treats a leap year after a zone's last recorded transition as a year of 365
		// days. On the last day of that year, the period continues at least until the end of
		// the day.
		until = t.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	}
	p.From, p.Until = bound(from), bound(until)
	return p, nil
}

// Load returns the location of a zone, whose name is compared without regard to case. It is safe for
// concurrent use.
func Load(zone string) (*time.Location, error) {
	name, known := canonical()[strings.ToLower(zone[:min(len(zone), math.MaxUint8)])]
	if !known {
		return nil, fault.New(fault.Invalid, "%.100q is not a time zone", zone)
	}
	return load(name)
}

// Names are the names of all zones.
func Names() []string { return strings.Fields(names) }

func bound(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	seconds := t.Unix()
	return &seconds
}

func load(name string) (*time.Location, error) {
	if location, ok := locations.Load(name); ok {
		return location.(*time.Location), nil
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	locations.Store(name, location)
	return location, nil
}
