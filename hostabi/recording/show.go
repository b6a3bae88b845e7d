package recording

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Lines describes the Recording for people, a line for each thing. Lines may have control characters of the guest.
func (r *Recording) Lines() (all []string) {
	line := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	q := &r.Request
	target := string(q.Path)
	if q.RawQuery != nil {
		target += "?" + string(*q.RawQuery)
	}
	line("%s %s  %s %s", r.Kind, r.ID, q.Method, target)
	line("  at       %s, run %d", r.Time.UTC().Format(time.RFC3339Nano), r.Runs)
	line("  handler  %s of %s, release %s", r.Handler, r.Module, cmp.Or(r.Release, "-"))
	line("  caller   %s", r.Caller.describe())
	for _, h := range q.Headers {
		line("  %s: %s", h[0], h[1])
	}
	if len(q.Body) > 0 {
		line("  body     %s", shorten(oneLine(q.Body)))
	}
	n := 0
	for i := range r.Events { // calls are numbered as in a Divergence
		e := &r.Events[i]
		if !e.IsCall() {
			line("  %10s      log %s: %s", milliseconds(e.At), strings.ToLower(e.Name), e.Args)
			continue
		}
		n++
		took := "-"
		if e.Ended() {
			took = milliseconds(e.Took)
		}
		line("  %10s %4d %s → %s (%s)", milliseconds(e.At), n, e.Request(), e.Reply(), took)
	}
	if r.Truncated {
		line("  … the rest was not recorded: it is too large")
	}
	line("%s", r.Outcome.Describe())
	if len(r.Outcome.Frames) > 1 {
		for _, f := range r.Outcome.Frames {
			line("    at %s", f)
		}
	}
	return all
}

func milliseconds(micros int64) string { return fmt.Sprintf("%.3f ms", float64(micros)/1000) }

func (c *Caller) describe() string {
	text := c.Kind
	for _, part := range [][2]string{
		{"user", c.User}, {"key", c.Key}, {"scope", c.Scope}, {"tenant", c.Tenant}, {"roles", strings.Join(c.Roles, ",")},
	} {
		if part[1] != "" {
			text += " " + part[0] + " " + part[1]
		}
	}
	if c.Address.IsValid() {
		text += " from " + c.Address.String()
	}
	return text
}
