package backup_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/node/backup"
)

func TestKeepIsNumbersOfDaysWeeksAndMonths(t *testing.T) {
	for text, want := range map[string]backup.Keep{
		"7d,4w": {Days: 7, Weeks: 4}, "1d": {Days: 1}, "4w,7d,12m": {Days: 7, Weeks: 4, Months: 12},
	} {
		if got, err := backup.ParseKeep(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "7", "d", "0d", "-1d", "+7d", "7d,", "7d,8d", "7y", "7 d", "7d 4w", "10001d", "1e3d", "7D"} {
		if got, err := backup.ParseKeep(text); err == nil {
			t.Errorf("%q: %+v, want an error", text, got)
		}
	}
}

// A backup each night, and some by hand: which ones are left after each of 60 days.
func TestDaysAndWeeksAreKept(t *testing.T) {
	keep := backup.Keep{Days: 7, Weeks: 4}
	var left []time.Time
	first := time.Date(2026, 1, 5, 3, 0, 0, 0, time.UTC) // a Monday
	for day := range 60 {
		night := first.AddDate(0, 0, day)
		left = append(left, night)
		if day%3 == 0 {
			left = append(left, night.Add(9*time.Hour)) // by hand: the newest of its day
		}
		kept := keep.Choose(left)
		var next []time.Time
		for i, is := range kept {
			if is {
				next = append(next, left[i])
			}
		}
		left = next
	}
	var got []string
	for _, at := range left {
		got = append(got, at.Format("Mon 2006-01-02 15"))
	}
	// The last day is Thursday, March 5. Of the three weeks before it, Sundays are left.
	want := []string{
		"Sun 2026-02-15 03", "Sun 2026-02-22 12",
		"Fri 2026-02-27 03", "Sat 2026-02-28 12", "Sun 2026-03-01 03", "Mon 2026-03-02 03", "Tue 2026-03-03 12", "Wed 2026-03-04 03", "Thu 2026-03-05 03",
	}
	if !slices.Equal(got, want) {
		t.Errorf("left are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Days without a backup do not count: after a month without any, the old ones are still there.
func TestAPauseDeletesNothing(t *testing.T) {
	at := time.Date(2026, 3, 5, 3, 0, 0, 0, time.UTC)
	var times []time.Time
	for day := range 5 {
		times = append(times, at.AddDate(0, 0, day))
	}
	times = append(times, at.AddDate(0, 6, 0))
	if kept := (backup.Keep{Days: 7}).Choose(times); slices.Contains(kept, false) {
		t.Errorf("kept: %v, want all", kept)
	}
}

func TestWhatIsKeptAgreesWithTheRule(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		keep := backup.Keep{Days: random.IntN(5), Weeks: random.IntN(4), Months: random.IntN(3)}
		times := make([]time.Time, random.IntN(60))
		for i := range times {
			times[i] = time.Unix(1_780_000_000+random.Int64N(200*24*3600), 0)
		}
		kept := keep.Choose(times)
		for i, at := range times {
			newest := func(period func(time.Time) string) (isNewest bool, newerPeriods int) {
				periods := map[string]bool{}
				isNewest = true
				for j, other := range times {
					same := period(other.UTC()) == period(at.UTC())
					isNewest = isNewest && !(same && (other.After(at) || other.Equal(at) && j < i))
					if !same && other.After(at) {
						periods[period(other.UTC())] = true
					}
				}
				return isNewest, len(periods)
			}
			want := !slices.ContainsFunc(times, func(other time.Time) bool { return other.After(at) }) && slices.Index(times, at) == i
			for _, rule := range []struct {
				count  int
				period func(time.Time) string
			}{
				{keep.Days, func(t time.Time) string { return t.Format("2006-01-02") }},
				{keep.Weeks, func(t time.Time) string { y, w := t.ISOWeek(); return fmt.Sprint(y, w) }},
				{keep.Months, func(t time.Time) string { return t.Format("2006-01") }},
			} {
				is, before := newest(rule.period)
				want = want || is && before < rule.count
			}
			if kept[i] != want {
				t.Fatalf("%+v of %v: %v is kept: %v, want %v", keep, times, at, kept[i], want)
			}
		}
	}
}

// aged returns a backup with another time in its head, which is all that InDir reads of older files.
func aged(t *testing.T, content []byte, change func(head map[string]any)) []byte {
	t.Helper()
	lines := bytes.SplitN(content, []byte("\n"), 3)
	var head map[string]any
	if err := json.Unmarshal(lines[1], &head); err != nil {
		t.Fatal(err)
	}
	change(head)
	line, err := json.Marshal(head)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Join([][]byte{lines[0], line, lines[2]}, []byte("\n"))
}

func TestOnlyOldBackupsOfTheStoreAreDeleted(t *testing.T) {
	content, _ := oneBackup(t)
	dir := t.TempDir()
	put := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(text string) func(map[string]any) {
		return func(head map[string]any) { head["created"] = text }
	}
	ours := aged(t, content, at("2020-01-01T03:00:00Z"))
	put("runner-20200101T030000Z.backup", ours)
	put("runner-20200101T020000Z.backup", aged(t, content, at("2020-01-01T02:00:00Z")))
	foreign := []string{
		"notes.txt", "runner-20200102T030000Z.backup.gz", "other-20200102T030000Z.backup", "runner-2020.backup", "runner-20200102T030000Z.backup.partial",
	}
	for _, name := range foreign {
		put(name, aged(t, content, at("2020-01-02T03:00:00Z")))
	}
	for name, content := range map[string][]byte{
		"runner-20200103T030000Z.backup": []byte("not a backup"),
		"runner-20200103T040000Z.backup": nil,
		"runner-20200103T050000Z.backup": ours, // with another time than its name says
		"runner-20200103T060000Z.backup": aged(t, content, func(head map[string]any) { head["created"] = "2020-01-03T06:00:00Z"; head["app"] = "shop" }),
		"runner-20200103T070000Z.backup": aged(t, content, func(head map[string]any) { head["created"] = "2020-01-03T07:00:00Z"; head["pepperCheck"] = "00" }),
	} {
		put(name, content)
		foreign = append(foreign, name)
	}
	if runtime.GOOS != "windows" { // there it needs a right
		if err := os.Symlink(filepath.Join(dir, "notes.txt"), filepath.Join(dir, "runner-20200104T030000Z.backup")); err != nil {
			t.Fatal(err)
		}
		foreign = append(foreign, "runner-20200104T030000Z.backup")
	}
	if err := os.Mkdir(filepath.Join(dir, "runner-20200105T030000Z.backup"), 0o700); err != nil {
		t.Fatal(err)
	}
	foreign = append(foreign, "runner-20200105T030000Z.backup")

	send := func(w io.Writer) error { _, err := w.Write(content); return err }
	broken := func(w io.Writer) error { _, err := w.Write(content[:len(content)-1]); return err }
	if _, _, _, err := backup.InDir(t.Context(), dir, "", backup.Keep{Days: 1}, broken); err == nil {
		t.Error("a backup that is not whole was accepted")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != len(foreign)+2 {
		t.Errorf("after a backup that failed there are %d files, want %d: %v", len(entries), len(foreign)+2, err)
	}
	path, info, changed, err := backup.InDir(t.Context(), dir, "", backup.Keep{Days: 2}, send)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(path)
	if want := "runner-" + info.Created.Format("20060102T150405Z") + ".backup"; name != want {
		t.Errorf("the file is %s, want %s", name, want)
	}
	if !slices.Equal(changed.Kept, []string{"runner-20200101T030000Z.backup", name}) || !slices.Equal(changed.Deleted, []string{"runner-20200101T020000Z.backup"}) {
		t.Errorf("%+v", changed)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	want := append(slices.Clone(foreign), "runner-20200101T030000Z.backup", name)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the directory has %q, want %q", got, want)
	}
	if _, _, _, err := backup.InDir(t.Context(), dir, "", backup.Keep{Days: 2}, send); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a second backup of the same second: %v", err)
	}
}
