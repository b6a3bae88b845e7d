package work

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// log has some hundred lines of a server.
var log = func() string {
	next := random()
	methods, paths := []string{"GET", "POST", "DELETE"}, []string{"orders", "customers", "sessions"}
	failures := []string{"connection refused by", "Timeout while reading from", "connection reset by peer"}
	var lines []string
	for i := range 300 {
		start := fmt.Sprintf("2026-03-07T09:%02d:%02dZ web-%d", i/60, i%60, next(4))
		if next(10) == 0 {
			lines = append(lines, fmt.Sprintf("%s ERROR %s 10.0.%d.%d:5432", start, failures[next(3)], next(8), next(250)))
			continue
		}
		path := fmt.Sprintf("/api/%s/%d?page=%d&token=t%d", paths[next(3)], next(9000), next(20), next(1000000))
		method, status := methods[next(3)], 200
		if next(8) == 0 {
			status = 404
		}
		lines = append(lines, fmt.Sprintf("%s INFO %s %s %d %dms", start, method, path, status, next(90)))
	}
	return strings.Join(lines, "\n")
}()

var (
	request   = regexp.MustCompile(`^(?<time>\S+) (?<host>web-\d+) INFO (?<method>[A-Z]+) (?<path>/\S*) (?<status>\d{3}) (?<millis>\d+)ms$`)
	parameter = regexp.MustCompile(`[?&](\w+)=([^&\s]*)`)
	failure   = regexp.MustCompile(`(?i)timeout|refused|reset by peer`)
	address   = regexp.MustCompile(`\b(\d+\.\d+)\.\d+\.\d+:(\d+)\b`)

	path, status, millis = request.SubexpIndex("path"), request.SubexpIndex("status"), request.SubexpIndex("millis")
)

// LogSummary is what Logs found.
type LogSummary struct {
	Requests int `json:"requests"`
	Missing  int `json:"missing"`
	Millis   int `json:"millis"`
	Pages    int `json:"pages"`
	Failures int `json:"failures"`
	Timeouts int `json:"timeouts"`
	Masked   int `json:"masked"`
}

// Logs searches a log with regular expressions.
func Logs() (s LogSummary) {
	for line := range strings.SplitSeq(log, "\n") {
		fields := request.FindStringSubmatch(line)
		if fields == nil {
			continue
		}
		s.Requests++
		if fields[status] == "404" {
			s.Missing++
		}
		n, _ := strconv.Atoi(fields[millis]) // they are digits
		s.Millis += n
		for _, found := range parameter.FindAllStringSubmatch(fields[path], -1) {
			if found[1] == "page" && found[2] != "0" {
				s.Pages++
			}
		}
	}
	for _, text := range failure.FindAllString(log, -1) {
		s.Failures++
		if strings.ToLower(text) == "timeout" {
			s.Timeouts++
		}
	}
	s.Masked = len(address.ReplaceAllString(log, "${1}.x.x:${2}"))
	return s
}
