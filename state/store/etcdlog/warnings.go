package etcdlog

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// warnEvery is after how long the same warning of etcd is logged again.
const warnEvery = time.Minute

// errFatal is around the reason why etcd cannot run any more.
var errFatal = errors.New("etcd has ended")

// etcdLog is the logger of an etcd server. It hands warnings and errors on. Where etcd would end
// the process or panic, only the goroutine ends: this node still serves reads, and other servers the
// log.
type etcdLog struct {
	logger *slog.Logger
	fatal  chan struct{} // closed when etcd has ended so

	mu      sync.Mutex
	reason  error                // why fatal is closed
	removed bool                 // the server was removed from its cluster
	muted   bool                 // the server is closed, about which etcd warns
	told    map[string]*repeated // by the text of a warning
}

// repeated is a warning that was logged.
type repeated struct {
	at   time.Time
	more int // times since then
}

func newEtcdLog(logger *slog.Logger) *etcdLog {
	return &etcdLog{logger: logger, fatal: make(chan struct{}), told: map[string]*repeated{}}
}

func (l *etcdLog) zap() *zap.Logger {
	return zap.New(l, zap.WithFatalHook(ender{l}), zap.WithPanicHook(ender{l}))
}

// ender ends the goroutine that logged a fatal error.
type ender struct{ log *etcdLog }

// OnWrite is called by zap.
func (e ender) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	e.log.end(fatalError{describe(entry.Entry, fields), causeOf(fields)})
	runtime.Goexit()
}

// fatalError is a fatal error that etcd has logged. It matches errFatal and the error among its fields.
type fatalError struct {
	text  string
	cause error // nil: it has none
}

func (e fatalError) Error() string { return errFatal.Error() + ": " + e.text }

func (e fatalError) Unwrap() []error { return []error{errFatal, e.cause} }

// causeOf returns the error among the fields of a record, nil if there is none.
func causeOf(fields []zapcore.Field) error {
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			return err
		}
	}
	return nil
}

func (l *etcdLog) end(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason == nil {
		l.reason = reason
		close(l.fatal)
	}
}

// mute discards all warnings from now on.
func (l *etcdLog) mute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.muted = true
}

// explain returns a better reason than err if there is one.
func (l *etcdLog) explain(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.removed:
		return ErrRemoved
	case l.reason != nil:
		return l.reason
	}
	return err
}

// Enabled implements zapcore.Core; With, Check, Write and Sync do too.
func (l *etcdLog) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

// With returns the same logger: etcd adds only what the node knows.
func (l *etcdLog) With([]zapcore.Field) zapcore.Core { return l }

// Check adds the logger to what is written.
func (l *etcdLog) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if l.Enabled(entry.Level) {
		return checked.AddCore(entry, l)
	}
	return checked
}

// Write logs a warning or an error, the same text once in a minute.
func (l *etcdLog) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	text := describe(entry, fields)
	if strings.Contains(text, "permanently removed from the cluster") {
		l.mu.Lock()
		l.removed = true
		l.mu.Unlock()
	}
	if slices.Contains(usual, entry.Message) || slices.Contains(usual, text) {
		return nil
	}
	if more, ok := l.due(entry); ok {
		l.logger.Warn("etcd warning", "text", text, "repeated", more)
	}
	return nil
}

// Sync does nothing.
func (l *etcdLog) Sync() error { return nil }

// due reports whether a warning is logged, and how many like it were not since the last one.
func (l *etcdLog) due(entry zapcore.Entry) (more int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.muted {
		return 0, false
	}
	last := l.told[entry.Message]
	if last == nil {
		if len(l.told) > 1000 { // texts with something that varies in them
			clear(l.told)
		}
		l.told[entry.Message] = &repeated{at: entry.Time}
		return 0, true
	}
	if entry.Time.Sub(last.at) < warnEvery {
		last.more++
		return 0, false
	}
	more, last.more, last.at = last.more, 0, entry.Time
	return more, true
}

// usual are warnings that an operator need not know, some only with a certain error.
var usual = []string{
	// About what the runner does on purpose.
	"Running http and grpc server on single port. This is not recommended for production.",
	"exceeded recommended request limit",
	"simple token is not cryptographically signed",
	// A change of the members is tried again: see whenConnected, which returns the error in the end.
	"rejecting member add request; not enough healthy members",
	"rejecting member add request; local member has not been connected to majority peers, reconfigure breaks active quorum",
	"rejecting member promote request; not enough healthy members",
	"rejecting member remove request; not enough healthy members",
	"rejecting member remove request; local member has not been connected to all peers, reconfigure breaks active quorum",
	// A learner has no entry yet.
	"Failed to detect schema version",
	"failed to update storage version",
	// A connection between servers ended. "peer became inactive" says if the other one is not there.
	"closed TCP streaming connection with remote peer",
	"lost TCP streaming connection with remote peer",
	// A server was removed. The runner logs that itself, on both sides.
	"rejected stream from remote peer because it was removed",
	"skipped attributes update of removed member",
	"rejected Raft message from removed member",
	"failed to process Raft message, error cannot process message from removed member",
	"server error", // it has no other reason
	"data-dir used by this member must be removed",
	// A server ends, after the reason was logged.
	"setting up serving from embedded etcd failed.",
	"stopping insecure grpc server due to error",
	"stopped insecure grpc server due to error",
	"stopping secure grpc server due to error",
	"stopped secure grpc server due to error",
}

// describe returns a text with its fields, without what requests contain.
func describe(entry zapcore.Entry, fields []zapcore.Field) string {
	values := zapcore.NewMapObjectEncoder()
	var b strings.Builder
	b.WriteString(entry.Message)
	for _, f := range fields {
		if f.Type == zapcore.SkipType || strings.Contains(f.Key, "request") || strings.Contains(f.Key, "response") {
			continue
		}
		f.AddTo(values)
		if v, ok := values.Fields[f.Key]; ok {
			fmt.Fprintf(&b, ", %s %v", f.Key, v)
		}
	}
	return b.String()
}
