package settings_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/internal/settings"
)

// options has a field of each kind, with each tag.
type options struct {
	Name    string         `toml:"front.name" default:"edge" nonempty:"true"`
	Mode    string         `toml:"front.mode" default:"fast" oneof:"fast|safe|off"`
	Count   int            `toml:"front.count" default:"3" min:"1" max:"9" reload:"true"`
	Big     int64          `toml:"front.big"`
	Size    int64          `toml:"front.size" unit:"size" default:"64kb" min:"2kb" max:"1mb" multiple:"2kb"`
	Timeout time.Duration  `toml:"front.timeout" default:"30s" min:"10ms" max:"1h" reload:"true"`
	Checks  bool           `toml:"front.checks" default:"true"`
	NoLog   bool           `toml:"log.enabled,not" default:"true"`
	Origins []string       `toml:"log.origins"`
	Nets    []netip.Prefix `toml:"log.nets"`
	Word    upper          `toml:"log.word" default:"abc"`
	Nested
	Inner inner
	Plain string        // no setting
	Pause time.Duration `default:"2s"` // no setting, but filled
}

// Nested is embedded: its settings are those of options.
type Nested struct {
	Deep int `toml:"inner.deep" default:"6"`
}

type inner struct {
	Same int `toml:"front.count" default:"3" min:"1" max:"9"` // the same setting
	Own  int `toml:"inner.own" default:"5"`
}

// MarshalText is what the test of InForce reads.
func (u upper) MarshalText() ([]byte, error) { return []byte(u.text), nil }

// upper is a text with a rule of its own.
type upper struct{ text string }

func (u *upper) UnmarshalText(text []byte) error {
	if strings.Contains(string(text), " ") {
		return errors.New("expected one word")
	}
	u.text = strings.ToUpper(string(text))
	return nil
}

func (o *options) CheckSetting(key, value string) error {
	if value == "forbidden" {
		return fmt.Errorf("expected another value of %s", key)
	}
	return nil
}

// defaults are those of the tags.
func defaults() options {
	return options{
		Name: "edge", Mode: "fast", Count: 3, Size: 64 << 10, Timeout: 30 * time.Second, Checks: true, NoLog: false, Word: upper{"ABC"},
		Nested: Nested{6}, Inner: inner{Same: 3, Own: 5}, Pause: 2 * time.Second,
	}
}

func read(t testing.TB, file string, environ ...string) (options, *settings.Values) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runner.toml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	var o options
	v, err := settings.Read(path, false, environ, &o)
	if err != nil {
		t.Fatal(err)
	}
	return o, v
}

func problems(v *settings.Values) (all []string) {
	for _, d := range v.Problems.Sorted() {
		all = append(all, d.Message)
	}
	return all
}

func TestEveryFieldWithoutAValueHasItsDefault(t *testing.T) {
	got, v := read(t, "")
	if !reflect.DeepEqual(got, defaults()) || len(problems(v)) > 0 {
		t.Errorf("read %+v, %q", got, problems(v))
	}
	var set options
	settings.SetDefaults(&set)
	if !reflect.DeepEqual(set, defaults()) {
		t.Errorf("SetDefaults: %+v", set)
	}
	filled := options{Count: 8, Inner: inner{Own: 6}}
	settings.FillZero(&filled)
	want := defaults()
	want.Count, want.Inner.Own = 8, 6
	want.Checks, want.NoLog, want.Deep = false, false, 0 // zero is a value of the file
	if !reflect.DeepEqual(filled, want) {
		t.Errorf("FillZero: %+v", filled)
	}
	changed := options{Count: 8, Name: "x", Plain: "kept"}
	settings.SetDefaults(&changed)
	want = defaults()
	want.Plain = "kept"
	if !reflect.DeepEqual(changed, want) {
		t.Errorf("SetDefaults of other values: %+v", changed)
	}
}

func TestTheEnvironmentOverridesTheFileWhichOverridesTheDefaults(t *testing.T) {
	const file = `[front]
name = "file"
count = 5
big = 2147483647
size = "1mb"
timeout = "1h"
checks = false
[log]
enabled = false
origins = ["a", "b"]
nets = ["10.1.2.3/8", "::1"]
word = "xyz"
[inner]
own = 0
`
	got, v := read(t, file)
	want := options{
		Name: "file", Mode: "fast", Count: 5, Big: math.MaxInt32, Size: 1 << 20, Timeout: time.Hour, NoLog: true, Origins: []string{"a", "b"},
		Nets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}, Word: upper{"XYZ"}, Nested: Nested{6}, Inner: inner{Same: 5}, Pause: 2 * time.Second,
	}
	if !reflect.DeepEqual(got, want) || len(problems(v)) > 0 {
		t.Errorf("the file: %+v, %q", got, problems(v))
	}
	for _, row := range []struct {
		section, key string
		line, col    int
	}{{"front", "name", 2, 8}, {"front", "count", 3, 9}, {"log", "origins", 10, 11}, {"inner", "own", 14, 7}} {
		if place, ok := v.Place(row.section, row.key); !ok || place.Start.Line != row.line || place.Start.Col != row.col || filepath.Base(place.File) != "runner.toml" {
			t.Errorf("[%s] %s is at %+v, %v; want %d:%d", row.section, row.key, place, ok, row.line, row.col)
		}
	}
	if _, ok := v.Place("front", "mode"); ok {
		t.Error("a default has a place")
	}

	got, v = read(t, file, "RUNNER_FRONT_COUNT=9", "RUNNER_LOG_ENABLED=true", "RUNNER_LOG_ORIGINS= c , ,d", "RUNNER_LOG_NETS=", "RUNNER_FRONT_TIMEOUT=10ms", "RUNNER_FRONT_NAME=a=b")
	want.Count, want.Inner.Same, want.NoLog, want.Origins, want.Nets, want.Timeout, want.Name = 9, 9, false, []string{"c", "d"}, nil, 10*time.Millisecond, "a=b"
	if len(got.Nets) == 0 {
		got.Nets = nil
	}
	if !reflect.DeepEqual(got, want) || len(problems(v)) > 0 {
		t.Errorf("the environment: %+v, %q", got, problems(v))
	}
	if place, ok := v.Place("front", "count"); !ok || place.File != "RUNNER_FRONT_COUNT" {
		t.Errorf("the place is %+v, %v", place, ok)
	}
}

// Each limit is tried with the last value that is valid and the first that is not.
func TestLimitsAreInclusive(t *testing.T) {
	for _, row := range []struct{ key, valid, invalid, want string }{
		{"front.count", "1", "0", "0 is outside 1..9"},
		{"front.count", "9", "10", "10 is outside 1..9"},
		{"front.big", "0", "-1", "-1 is outside 0..2147483647"},
		{"front.big", "2147483647", "2147483648", "2147483648 is outside 0..2147483647"},
		{"front.size", "2kb", "2047b", "2047b is too small: it must be at least 2kb"},
		{"front.size", "1mb", "1026kb", "1026kb is too large: it must be at most 1mb"},
		{"front.size", "4kb", "3kb", "3kb is not a multiple of 2kb"},
		{"front.timeout", "10ms", "9ms", "9ms is too short: it must be at least 10ms"},
		{"front.timeout", "1h", "61m", "61m is too long: it must be at most 1h"},
		{"front.name", "x", "", "it must not be empty"},
		{"front.mode", "off", "of", `expected fast, safe or off, found "of"`},
		{"front.mode", "safe", "", `expected fast, safe or off, found ""`},
		{"front.name", "allowed", "forbidden", "expected another value of front.name"},
		{"log.origins", "allowed", "a,forbidden", "expected another value of log.origins"},
		{"log.nets", "10.0.0.0/8,::/0", "10.0.0.0/33", `"10.0.0.0/33" is not a network: write it as 10.0.0.0/8, or a single address`},
		{"log.word", "x", "x y", "expected one word"},
		{"front.checks", "true", "yes", `expected true or false, found "yes"`},
		{"front.count", "2", "2.0", `"2.0" is not a whole number`},
		{"front.size", "2kb", "2", `"2" is not a size: write one whole number and one unit of b, kb, mb or gb, such as 64kb`},
	} {
		section, key, _ := strings.Cut(row.key, ".")
		variable := "RUNNER_" + strings.ToUpper(section+"_"+key) + "="
		if _, v := read(t, "", variable+row.valid); len(problems(v)) > 0 {
			t.Errorf("%s%s: %q", variable, row.valid, problems(v))
		}
		_, v := read(t, "", variable+row.invalid)
		want := fmt.Sprintf("[%s] %s: %s", section, key, row.want)
		if got := problems(v); len(got) != 1 || got[0] != want || !v.Problems.HasErrors() {
			t.Errorf("%s%s: %q, want %q", variable, row.invalid, got, want)
		}
	}
}

// All errors of a file are reported at once, each with its place, and never with the line of the file.
func TestAllErrorsOfAFileAreReportedAtOnce(t *testing.T) {
	const file = `loose = 1
[front]
name = 5
count = "three"
timeout = 30
size = true
checks = "yes"
cuont = 1
mode = "s3cr3t"
origins = ["a"]
[log]
origins = "a"
nets = ["10.0.0.0/8", 7, "x"]
word = 2026-01-01
[fornt]
name = "s3cr3t"
[secrets]
api = "s3cr3t"
empty = ""
number = 5
[vars]
text = "a"
whole = 5
yes = true
half = 0.5
`
	_, v := read(t, file)
	want := []string{
		`1:1 key "loose" is in no section`,
		`3:8 [front] name: expected a string in quotes, found the number 5`,
		`4:9 [front] count: expected a whole number, found a string`,
		`5:11 [front] timeout: expected a duration in quotes, such as "30s", found the number 30`,
		`6:8 [front] size: expected a size in quotes, such as "64mb", found true`,
		`7:10 [front] checks: expected true or false, found a string`,
		`8:1 unknown key "cuont" in [front] (did you mean "count"?)`,
		`9:8 [front] mode: expected fast, safe or off, found "s3cr3t"`,
		`10:1 unknown key "origins" in [front] (it belongs to [log])`,
		`12:11 [log] origins: expected a list of strings, such as ["a", "b"], found a string`,
		`13:8 [log] nets: "x" is not a network: write it as 10.0.0.0/8, or a single address`,
		`13:8 [log] nets: expected a list of strings, found the number 7`,
		`14:8 [log] word: expected a string in quotes, found a date`,
		`15:2 unknown section [fornt] (did you mean "front"?)`,
		`19:1 secret "empty" must be a string in quotes, and not an empty one`,
		`20:1 secret "number" must be a string in quotes, and not an empty one`,
		`25:1 variable "half" must be a string in quotes, a whole number, true or false; write a decimal in quotes too`,
	}
	var got []string
	for _, d := range v.Problems.Sorted() {
		got = append(got, fmt.Sprintf("%d:%d %s", d.Span.Start.Line, d.Span.Start.Col, d.Message))
	}
	if !slices.Equal(got, want) {
		t.Errorf("reported\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !reflect.DeepEqual(v.Secrets, map[string]string{"api": "s3cr3t"}) || v.SecretPlaces["api"].Start.Line != 18 {
		t.Errorf("the secrets are %v at %v", v.Secrets, v.SecretPlaces)
	}
	for name, text := range map[string]string{"text": "a", "whole": "5", "yes": "true"} {
		if given := v.Vars[name]; given.Text != text || given.Place.Start.Line == 0 {
			t.Errorf("the variable %s is %+v", name, given)
		}
	}
	if _, there := v.Vars["half"]; there {
		t.Error("a variable with an error has a value")
	}
}

func TestAFileThatIsNotTOMLIsOneErrorWithoutItsText(t *testing.T) {
	for file, want := range map[string]string{
		"[front]\nname = s3cr3t\n":         "2:8 not TOML here: write strings in quotes",
		"[front]\nname = \"s3cr3t\n":       "2:15 not TOML here: strings cannot contain newlines",
		"[front]\ncount = 1\ncount = 2\n":  "3:1 not TOML here: the key was defined before: keep it once",
		"[secrets]\nname = \"s3\\cr3t\"\n": `2:9 not TOML here: write a backslash in a string as \\`,
	} {
		_, v := read(t, file)
		var got []string
		for _, d := range v.Problems.Sorted() {
			got = append(got, fmt.Sprintf("%d:%d %s", d.Span.Start.Line, d.Span.Start.Col, d.Message))
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
	}
}

func TestAVariableThatLooksMisspeltIsAWarning(t *testing.T) {
	_, v := read(t, "", "RUNNER_FRONT_CUONT=1", "RUNNER_PORT_8080_TCP=tcp://x", "RUNNER_SECRETS_FRONT_COUNT=x", "PATH=/bin", "RUNNER_VARS_limit=7", "runner_front_count=1")
	if got := problems(v); len(got) != 1 || got[0] != `no setting has this variable (did you mean "RUNNER_FRONT_COUNT"?)` || v.Problems.HasErrors() {
		t.Errorf("reported %q", got)
	}
	if given := v.Vars["limit"]; given.Text != "7" || given.Place.File != "RUNNER_VARS_limit" {
		t.Errorf("the variable is %+v", given)
	}
}

func TestTheFile(t *testing.T) {
	var o options
	missing := filepath.Join(t.TempDir(), "runner.toml")
	if v, err := settings.Read(missing, true, nil, &o); err != nil || !reflect.DeepEqual(o, defaults()) || len(problems(v)) > 0 {
		t.Errorf("an optional file that is missing: %+v, %v", o, err)
	}
	if _, err := settings.Read(missing, false, nil, &o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is missing: %v", err)
	}
	const most = 1 << 20
	for size, want := range map[int]bool{most: true, most + 1: false} {
		if err := os.WriteFile(missing, []byte(strings.Repeat("#", size-1)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := settings.Read(missing, true, nil, &o); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "more than 1024 KiB") {
			t.Errorf("a file of %d bytes: %v", size, err)
		}
	}
}

func TestSettingsInForceSayWhereTheyComeFrom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runner.toml")
	text := "[front]\ncount = 4\nmode = \"safe\"\n[log]\nenabled = false\norigins = [\"https://ada:geheim@a.example\"]\n" +
		"[secrets]\nfile = \"geheim\"\nboth = \"geheim\"\n[vars]\nplan = \"a\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var o options
	v, err := settings.Read(path, false, []string{
		"RUNNER_FRONT_COUNT=5", "RUNNER_SECRETS_both=geheim", "RUNNER_SECRETS_path_FILE=/run/geheim", "RUNNER_SECRETS_path=geheim",
		"RUNNER_SECRETS_other_FILE=/run/geheim", "RUNNER_SECRETS_both_FILE=/run/geheim", "RUNNER_VARS_more=7",
	}, &o)
	if err != nil || len(v.Problems) > 0 {
		t.Fatal(err, v.Problems)
	}
	o.Name, o.Size = "given", 2<<10
	v.SetBy(settings.Flag, "front", "name", "--name")
	v.SetBy(settings.Machine, "front", "size", "")
	if _, set := v.Place("front", "size"); set {
		t.Error("a limit that was lowered counts as set")
	}
	var got []string
	for _, s := range v.InForce([]string{"log", "front", "inner"}, &o) {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", s.Name, s.Value, s.From, strings.TrimPrefix(s.Place, path))))
	}
	want := []string{
		`log.enabled false file :5:11`, `log.origins ["https://ada:xxxxx@a.example"] file :6:11`, `log.nets [] default`, `log.word "ABC" default`,
		`front.name "given" flag --name`, `front.mode "safe" file :3:8`, `front.count 5 environment RUNNER_FRONT_COUNT`, `front.big 0 default`,
		`front.size "2kb" machine`, `front.timeout "30s" default`, `front.checks true default`, `inner.deep 6 default`, `inner.own 5 default`,
		`secrets.both null environment RUNNER_SECRETS_both`, `secrets.file null file :8:1`,
		`secrets.other null environment RUNNER_SECRETS_other_FILE`, `secrets.path null environment RUNNER_SECRETS_path`,
		`vars.more "7" environment RUNNER_VARS_more`, `vars.plan "a" file :11:1`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if text := fmt.Sprint(got); strings.Contains(text, "geheim") {
		t.Error("a secret is shown")
	}
}

func TestChangedSettingsAreNamedOnce(t *testing.T) {
	before, after := defaults(), defaults()
	if reload, restart := settings.Changed([]any{&before}, []any{&after}); len(reload)+len(restart) > 0 {
		t.Errorf("nothing has changed: %q, %q", reload, restart)
	}
	after.Count, after.Inner.Same, after.Timeout, after.Name, after.Nets, after.Plain = 4, 4, 1, "x", []netip.Prefix{{}}, "x"
	reload, restart := settings.Changed([]any{&before}, []any{&after})
	if !slices.Equal(reload, []string{"[front] count", "[front] timeout"}) || !slices.Equal(restart, []string{"[front] name", "[log] nets"}) {
		t.Errorf("a reload applies %q, a restart %q", reload, restart)
	}
}

// The generated file has every setting, and is read as the defaults.
func TestTheTemplateIsReadAsTheDefaults(t *testing.T) {
	comment := func(_ reflect.Type, field string) string {
		return "Comment of " + field + ", which Timeout limits; " + strings.Repeat("words ", 20)
	}
	text := string(settings.Template([]string{"log", "front", "inner"}, comment, &options{}))
	got, v := read(t, text)
	got.Origins, got.Nets = nil, nil // empty lists
	if !reflect.DeepEqual(got, defaults()) || len(problems(v)) > 0 {
		t.Errorf("read %+v, %q:\n%s", got, problems(v), text)
	}
	if strings.Count(text, "\ncount = ") != 1 || strings.Index(text, "[log]") > strings.Index(text, "[front]") ||
		!strings.Contains(text, "# Comment of timeout, which timeout limits;") || strings.Count(text, "A reload") != 2 {
		t.Errorf("the template:\n%s", text)
	}
	for line := range strings.Lines(text) {
		if len(line) > 89 {
			t.Errorf("a line has %d characters: %s", len(line)-1, line)
		}
	}
}

// amount is what a text says, by the rules of the documentation; nil: it is not valid.
func amount(text string, units map[string]int64) *big.Int {
	for suffix, size := range units {
		digits, ok := strings.CutSuffix(text, suffix)
		if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
			continue
		}
		n, _ := new(big.Int).SetString(digits, 10)
		if n.Mul(n, big.NewInt(size)); n.IsInt64() {
			return n
		}
	}
	return nil
}

func FuzzAmounts(f *testing.F) {
	for _, text := range []string{"30s", "0ms", "15w", "90d", "1m30s", "64kb", "9223372036854775807b", "9223372036854775808b", "8589934591gb", "-1s", "+1s", "1.5h", "", "s", "106751d", "106752d", "1 s", "٣s"} {
		f.Add(text)
	}
	durations := map[string]int64{"ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "d": 86400e9, "w": 7 * 86400e9}
	flags := map[string]int64{"s": 1e9, "m": 60e9, "h": 3600e9, "d": 86400e9, "w": 7 * 86400e9}
	sizes := map[string]int64{"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}
	f.Fuzz(func(t *testing.T, text string) {
		check := func(got int64, err error, want *big.Int, back func() string) {
			t.Helper()
			if (err == nil) != (want != nil) || err == nil && got != want.Int64() {
				t.Fatalf("%q is %d, %v; want %v", text, got, err, want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: the error has several lines: %v", text, err)
			}
			if err == nil && amount(back(), durations) == nil && amount(back(), sizes) == nil {
				t.Errorf("%q is written as %q", text, back())
			}
		}
		d, err := settings.ParseDuration(text, settings.SettingDurations)
		check(int64(d), err, amount(text, durations), func() string { return settings.FormatDuration(d) })
		if again, formatErr := settings.ParseDuration(settings.FormatDuration(d), settings.SettingDurations); err == nil && (formatErr != nil || again != d) {
			t.Errorf("%q is written as %q, and that is %v: %v", text, settings.FormatDuration(d), again, formatErr)
		}
		d, err = settings.ParseDuration(text, settings.FlagDurations)
		check(int64(d), err, amount(text, flags), func() string { return settings.FormatDuration(d) })
		n, err := settings.ParseSize(text)
		check(n, err, amount(text, sizes), func() string { return settings.FormatSize(n) })
		if again, formatErr := settings.ParseSize(settings.FormatSize(n)); err == nil && (formatErr != nil || again != n) {
			t.Errorf("%q is written as %q, and that is %v: %v", text, settings.FormatSize(n), again, formatErr)
		}
	})
}

func TestAmountsAreWrittenInTheLargestUnitWithoutARemainder(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ms", time.Millisecond: "1ms", 999 * time.Millisecond: "999ms", time.Second: "1s", 90 * time.Second: "90s", 2 * time.Minute: "2m",
		36 * time.Hour: "36h", 48 * time.Hour: "2d", 7 * 24 * time.Hour: "7d",
	} {
		if got := settings.FormatDuration(d); got != want {
			t.Errorf("%v is written as %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0b", 1023: "1023b", 1024: "1kb", 1025: "1025b", 3 << 20: "3mb", 5 << 30: "5gb", 1 << 42: "4096gb"} {
		if got := settings.FormatSize(n); got != want {
			t.Errorf("%d is written as %q, want %q", n, got, want)
		}
	}
}

// A number alone is answered with the unit that is usual for the flag: days for the lifetime of a key.
func TestALifetimeWithoutUnitNamesTheUsualOne(t *testing.T) {
	for text, want := range map[string]string{"90": "did you mean 90d?", "90 m": "did you mean 90m?", "soon": "one unit of s, m, h, d or w"} {
		if _, err := settings.ParseLifetime(text, "d"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if d, err := settings.ParseLifetime("90d", "d"); err != nil || d != 90*24*time.Hour {
		t.Errorf("90d is %v, %v", d, err)
	}
}

// A duration that is not valid is answered with the one that was probably meant.
func TestAWrongDurationNamesTheRightOne(t *testing.T) {
	for text, want := range map[string]string{
		"60": "did you mean 60s?", "60 s": "did you mean 60s?", "1m30s": "did you mean 90s?", "1h30m": "did you mean 90m?",
		"soon": "such as 30s or 90d", "": "such as 30s or 90d", "1.5s": "did you mean 1500ms?", "99999999999999d": "is longer than can be counted",
	} {
		if _, err := settings.ParseDuration(text, settings.SettingDurations); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
