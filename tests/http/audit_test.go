package http_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// Any client can send invalid credentials, from one address or from many. The number of log
// lines and audit records is limited, and the counts in the records are complete.
func TestRefusedCredentialsLeaveFewLogLinesAndRecords(t *testing.T) {
	one, many := 400, 800
	if os.Getenv("RUNNER_SOAK") != "" {
		one, many = 40_000, 80_000
	}
	a := harness.NewApp(t, limitedSchema, "[front]\ntrusted_proxies = [\"127.0.0.1/32\"]\n", "echo")
	s := a.Serve()
	refuse := func(n int, address func(i int) string) {
		t.Helper()
		const batch = 400
		for i := 0; i < n; i += batch {
			var all strings.Builder
			for j := range batch {
				fmt.Fprintf(&all, "GET /v1/a HTTP/1.1\r\nHost: x\r\nX-API-Key: junk\r\nX-Forwarded-For: %s\r\n", address(i+j))
				if j == batch-1 {
					all.WriteString("Connection: close\r\n")
				}
				all.WriteString("\r\n")
			}
			reply := s.Raw(all.String(), harness.Timeout)
			if got := strings.Count(reply, "HTTP/1.1 401 ") + strings.Count(reply, "HTTP/1.1 429 "); got != batch {
				t.Fatalf("%d of %d were refused", got, batch)
			}
		}
	}
	refuse(one, func(int) string { return "192.0.2.1" })
	// Each minute has lines for the first five, the 8th, the 16th and so on. The test may take a few minutes.
	if lines := strings.Count(s.Stderr.String(), "credential refused"); lines < 10 || lines > 100 || lines > one/4 {
		t.Errorf("%d lines about %d refusals of one address", lines, one)
	}
	refuse(many, func(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255) })
	s.Stop()

	sum, loudest, records := 0, 0, 0
	for _, r := range a.Audit(t) {
		if r["action"] != "credentials.refuse" {
			continue
		}
		records++
		sum += int(r["count"].(float64))
		if r["address"] == "192.0.2.1" {
			loudest += int(r["count"].(float64))
		}
	}
	if records > 100 || sum != one+many || loudest < one-(one+many)/1025 || loudest > one {
		t.Errorf("%d records of %d refusals, %d of them of one address; want few of %d, %d of them", records, sum, loudest, one+many, one)
	}
	a.Must("audit", "verify")
}
