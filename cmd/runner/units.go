package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// unit is a suffix and how much it stands for, in nanoseconds or bytes.
type unit struct {
	suffix string
	size   int64
}

// The units of durations and sizes. Those of a settings file begin finer than
// those of a flag.
var (
	flagDurations = []unit{
		{"s", int64(time.Second)}, {"m", int64(time.Minute)}, {"h", int64(time.Hour)},
		{"d", 24 * int64(time.Hour)}, {"w", 7 * 24 * int64(time.Hour)},
	}
	fileDurations = append([]unit{{"ms", int64(time.Millisecond)}}, flagDurations...)
	sizes         = []unit{{"b", 1}, {"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}}
)

// parseDuration reads one whole number and one of units.
func parseDuration(text string, units []unit) (time.Duration, error) {
	n, ok := parseAmount(text, units)
	if !ok && wellFormed(text, units) {
		return 0, fmt.Errorf("%s is longer than can be counted", text)
	}
	if !ok {
		return 0, fmt.Errorf("%q is not a duration: write one whole number and one unit of %s, such as 30s or 90d", text, suffixes(units))
	}
	return time.Duration(n), nil
}

// parseSize reads one whole number and one unit of b, kb, mb, gb.
func parseSize(text string) (int64, error) {
	n, ok := parseAmount(text, sizes)
	if !ok {
		return 0, fmt.Errorf("%q is not a size: write one whole number and one unit of %s, such as 64kb", text, suffixes(sizes))
	}
	return n, nil
}

func parseAmount(text string, units []unit) (int64, bool) {
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

// wellFormed reports whether text is a number of any length and one of units.
func wellFormed(text string, units []unit) bool {
	suffix := strings.TrimLeft(text, "0123456789")
	return suffix != text && slices.ContainsFunc(units, func(u unit) bool { return u.suffix == suffix })
}

func suffixes(units []unit) string {
	names := make([]string, len(units))
	for i, u := range units {
		names[i] = u.suffix
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// formatDuration gives the text that parseDuration reads as d, in the largest
// unit that leaves no rest but the week, which few people count in.
func formatDuration(d time.Duration) string {
	return formatAmount(int64(d), fileDurations[:len(fileDurations)-1])
}

// formatSize gives the text that parseSize reads as n.
func formatSize(n int64) string { return formatAmount(n, sizes) }

func formatAmount(n int64, units []unit) string {
	for i := len(units) - 1; i > 0; i-- {
		if u := units[i]; n != 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n/units[0].size, 10) + units[0].suffix
}
