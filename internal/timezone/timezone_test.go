package timezone_test

import (
	"archive/zip"
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/timezone"
)

func zones(t *testing.T) (names []string) {
	t.Helper()
	file, err := os.Open("zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		names = append(names, lines.Text())
	}
	return names
}

func TestEveryZoneIsKnown(t *testing.T) {
	listed := zones(t)
	for _, name := range listed {
		p, err := timezone.At(strings.ToUpper(name), 0)
		if err != nil || p.Zone != name {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	data, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	var want []string
	for _, file := range data.File {
		if !strings.HasSuffix(file.Name, "/") && file.Name != "Factory" {
			want = append(want, file.Name)
		}
	}
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("zones.txt has %d zones, and the data of Go %d: write its names to the file", len(listed), len(want))
	}
}

// The periods of each zone, one after the other, must agree with package time at every
// instant.
func TestPeriodsFollowEachOther(t *testing.T) {
	const first, last = -3_000_000_000, 6_000_000_000 // 1874 to 2160
	for _, name := range zones(t) {
		location, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		at := int64(first)
		for n := 0; at < last; n++ {
			p, err := timezone.At(name, at)
			if err != nil {
				t.Fatal(err)
			}
			if p.From != nil && *p.From > at || p.Until != nil && *p.Until <= at || n > 2000 {
				t.Fatalf("%s at %d, in period %d: %+v", name, at, n, p)
			}
			end := int64(last)
			if p.Until != nil {
				end = *p.Until
			}
			for _, in := range []int64{at, at + (end-at)/2, end - 1} {
				if abbreviation, offset := time.Unix(in, 0).In(location).Zone(); offset != p.Offset || abbreviation != p.Abbreviation {
					t.Fatalf("%s at %d: %+v, want %d %s", name, in, p, offset, abbreviation)
				}
			}
			at = end
		}
	}
}

func TestTheOffsetOfAZoneIsKnownAtTheEnds(t *testing.T) {
	p, err := timezone.At("europe/berlin", 1_774_746_000) // the last second of standard time and one more
	if err != nil || p.Offset != 7200 || p.Abbreviation != "CEST" || p.From == nil || *p.From != 1_774_746_000 || p.Until == nil || *p.Until != 1_792_890_000 {
		t.Errorf("%+v, %v", p, err)
	}
	for at, want := range map[int64]int{-timezone.MaxSeconds: 3208, timezone.MaxSeconds: 7200} {
		if p, err := timezone.At("Europe/Berlin", at); err != nil || p.Offset != want {
			t.Errorf("at %d: %+v, %v", at, p, err)
		}
	}
	if p, err := timezone.At("UTC", 0); err != nil || p != (timezone.Period{Zone: "UTC", Abbreviation: "UTC"}) {
		t.Errorf("UTC: %+v, %v", p, err)
	}
}

func TestUnknownZonesAreRefused(t *testing.T) {
	for _, zone := range []string{
		"", "Local", "localtime", "posixrules", "Factory", "Europe", "Europe/", "/etc/passwd", "../Europe/Berlin", "right/Europe/Berlin",
		"posix/Europe/Berlin", "zone.tab", "+01:00", "Europe/Berlin\x00", " UTC", strings.Repeat("UTC", 1000), "K\u212a",
	} {
		if p, err := timezone.At(zone, 0); fault.Of(err).Code != fault.Invalid {
			t.Errorf("%.30q: %+v, %v", zone, p, err)
		}
	}
	if _, err := timezone.At("UTC", timezone.MaxSeconds+1); fault.Of(err).Code != fault.Invalid {
		t.Error(err)
	}
}
