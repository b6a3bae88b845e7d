package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Resources are what the process of a server holds.
type Resources struct {
	Bytes     int64 // resident memory
	PeakBytes int64 // its maximum so far
	OwnBytes  int64 // the part of Bytes that is not the content of files, which the kernel can drop
	Mappings  int   // of memory
	Files     int   // open file descriptors
	CPU       time.Duration
}

// Resources reads what the server's process holds now.
func (s *Server) Resources() (r Resources) {
	s.T.Helper()
	proc := fmt.Sprintf("/proc/%d/", s.Cmd.Process.Pid)
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		s.T.Fatal(err)
	}
	r.Bytes, r.PeakBytes = s.statusLine(string(status), "VmRSS"), s.statusLine(string(status), "VmHWM")
	r.OwnBytes = s.statusLine(string(status), "RssAnon") + s.statusLine(string(status), "RssShmem")
	maps, err := os.ReadFile(proc + "maps")
	if err != nil {
		s.T.Fatal(err)
	}
	files, err := os.ReadDir(proc + "fd")
	if err != nil {
		s.T.Fatal(err)
	}
	stat, err := os.ReadFile(proc + "stat")
	if err != nil {
		s.T.Fatal(err)
	}
	var user, system int64 // in hundredths of a second, after the name in parentheses
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		s.T.Fatal(err)
	}
	r.CPU = time.Duration(user+system) * 10 * time.Millisecond
	r.Mappings, r.Files = strings.Count(string(maps), "\n"), len(files)
	return r
}

// statusLine returns the value of a line of the process's status, in bytes.
func (s *Server) statusLine(status, name string) int64 {
	s.T.Helper()
	_, after, _ := strings.Cut(status, name+":")
	kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(strings.SplitN(after, "\n", 2)[0]), " kB"), 10, 64)
	if err != nil {
		s.T.Fatal(err)
	}
	return kb << 10
}

// ForgetPeak frees the memory of this process that is not used, and resets its peak. The kernel
// counts the peak of this process into Result.PeakBytes: a command begins as a part of it.
func ForgetPeak(t testing.TB) {
	t.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

var wrkRate = regexp.MustCompile(`Requests/sec: +([0-9.]+)`)

// RequestsPerSecond measures how many requests 16 connections get answered. All must be answered with 2xx.
func (s *Server) RequestsPerSecond(path, token string, length time.Duration) float64 {
	s.T.Helper()
	seconds := fmt.Sprintf("-d%ds", int(length.Seconds()))
	out, err := exec.Command("wrk", "-t1", "-c16", seconds, "-H", "Authorization: Bearer "+token, s.URL+path).Output()
	if err != nil {
		s.T.Fatalf("wrk: %v: %s", err, out)
	}
	found := wrkRate.FindSubmatch(out)
	if found == nil || bytes.Contains(out, []byte("Non-2xx")) || bytes.Contains(out, []byte("Socket errors")) {
		s.T.Fatalf("wrk printed\n%s", out)
	}
	n, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		s.T.Fatal(err)
	}
	return n
}
