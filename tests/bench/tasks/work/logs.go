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
	request = regexp.MustCompile(`^(\S+) (web-\d+) INFO ([A-Z]+) (/\S*) (\d{3}) (\d+)ms$`)
	address = regexp.MustCompile(`\d+\.\d+\.\d+\.\d+:\d+`)
	failure = regexp.MustCompile(`(?i)timeout|refused|reset by peer`)
	secret  = regexp.MustCompile(`([?&]token=)[^&\s]+`)
)

// LogSummary is what Logs found.
type LogSummary struct {
	Requests  int `json:"requests"`
	Missing   int `json:"missing"`
	Millis    int `json:"millis"`
	Addresses int `json:"addresses"`
	Failures  int `json:"failures"`
	Masked    int `json:"masked"`
}

// Logs searches a log with regular expressions.
func Logs() (s LogSummary) {
	for line := range strings.SplitSeq(log, "\n") {
		match := request.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		s.Requests++
		if match[5] == "404" {
			s.Missing++
		}
		millis, _ := strconv.Atoi(match[6]) // they are digits
		s.Millis += millis
	}
	s.Addresses = len(address.FindAllString(log, -1))
	s.Failures = len(failure.FindAllString(log, -1))
	s.Masked = len(secret.ReplaceAllString(log, "${1}***"))
	return s
}
