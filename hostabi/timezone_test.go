package hostabi_test

import (
	"maps"
	"testing"

	"runner.example/hostabi"
)

func TestTheOffsetOfATimeZoneIsAnswered(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	want := map[string]any{"zone": "Europe/Berlin", "offset": 7200.0, "abbreviation": "CEST", "from": 1774746000.0, "until": 1792890000.0}
	if result, n := g.op("timeZone", `{"zone":"europe/BERLIN","at":1780000000}`); n < 0 || !maps.Equal(result, want) {
		t.Errorf("answers %d %v", n, result)
	}
	want = map[string]any{"zone": "Etc/GMT-14", "offset": 50400.0, "abbreviation": "+14", "from": nil, "until": nil}
	if result, n := g.op("timeZone", `{"zone":"Etc/GMT-14","at":-8640000000000}`); n < 0 || !maps.Equal(result, want) {
		t.Errorf("answers %d %v", n, result)
	}
	for args, want := range map[string]string{
		`{"zone":"Local","at":0}`:           `timeZone: "Local" is not a time zone`,
		`{"zone":"UTC"}`:                    `timeZone: member "at" is missing`,
		`{"zone":"UTC","at":0.5}`:           `timeZone: member "at" must be a whole number`,
		`{"zone":"UTC","at":8640000000001}`: `timeZone: an instant is at most 8640000000000 seconds from 1970`,
		`{"at":0}`:                          `timeZone: member "zone" is missing`,
	} {
		if result, n := g.op("timeZone", args); n >= 0 || result["message"] != want {
			t.Errorf("%s: %d %v, want %s", args, n, result, want)
		}
	}
}
