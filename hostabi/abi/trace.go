package abi

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
)

// Trace is the trace that a request belongs to, as its header traceparent says (W3C Trace
// Context, level 2). The zero value means that there is no trace.
type Trace struct {
	// ID has 32 hexadecimal digits in lower case.
	ID    string
	flags string
}

// The parts of a traceparent: version-traceid-parentid-flags.
const (
	traceAt, parentAt, flagsAt = 3, 36, 53
	traceparentBytes           = 55
)

// Trace returns the trace of the request. A header that is not valid is ignored.
func (r *Request) Trace() Trace {
	value := r.Traceparent
	if len(value) < traceparentBytes || value[2] != '-' || value[parentAt-1] != '-' || value[flagsAt-1] != '-' {
		return Trace{}
	}
	version, id, parent, flags := value[:2], value[traceAt:parentAt-1], value[parentAt:flagsAt-1],
		value[flagsAt:traceparentBytes]
	for _, part := range [][]byte{version, id, parent, flags} {
		if !isLowerHex(part) {
			return Trace{}
		}
	}
	known := string(version) == "00"
	switch {
	case string(version) == "ff", isZeros(id), isZeros(parent),
		known && len(value) > traceparentBytes,
		!known && len(value) > traceparentBytes && value[traceparentBytes] != '-':
		return Trace{}
	}
	return Trace{ID: string(id), flags: string(flags)}
}

func isLowerHex(b []byte) bool { return len(bytes.Trim(b, "0123456789abcdef")) == 0 }

func isZeros(b []byte) bool { return len(bytes.Trim(b, "0")) == 0 }

// Traceparent returns the header for a request that is made for this one: the same trace with
// a new span id.
func (t Trace) Traceparent() string {
	var span [8]byte
	for isZeros([]byte(hex.EncodeToString(span[:]))) {
		_, _ = rand.Read(span[:]) // never fails
	}
	return "00-" + t.ID + "-" + hex.EncodeToString(span[:]) + "-" + t.flags
}

// LogID returns the attributes of log lines about the request: requestId, jobId if it is the run of a
// job, and traceId if it belongs to a trace.
func (r *Request) LogID() slog.Attr {
	id := slog.String("requestId", r.ID)
	if r.Job != nil {
		return slog.Attr{Value: slog.GroupValue(id, slog.String("jobId", r.Job.ID))}
	}
	if t := r.Trace(); t.ID != "" {
		return slog.Attr{Value: slog.GroupValue(id, slog.String("traceId", t.ID))} // a group without a name is inlined
	}
	return id
}
