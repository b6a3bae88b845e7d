package settings

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Unit is a suffix and its amount, in nanoseconds or bytes.
type Unit struct {
	suffix string
	size   int64
}

// The units of durations in flags and in settings, which may be shorter, and of sizes.
var (
	FlagDurations = []Unit{
		{"s", int64(time.Second)}, {"m", int64(time.Minute)}, {"h", int64(time.Hour)},
		{"d", 24 * int64(time.Hour)}, {"w", 7 * 24 * int64(time.Hour)},
	}
	SettingDurations = append([]Unit{{"ms", int64(time.Millisecond)}}, FlagDurations...)
	sizes            = []Unit{{"b", 1}, {"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}}
)

// ParseDuration parses one whole number with one of the units.
func ParseDuration(text string, units []Unit) (time.Duration, error) {
	return durationOf(text, units, "s")
}

// ParseLifetime parses the duration of a flag. usual is the unit that people mean by a number alone: d for the
// lifetime of a key.
func ParseLifetime(text, usual string) (time.Duration, error) {
	return durationOf(text, FlagDurations, usual)
}

func durationOf(text string, units []Unit, usual string) (time.Duration, error) {
	n, ok := parseAmount(text, units)
	if !ok && wellFormed(text, units) {
		return 0, fmt.Errorf("%s is longer than can be counted", text)
	}
	if !ok {
		return 0, fmt.Errorf("%q is not a duration: write one whole number and one unit of %s%s",
			text, suffixes(units), exampleFor(text, units, usual))
	}
	return time.Duration(n), nil
}

// exampleFor says which duration was probably meant: 60s by 60, when seconds are usual, or by 60 s; 90s by 1m30s.
// If that is not known, it gives other examples.
func exampleFor(text string, units []Unit, usual string) string {
	text = strings.ReplaceAll(text, " ", "")
	if text != "" && strings.Trim(text, "0123456789") == "" {
		text += usual
	}
	d, err := time.ParseDuration(text)
	for _, meant := range []string{text, FormatDuration(d)} {
		if n, ok := parseAmount(meant, units); ok && (meant == text || err == nil && n == int64(d)) {
			return " (did you mean " + meant + "?)"
		}
	}
	return ", such as 30s or 90d"
}

// ParseSize parses one whole number with b, kb, mb or gb.
func ParseSize(text string) (int64, error) {
	n, ok := parseAmount(text, sizes)
	if !ok {
		return 0, fmt.Errorf("%q is not a size: write one whole number and one unit of %s, such as 64kb",
			text, suffixes(sizes))
	}
	return n, nil
}

func parseAmount(text string, units []Unit) (int64, bool) {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz")
	if digits == "" || digits[0] < '0' || digits[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, false
	}
	for _, u := range units {
		if text[len(digits):] == u.suffix && n <= math.MaxInt64/u.size {
			return n * u.size, true
		}
	}
	return 0, false
}

// wellFormed reports whether text is a number of any length with one of the units.
func wellFormed(text string, units []Unit) bool {
	suffix := strings.TrimLeft(text, "0123456789")
	return suffix != text && slices.ContainsFunc(units, func(u Unit) bool { return u.suffix == suffix })
}

func suffixes(units []Unit) string {
	names := make([]string, len(units))
	for i, u := range units {
		names[i] = u.suffix
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// FormatDuration returns the text that ParseDuration parses as d, in the largest unit without
// a remainder, weeks excepted.
func FormatDuration(d time.Duration) string {
	return formatAmount(int64(d), SettingDurations[:len(SettingDurations)-1])
}

// FormatSize returns the text that ParseSize parses as n.
func FormatSize(n int64) string { return formatAmount(n, sizes) }

func formatAmount(n int64, units []Unit) string {
	for i := len(units) - 1; i > 0; i-- {
		if u := units[i]; n != 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n/units[0].size, 10) + units[0].suffix
}
