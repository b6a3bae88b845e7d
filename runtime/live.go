package runtime

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/runtime/front"
	"runner.example/runtime/live"
	"runner.example/runtime/router"
	"runner.example/schema"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// The kinds of events of live routes.
const (
	eventValue   = "value"   // the body of an answer with a status below 400
	eventProblem = "problem" // the error in place of a value; the watch goes on
	eventEnd     = "end"     // the error that ends the watch
)

// maxLiveValue is the size limit of a value, in bytes.
const maxLiveValue = 1 << 20

var (
	errNotLive    = fault.New(fault.RouteNotFound, "the route of this path is not live: only GET routes with live: can be watched")
	errNotText    = errors.New("the answer of a live route must be UTF-8 text")
	errLargeValue = fmt.Errorf("the answer of a live route may have at most %d KiB", maxLiveValue>>10)
	errLiveMemory = fault.New(fault.Overloaded, "no memory for a value of this size at the moment: see [live] value_memory")
	methodGet     = []byte("GET")
)

// liveQuery is what a live value is computed from. The handler sees no header and no address, so watches with equal
// queries share its runs.
type liveQuery struct {
	path   []byte
	raw    []byte // the query string as received; nil if there is none
	pairs  []abi.Pair
	caller caller.Caller
	// activation is that of the bundle that has admitted the caller. The query runs on no other bundle, which may require
	// more of the caller.
	activation uint64
}

// newLiveQuery returns the query of a caller whom a has admitted. It copies the path and the query string.
func newLiveQuery(a *activeBundle, path, raw []byte, who caller.Caller) (q liveQuery, err error) {
	q = liveQuery{path: bytes.Clone(path), raw: bytes.Clone(raw), caller: who, activation: a.activation}
	q.pairs, err = front.ParseQuery(q.raw)
	return q, err
}

// key returns a key that only queries with equal fields share.
func (q *liveQuery) key() string {
	who := q.caller
	who.Claimed = nil // it is computed from Claims
	text, err := json.Marshal(who)
	if err != nil {
		panic("BUG: marshal a caller: " + err.Error())
	}
	key := make([]byte, 0, len(q.path)+len(q.raw)+len(text)+12)
	key = binary.BigEndian.AppendUint64(key, q.activation)
	key = append(append(key, q.path...), ' ') // neither it nor the query has a space
	key = append(append(key, q.raw...), ' ')
	return string(append(key, text...))
}

// liveRoute returns the live route of a path, and sets m to the match.
func (a *activeBundle) liveRoute(path []byte, m *router.Match) (*route, error) {
	switch a.router.Match(methodGet, path, m) {
	case router.Found:
	case router.BadPath:
		return nil, errBadPath
	default:
		return nil, errRouteNotFound
	}
	if rt := &a.routes[m.Route]; rt.Live > 0 {
		return rt, nil
	}
	return nil, errNotLive
}

// newLive returns the hub of the live routes.
func (r *Runtime) newLive() *live.Hub[liveQuery] {
	return live.New(r.opt.Live, live.Host[liveQuery]{
		Run: r.runLive, Watch: r.opt.Store.Watch,
		TooLarge: func(int) live.Event { return problemEvent(eventProblem, errLiveMemory, "") },
	})
}

// runLive runs the handler of a query on the active bundle.
func (r *Runtime) runLive(ctx context.Context, q *liveQuery) (answer live.Answer) {
	r.metrics.liveRuns.Inc()
	inv := r.jobs.runs.Get().(*invocation)
	defer r.jobs.runs.Put(inv)
	id := ids.New(clock.System())
	err := r.onActive(func(a *activeBundle, _ int) (err error) {
		var m router.Match
		rt, err := a.liveRoute(q.path, &m)
		if err != nil || a.activation != q.activation { // the next check moves its subscriptions to another query, or ends them
			return nil
		}
		inv.begin()
		defer inv.end()
		inv.input = q.input(rt, m.Params, id)
		answer, err = r.readLive(ctx, a, rt, inv)
		return err
	})
	if err != nil { // no release is active, or it changes too often: the hub runs the query later
		return live.Answer{}
	}
	return answer
}

// input returns the input of the handler for a query.
func (q *liveQuery) input(rt *route, params []abi.Pair, id string) input {
	return input{
		request: &abi.Request{
			ID: id, Method: methodGet, Path: q.path, Route: rt.Path, Params: params, RawQuery: q.raw, Query: q.pairs,
		},
		caller: &q.caller, readOnly: true,
		hostCORS: true, open: q.caller.Kind == caller.Anonymous,
	}
}

// check refuses a query string that does not match the type of the route.
func (q *liveQuery) check(r *Runtime, a *activeBundle, rt *route, m *router.Match) error {
	inv := r.jobs.runs.Get().(*invocation)
	defer r.jobs.runs.Put(inv)
	inv.begin()
	defer inv.end()
	inv.input = q.input(rt, m.Params, "")
	inv.startDeadline(r.serving, rt.timeout)
	return rt.prepare(a, inv)
}

// readLive runs the handler once, on one snapshot of the store. The error matches entity.ErrOutdated: the bundle has been
// replaced.
func (r *Runtime) readLive(ctx context.Context, a *activeBundle, rt *route, inv *invocation) (answer live.Answer, err error) {
	inv.startDeadline(ctx, rt.timeout)
	call := &inv.call
	if err = rt.prepare(a, inv); err == nil {
		answer.Reads, err = r.opt.Store.ViewReads(inv.deadline, func(tx *store.Tx) error {
			call.Tx = tx
			call.Attempt++
			return cmp.Or(rt.runOnce(call, &inv.work), checkValue(&call.Response))
		})
		answer.Timed = call.ReadsClock() || rt.query.HasDefaultNow()
		if errors.Is(err, entity.ErrOutdated) {
			return answer, err
		}
		err = r.recordFailure(ctx, a, rt, inv, rt.invokeFault(ctx, err))
	}
	answer.Event = liveEvent(&call.Response, err, inv.input.request.ID)
	answer.Failed = failed(&call.Response, err)
	if answer.Reads != nil {
		answer.Event.Commit = answer.Reads.Snapshot
		if answer.Reads.Len() > r.opt.Live.Ranges {
			entity.WidenReads(answer.Reads)
		}
	}
	return answer, nil
}

// checkValue refuses an answer that cannot be the data of an event.
func checkValue(got *abi.Response) error {
	switch {
	case got.Status >= 400:
		return nil
	case len(got.Body) > maxLiveValue:
		return fault.Wrap(errLargeValue, fault.HandlerFailed, "")
	case !utf8.Valid(got.Body):
		return fault.Wrap(errNotText, fault.HandlerFailed, "")
	}
	return nil
}

// failed reports whether a run that has returned got and err has a status of 500 or above.
func failed(got *abi.Response, err error) bool {
	if err != nil && err != errWritesDiscarded {
		return front.ProblemOf(err, "").Status >= 500
	}
	return got.Status >= 500
}

// liveEvent returns the event of a run that has returned got and err. It has no kind if the server could not run the
// handler at the moment.
func liveEvent(got *abi.Response, err error, id string) live.Event {
	switch {
	case err != nil && err != errWritesDiscarded:
		switch fault.CodeOf(err) {
		case fault.Unavailable, fault.Overloaded, fault.NotReady:
			return live.Event{}
		}
		return problemEvent(eventProblem, err, id)
	case got.Code != "":
		return encodeProblem(eventProblem, front.ProblemOfResponse(got, ""), id)
	case got.Status >= 400:
		return encodeProblem(eventProblem, front.Problem{Status: got.Status, Code: string(fault.OfStatus(got.Status))}, id)
	}
	return newEvent(eventValue, appendData(make([]byte, 0, len(got.Body)+16), got.Body), nil)
}

// problemEvent returns the event of an error, with the id of the request if that is not empty.
func problemEvent(kind string, err error, id string) live.Event {
	p := front.ProblemOf(err, "")
	if invalid, ok := errors.AsType[*inputError](err); ok {
		p.Errors = invalid.errors
	}
	return encodeProblem(kind, p, id)
}

// encodeProblem returns the event of a problem. Its hash does not cover the id of the request.
func encodeProblem(kind string, p front.Problem, id string) live.Event {
	anonymous := appendData(nil, p.Append(nil))
	p.RequestID = id
	e := newEvent(kind, appendData(nil, p.Append(nil)), anonymous)
	e.Last = kind == eventEnd
	return e
}

// newEvent returns an event with the data. Its hash covers the kind and hashed, or data if hashed is nil. The hash is a
// cryptographic one, so that it is hard to find two values with the same hash: clients would not get the second one.
func newEvent(kind string, data, hashed []byte) live.Event {
	if hashed == nil {
		hashed = data
	}
	h := sha256.New()
	_, _ = h.Write([]byte(kind))
	_, _ = h.Write(hashed)
	return live.Event{Kind: kind, Hash: binary.BigEndian.Uint64(h.Sum(nil)), Data: data}
}

// appendData appends text as the data of an event: a line for each line of it, and the empty line after them (HTML
// Standard, 9.2.6).
func appendData(dst, text []byte) []byte {
	for {
		end := bytes.IndexAny(text, "\r\n")
		line := text
		if end >= 0 {
			line = text[:end]
		}
		dst = append(append(append(dst, "data: "...), line...), '\n')
		if end < 0 {
			return append(dst, '\n')
		}
		if text[end] == '\r' && end+1 < len(text) && text[end+1] == '\n' {
			end++
		}
		text = text[end+1:]
	}
}

// addLivePaths adds the route of shared connections for each prefix that has live routes. Pages of other origins may read a
// connection if they may read each of these live routes.
func (a *activeBundle) addLivePaths() {
	shared := map[string]int{}
	for i := range a.schema.Routes {
		declared := &a.schema.Routes[i]
		if declared.Live == 0 {
			continue
		}
		at, known := shared[declared.Prefix]
		if !known {
			at = len(a.routes)
			shared[declared.Prefix] = at
			a.routes = append(a.routes, route{
				Route:  &schema.Route{Method: "POST", Path: declared.LivePath(), Prefix: declared.Prefix, CORS: declared.CORS},
				shared: true,
			})
		}
		of := a.routes[at].Route
		of.Live = max(of.Live, declared.Live)
		of.Auth.Session = of.Auth.Session || declared.Auth.Session // a request to it may send the cookie
		if !slices.Equal(of.CORS, declared.CORS) {
			of.CORS = nil
		}
	}
}
