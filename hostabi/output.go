package hostabi

import "log/slog"

// output is what a run produces beside its Response.
type output struct {
	keepsWrites    bool
	overloaded     bool
	setCookie      string // the header; empty: none
	opened         string // the session that this run has opened
	log            logBudget
	reports        []report // of the guest
	failed         *Failure // see SetFailure
	byHost         bool     // see SetFailure
	stdout, stderr logStream
	crash          crash // lines of stderr that are not logged yet
}

func (o *output) reset(c *Call) {
	*o = output{
		stdout: logStream{call: c, level: slog.LevelInfo, line: o.stdout.line[:0], most: c.limits.LogBytes},
		stderr: logStream{
			call: c, level: slog.LevelWarn, line: o.stderr.line[:0], most: max(c.limits.LogBytes, maxCrashBytes),
		},
	}
}

// SetCookie returns the value of the header Set-Cookie that passes the client the session
// that the handler created, or removes the one that it revoked; empty if it did neither.
// Send it only when the writes are committed.
func (o *output) SetCookie() string { return o.setCookie }

// KeepsWrites reports whether the handler asked to commit its writes with any answer.
func (o *output) KeepsWrites() bool { return o.keepsWrites }

// Overloaded reports whether there was no memory for the body of the answer.
func (o *output) Overloaded() bool { return o.overloaded }
