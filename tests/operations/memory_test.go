package operations_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// limitedBinary is a program that runs the runner in a cgroup with a limit of memory, which
// setLimit changes.
func limitedBinary(t *testing.T, bytes int64) (binary string, setLimit func(bytes int64)) {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip(err)
	}
	dir, file := "", ""
	for line := range strings.Lines(string(own)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case fields[1] == "memory":
			dir, file = filepath.Join("/sys/fs/cgroup/memory", fields[2]), "memory.limit_in_bytes"
		case fields[0] == "0" && dir == "":
			dir, file = filepath.Join("/sys/fs/cgroup", fields[2]), "memory.max"
		}
	}
	group, err := os.MkdirTemp(dir, "runner-test-")
	if err != nil {
		t.Skip("this process cannot make a cgroup: ", err)
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	if err := os.WriteFile(filepath.Join(group, file), fmt.Append(nil, bytes), 0o644); err != nil {
		t.Skip("this process cannot limit memory: ", err)
	}
	script := filepath.Join(t.TempDir(), "runner")
	text := fmt.Sprintf("#!/bin/sh\necho $$ > %s/cgroup.procs && exec %s \"$@\"\n", group, harness.Binary)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return script, func(bytes int64) {
		if err := os.WriteFile(filepath.Join(group, file), fmt.Append(nil, bytes), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheLimitOfTheCgroupBoundsTheLimitsOfMemory(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	binary, setLimit := limitedBinary(t, 672<<20)
	a.Binary = binary
	s := a.Serve()
	var state struct {
		Memory struct{ Handlers, Bodies, Answers int64 }
	}
	if err := json.Unmarshal([]byte(a.Must("status", "--json")), &state); err != nil {
		t.Fatal(err)
	}
	if m := state.Memory; m.Handlers != 256<<20 || m.Bodies != 64<<20 || m.Answers != 64<<20 {
		t.Errorf("%+v", m)
	}
	setLimit(700 << 20)
	if r := a.Run("reload"); r.Status != 0 || !strings.Contains(r.Stderr, "nothing has changed") {
		t.Errorf("a reload with another limit of the cgroup: %d %s", r.Status, r.Stderr)
	}
	setLimit(672 << 20)
	large := strings.Replace(harness.HostileSchema, "POST /say -> say", "POST /say -> say (body: 64mb)\n  POST /sayMore -> say (body: 60mb)", 1)
	setLimit(656 << 20)
	s.Stop()
	a.Write("app.schema", large)
	if r := a.Run("serve"); r.Status != 3 || !strings.Contains(r.Stderr, "error[E424]: body 64mb is above [front] body_memory, which is 62mb") || strings.Contains(r.Stderr, "60mb") {
		t.Errorf("a body that does not fit: %d %s", r.Status, r.Stderr)
	}
	a.Write("app.schema", harness.HostileSchema)
	setLimit(672 << 20)
	a.Write("runner.toml", "[sandbox]\ntotal_memory = \"2gb\"\n")
	if r := a.Run("serve"); r.Status != 3 || !strings.Contains(r.Stderr, "add up to 2336mb, and this process can have 672mb") {
		t.Errorf("%d %s", r.Status, r.Stderr)
	}
}
