package config

import (
	"fmt"
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"runner.example/internal/fault"
	"runner.example/internal/settings"
)

// MemoryLimit returns the memory that this process can have, in bytes: the memory of the
// machine, or the limit of its cgroup if that is lower. limited reports whether it is the
// limit of the cgroup. limit is math.MaxInt64 if neither is known.
func MemoryLimit() (limit int64, limited bool) {
	limit = math.MaxInt64
	if n, err := memlimit.FromSystem(); err == nil && n <= math.MaxInt64 {
		limit = int64(n)
	}
	if n, err := memlimit.FromCgroup(); err == nil && n < uint64(limit) {
		return int64(n), true
	}
	return limit, false
}

// serverBytes is what the server needs in addition to its memory limits: the store with its
// tables and logs, compiled modules, and connections.
const serverBytes = 160 << 20

// FitMemory lowers the memory limits that are not set, so that they fit into limit bytes: handlers
// get at most half of what the server leaves, bodies and answers an eighth each. Each keeps enough
// for one handler, body or answer of the default size. The error names those that do not fit, with
// their sum. It returns how much of limit the Go heap may take.
func (c *Config) FitMemory(limit int64) (heap int64, err error) {
	front, sandbox := &c.Runtime.Front, &c.Runtime.Sandbox
	rest := max(limit-serverBytes, 0)
	handlers := sandbox.TotalMemory()
	fit := func(section, key string, value *int64, fitting int64) {
		if _, set := c.values.Place(section, key); !set && *value != fitting {
			*value = fitting
			c.values.SetBy(settings.Machine, section, key, "")
		}
	}
	fit("sandbox", "total_memory", &sandbox.TotalMemoryBytes, max(min(handlers, rest/2), sandbox.MemoryBytes))
	handlers = sandbox.TotalMemory()
	fit("front", "body_memory", &front.MaxBodyMemory, max(min(front.MaxBodyMemory, rest/8), c.Runtime.BodyBytes))
	fit("front", "answer_memory", &front.MaxAnswerMemory,
		max(min(front.MaxAnswerMemory, rest/8), int64(c.Runtime.Limits.ResponseBytes)))
	sum := handlers + front.MaxBodyMemory + front.MaxAnswerMemory + serverBytes
	if sum > limit {
		mb := func(n int64) string { return fmt.Sprintf("%dmb", n>>20) }
		return 0, fault.New(fault.Invalid,
			"the limits of memory add up to %s, and this process can have %s: [sandbox] total_memory %s, [front] body_memory %s, [front] answer_memory %s, and %s for the server; lower them, or give it more memory",
			mb(sum), mb(limit), mb(handlers), mb(front.MaxBodyMemory), mb(front.MaxAnswerMemory), mb(serverBytes))
	}
	return limit - handlers - front.MaxAnswerMemory, nil // the memory of handlers and answers is not in the heap
}
