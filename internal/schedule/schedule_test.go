package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"runner.example/internal/schedule"
)

func TestATimeThatIsSkippedOrComesTwiceFiresOnce(t *testing.T) {
	const layout = "2006-01-02T15:04Z"
	for _, row := range []struct {
		expression, zone, from string
		want                   string // in UTC
	}{
		{"30 2 * * *", "Europe/Berlin", "2026-03-27T12:00Z", "2026-03-28T01:30Z 2026-03-29T01:00Z 2026-03-30T00:30Z"}, // 02:30 is skipped on March 29
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", "2026-10-25T00:30Z 2026-10-26T01:30Z"},                   // 02:30 comes twice on October 25
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:31Z", "2026-10-26T01:30Z"},                                     // from between the two
		{"*/30 * * * *", "Europe/Berlin", "2026-10-25T00:00Z", "2026-10-25T00:30Z 2026-10-25T01:00Z 2026-10-25T01:30Z 2026-10-25T02:00Z"},
		{"0 2 * * *", "America/New_York", "2026-03-07T08:00Z", "2026-03-08T07:00Z 2026-03-09T06:00Z"},
		{"0 1 * * *", "America/New_York", "2026-10-31T08:00Z", "2026-11-01T05:00Z 2026-11-02T06:00Z"},
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-03T04:00Z", "2018-11-04T03:00Z 2018-11-05T02:00Z"}, // midnight is skipped
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00Z", "2026-10-03T15:30Z 2026-10-04T15:15Z"},
		{"0 3 1 * *", "UTC", "2026-01-31T12:00Z", "2026-02-01T03:00Z 2026-03-01T03:00Z"},
		{"0 0 29 2 *", "UTC", "2026-01-01T00:00Z", "2028-02-29T00:00Z"},
		{"0 0 * * 7", "UTC", "2026-01-01T00:00Z", "2026-01-04T00:00Z 2026-01-11T00:00Z"}, // a Sunday
		{"0 0 * * 5-7/2,3", "UTC", "2026-01-01T00:00Z", "2026-01-02T00:00Z 2026-01-04T00:00Z 2026-01-07T00:00Z"},
		{"0 0 * * 3-7/9223372036854775807", "UTC", "2026-01-01T00:00Z", "2026-01-07T00:00Z 2026-01-14T00:00Z"},
		{"0 0 * * 0-7", "UTC", "2026-01-01T00:00Z", "2026-01-02T00:00Z 2026-01-03T00:00Z 2026-01-04T00:00Z"},
		{"@daily", "Asia/Kathmandu", "2026-01-01T00:00Z", "2026-01-01T18:15Z"},
	} {
		s, err := schedule.Parse(row.expression, row.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(layout, row.from)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range strings.Fields(row.want) {
			at = s.Next(at)
			got = append(got, at.UTC().Format(layout))
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%q in %s fires at %v, want %s", row.expression, row.zone, got, row.want)
		}
	}
}

// The model goes over each minute around the changes of a zone's clocks, and looks at the clock on
// the wall.
func TestSchedulesFireLikeTheModel(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca", "UTC"} {
		for _, expression := range []string{"30 2 * * *", "0 0 * * *", "*/20 1-3 * * *", "0 */2 * * *", "15 * * * *", "59 23 * * 0", "0 12 31 * *"} {
			for _, year := range []int{2018, 2026} {
				for _, change := range changes(t, zone, year) {
					compareWithModel(t, expression, zone, change.Add(-36*time.Hour), change.Add(36*time.Hour))
				}
			}
		}
	}
}

// changes returns when a zone's clocks are set in a year, and its end.
func changes(t *testing.T, zone string, year int) (all []time.Time) {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Date(year+1, 1, 1, 0, 0, 0, 0, location)
	for at := time.Date(year, 1, 1, 0, 0, 0, 0, location); ; {
		_, until := at.ZoneBounds()
		if until.IsZero() || !until.Before(end) {
			return append(all, end)
		}
		all = append(all, until)
		at = until
	}
}

func compareWithModel(t *testing.T, expression, zone string, begin, end time.Time) {
	t.Helper()
	s, err := schedule.Parse(expression, zone)
	if err != nil {
		t.Fatal(err)
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := cron.ParseStandard(expression)
	if err != nil {
		t.Fatal(err)
	}
	spec := parsed.(*cron.SpecSchedule)
	spec.Location = time.UTC
	matches := func(wall time.Time) bool { return spec.Next(wall.Add(-time.Second)).Equal(wall) }
	everyHour := strings.Fields(expression)[1] == "*"

	begin = begin.UTC().Truncate(time.Minute)
	next, latest := s.Next(begin), onTheWall(begin.In(location))
	for at := begin.Add(time.Minute); at.Before(end); at = at.Add(time.Minute) {
		wall := onTheWall(at.In(location))
		fires := matches(wall)
		if !everyHour {
			fires = false
			for skipped := latest.Add(time.Minute); !skipped.After(wall); skipped = skipped.Add(time.Minute) {
				fires = fires || matches(skipped)
			}
			if wall.After(latest) {
				latest = wall
			}
		}
		if got := next.Equal(at); got != fires {
			t.Fatalf("%q in %s: next after the last one is %s; at %s it fires: %t", expression, zone, next, at.In(location), fires)
		}
		if fires {
			next = s.Next(at)
		}
	}
}

func onTheWall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC)
}

func TestWhatIsNotAScheduleSaysWhatToWrite(t *testing.T) {
	for expression, want := range map[string]string{
		"0 3 * *":               "has 4 fields",
		"0 0 3 * * *":           "has 6 fields",
		"a b c d e":             "not a cron expression",
		"@every 1h":             "@every",
		"@fortnightly":          "not a cron expression",
		"TZ=UTC 0 3 * * *":      "the time zone follows",
		"CRON_TZ=UTC 0 3 * * *": "the time zone follows",
		"0 0 31 2 *":            "never fires",
		"":                      "has 0 fields",
		"TZ=0":                  "the time zone follows",
	} {
		if _, err := schedule.Parse(expression, "UTC"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", expression, err, want)
		}
	}
	for _, zone := range []string{"", "Local", "Europe/Berln", "../etc/passwd", "CEST2"} {
		if _, err := schedule.Parse("0 3 * * *", zone); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q is not a time zone", zone)) {
			t.Errorf("zone %q: %v", zone, err)
		}
	}
}
