package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"runner.example/internal/clock"
	"runner.example/internal/timezone"
)

// Schedule is a cron expression in a time zone. It is immutable.
type Schedule struct {
	spec      cron.SpecSchedule // its location is UTC, which stands for the time on the wall
	location  *time.Location
	everyHour bool
}

var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Zone returns the name of a time zone as the IANA database spells it.
func Zone(name string) (string, error) {
	location, err := timezone.Load(name)
	if err != nil {
		return "", err
	}
	return location.String(), nil
}

// Zones are the names of all time zones.
func Zones() []string { return timezone.Names() }

// Parse reads a cron expression in a time zone. The error says what is wrong with it.
func Parse(expression, zone string) (*Schedule, error) {
	location, err := timezone.Load(zone)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.HasPrefix(expression, "TZ=") || strings.HasPrefix(expression, "CRON_TZ="):
		return nil, errors.New(`the time zone follows the expression: "0 3 * * *" in "Europe/Berlin"`)
	case strings.HasPrefix(expression, "@every"):
		return nil, errors.New("@every has no fixed times: write a cron expression, such as */5 * * * *")
	}
	fields := strings.Fields(expression)
	if !strings.HasPrefix(expression, "@") {
		if len(fields) != 5 {
			return nil, fmt.Errorf("%q has %d fields: write minute, hour, day of the month, month, day of the week",
				expression, len(fields))
		}
		fields[4] = withSunday(fields[4])
	}
	parsed, err := parser.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, fmt.Errorf("%q is not a cron expression: %w", expression, err)
	}
	s := &Schedule{spec: *parsed.(*cron.SpecSchedule), location: location}
	const hours = 1<<24 - 1
	s.spec.Location, s.everyHour = time.UTC, s.spec.Hour&hours == hours
	if s.Next(clock.System()).IsZero() {
		return nil, fmt.Errorf("%q never fires: no year has such a day", expression)
	}
	return s, nil
}

// withSunday replaces 7, which is Sunday in crontab(5) too, in the days of the week. The parser knows only 0.
func withSunday(days string) string {
	parts := strings.Split(days, ",")
	for i, part := range parts {
		span, step, stepped := strings.Cut(part, "/")
		first, isRange := strings.CutSuffix(span, "-7")
		from, err := strconv.Atoi(first)
		by, wrong := 1, error(nil)
		if stepped {
			by, wrong = strconv.Atoi(step)
		}
		switch {
		case part == "7":
			parts[i] = "0"
		case isRange && err == nil && wrong == nil && from >= 0 && by > 0:
			var all []string
			for day := from; day <= 7; day += min(by, 7) {
				all = append(all, strconv.Itoa(day%7))
			}
			if len(all) > 0 {
				parts[i] = strings.Join(all, ",")
			}
		}
	}
	return strings.Join(parts, ",")
}

// Next returns the first time after t at which the schedule fires. It is zero if there is none
// within five years.
func (s *Schedule) Next(t time.Time) time.Time {
	if s.everyHour {
		spec := s.spec
		spec.Location = s.location
		return spec.Next(t.In(s.location))
	}
	local := t.In(s.location)
	wall := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(),
		local.Nanosecond(), time.UTC)
	for wall = wall.Add(-day); ; { // of which some comes at t or before
		if wall = s.spec.Next(wall); wall.IsZero() {
			return wall
		}
		if next := s.instant(wall); next.After(t) {
			return next
		}
	}
}

// day is longer than any difference between two offsets of a zone, but for those that once moved
// over the date line.
const day = 24 * time.Hour

// instant returns the first instant at which the clocks of the zone show the time of wall, or the
// end of the gap that it is in.
func (s *Schedule) instant(wall time.Time) time.Time {
	before, after := s.with(wall, wall.Add(-day)), s.with(wall, wall.Add(day))
	switch {
	case shows(before, wall) && !(shows(after, wall) && after.Before(before)):
		return before
	case shows(after, wall):
		return after
	}
	began, _ := before.ZoneBounds()
	return began
}

// with returns the instant of wall by the offset at another instant.
func (s *Schedule) with(wall, at time.Time) time.Time {
	_, offset := at.In(s.location).Zone()
	return wall.Add(-time.Duration(offset) * time.Second).In(s.location)
}

// shows reports whether the clocks show that time at t.
func shows(t, wall time.Time) bool {
	return t.Hour() == wall.Hour() && t.Minute() == wall.Minute() && t.Day() == wall.Day()
}
