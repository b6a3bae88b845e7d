package apptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/runtime"
	"runner.example/state/entity"
	"runner.example/state/jobs"
	"runner.example/state/store"
)

// session is one run of a test file: it answers the operation "test" of its module. The arguments are an object
// whose member do says what to do; the other members are those of the argument's type in the table commands.
type session struct {
	run  *fileRun
	stop context.CancelCauseFunc // ends the run of the module

	mu     sync.Mutex
	turn   int            // how many tests have begun and ended
	bases  []*environment // what tests begin with: that of the file first, then those of blocks with a beforeAll
	hooks  *environment   // of the hooks that run outside of tests: a fork of the last base; nil: none has done anything
	test   *environment   // of the test that runs; nil: none
	timer  *time.Timer
	output []string // that the test has logged itself
}

// commands are what a test file can ask for.
var commands = map[string]func(*session, context.Context, []byte) (any, error){
	"file":      (*session).file,
	"tests":     command((*session).tests),
	"step":      command((*session).step),
	"base":      (*session).pushBase,
	"unbase":    (*session).popBase,
	"begin":     command((*session).begin),
	"end":       command((*session).end),
	"client":    inEnvironment((*session).client),
	"request":   inEnvironment((*session).request),
	"rows":      inEnvironment((*session).rows),
	"clock":     inEnvironment((*session).clock),
	"jobs":      inEnvironment((*session).jobs),
	"call":      inEnvironment((*session).call),
	"fetches":   inEnvironment((*session).fetches),
	"answer":    inEnvironment((*session).answer),
	"failed":    command((*session).failed),
	"snapshots": command((*session).snapshots),
}

// command makes a command of a method that takes the arguments.
func command[A any](do func(*session, context.Context, A) (any, error)) func(*session, context.Context, []byte) (any, error) {
	return func(s *session, ctx context.Context, text []byte) (any, error) {
		var args A
		if err := json.Unmarshal(text, &args); err != nil {
			return nil, fmt.Errorf("BUG: arguments of a test: %w", err)
		}
		return do(s, ctx, args)
	}
}

// inEnvironment makes a command of a method that works in the environment of the test that runs. Operations run at once, so one of a
// test that has ended may arrive when the next one runs: its turn is another. Then the module does not wait for the result.
func inEnvironment[A any](do func(*session, context.Context, *environment, A) (any, error)) func(*session, context.Context, []byte) (any, error) {
	return func(s *session, ctx context.Context, text []byte) (any, error) {
		var args A
		var in struct {
			Turn int `json:"turn"`
		}
		if err := errors.Join(json.Unmarshal(text, &args), json.Unmarshal(text, &in)); err != nil {
			return nil, fmt.Errorf("BUG: arguments of a test: %w", err)
		}
		s.mu.Lock()
		if in.Turn != s.turn {
			s.mu.Unlock()
			return nil, nil
		}
		w, err := s.environmentLocked(ctx)
		s.mu.Unlock()
		if err != nil {
			return nil, err
		}
		return do(s, ctx, w, args)
	}
}

// answerTest is hostabi.Host.Test.
func (s *session) answerTest(ctx context.Context, text []byte) ([]byte, error) {
	var named struct {
		Do string `json:"do"`
	}
	if err := json.Unmarshal(text, &named); err != nil {
		return nil, fault.New(fault.Invalid, "arguments of a test are an object of JSON")
	}
	do := commands[named.Do]
	if do == nil {
		return nil, fault.New(fault.Invalid, "a test cannot %q", named.Do)
	}
	result, err := do(s, ctx, text)
	if err != nil { // the author of the test may see all of it
		code := fault.CodeOf(err)
		if code == fault.Internal {
			code = fault.Invalid
		}
		return nil, fault.New(code, "%s", err.Error())
	}
	return json.Marshal(result)
}

type nothing struct{}

// file answers what the module must know about its file.
func (s *session) file(context.Context, []byte) (any, error) {
	return struct {
		File      string            `json:"file"`
		Run       []int             `json:"run"`
		Update    bool              `json:"update"`
		Snapshots map[string]string `json:"snapshots"`
		Timeout   int64             `json:"timeout"` // milliseconds, of a test that names none
		Seed      uint64            `json:"seed"`
	}{s.run.file, s.run.rest, s.run.app.Update, s.run.snapshots, s.run.app.Timeout.Milliseconds(), s.run.app.Seed}, nil
}

// tests decides which tests run.
func (s *session) tests(_ context.Context, args struct {
	Tests []declared `json:"tests"`
}) (any, error) {
	return map[string][]int{"run": s.run.choose(args.Tests)}, nil
}

// environment is that of the test, or of the hooks outside of tests.
func (s *session) environment(ctx context.Context) (*environment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.environmentLocked(ctx)
}

func (s *session) environmentLocked(ctx context.Context) (_ *environment, err error) {
	if s.test != nil {
		return s.test, nil
	}
	if s.hooks == nil {
		s.hooks, err = s.base().fork(ctx, s.run.file)
	}
	return s.hooks, err
}

// base is what the next test begins with.
func (s *session) base() *environment { return s.bases[len(s.bases)-1] }

// grace is how long a step may be over its time before the run of the module is stopped. The module ends a step itself,
// unless its code does not return.
const grace = time.Second

// step begins the function of a test or of a hook, with a limit of its time.
func (s *session) step(_ context.Context, args struct {
	What    string  `json:"what"`
	Timeout float64 `json:"timeout"`
}) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disarmLocked()
	limit := time.Duration(min(args.Timeout, maxTimeout) * float64(time.Millisecond))
	s.timer = time.AfterFunc(limit+grace, func() {
		s.stop(fmt.Errorf("%s took longer than %s", args.What, limit))
	})
	return nothing{}, nil
}

// maxTimeout is the longest limit, in milliseconds: a year.
const maxTimeout = 365 * 24 * 3600 * 1000

// disarmLocked ends the limit of a step, which has ended.
func (s *session) disarmLocked() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// pushBase has the next tests begin as the hooks have left their environment.
func (s *session) pushBase(ctx context.Context, _ []byte) (any, error) {
	w, err := s.environment(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disarmLocked()
	s.bases, s.hooks = append(s.bases, w), nil
	return nothing{}, nil
}

// popBase goes back to the base before, and discards what hooks have done since.
func (s *session) popBase(context.Context, []byte) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disarmLocked()
	if len(s.bases) < 2 {
		return nil, errors.New("BUG: unbase without base")
	}
	var err error
	if s.hooks != nil {
		err = s.hooks.close()
	}
	err = errors.Join(err, s.base().close())
	s.bases, s.hooks = s.bases[:len(s.bases)-1], nil
	return nothing{}, err
}

// begin begins a test: in a new fork.
func (s *session) begin(ctx context.Context, args struct {
	Test int `json:"test"`
}) (any, error) {
	began := clock.Mark()
	w, err := s.base().fork(ctx, s.run.nameOf(args.Test))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disarmLocked()
	s.test = w
	s.turn++
	s.run.begin(args.Test, began)
	return nothing{}, nil
}

// end ends a test.
func (s *session) end(ctx context.Context, args struct {
	Test   int      `json:"test"`
	Status Status   `json:"status"`
	Error  *Problem `json:"error"`
}) (any, error) {
	s.mu.Lock()
	s.disarmLocked()
	w := s.test
	s.test = nil
	s.turn++
	s.mu.Unlock()
	if w == nil { // a hook beforeAll has failed
		w, err := s.environment(ctx)
		if err != nil {
			return nil, err
		}
		s.run.begin(args.Test, clock.Mark())
		s.run.end(args.Test, args.Status, args.Error, w, s.takeOutput())
		return nothing{}, nil
	}
	failed := w.close()
	if failed != nil {
		w.log.logger().Error("test not ended cleanly", "cause", failed)
	}
	s.run.end(args.Test, args.Status, args.Error, w, s.takeOutput())
	return nothing{}, nil
}

// failed takes the failure of a hook after all tests.
func (s *session) failed(_ context.Context, args struct {
	Error *Problem `json:"error"`
}) (any, error) {
	s.run.fail(args.Error)
	return nothing{}, nil
}

// client makes a client.
func (s *session) client(ctx context.Context, w *environment, spec clientSpec) (any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients = append(w.clients, newClient(spec))
	return map[string]int{"client": len(w.clients) - 1}, nil
}

func (s *session) request(ctx context.Context, w *environment, r sentRequest) (any, error) {
	return w.send(ctx, r.Client, r)
}

// rows does an operation on rows as an operator.
func (s *session) rows(ctx context.Context, w *environment, args struct {
	Op   string         `json:"op"`
	Args map[string]any `json:"args"`
}) (any, error) {
	model, err := w.runtime.Entities()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(args.Args)
	if err != nil {
		return nil, err
	}
	defer w.calendar.move(tick)
	var result json.RawMessage
	_, err = w.store.Update(ctx, func(tx *store.Tx) error {
		var access entity.Access
		var out entity.Result
		access.Reset(model, tx, &operator.Caller, math.MaxInt)
		access.Import, access.Context = true, ctx
		err := access.Do(args.Op, text, &out)
		result = bytes.Clone(out.JSON)
		return err
	})
	return result, err
}

// clock sets or moves the time, and returns it in milliseconds since 1970.
func (s *session) clock(ctx context.Context, w *environment, args struct {
	Set     *time.Time `json:"set"`
	Advance float64    `json:"advance"` // milliseconds
}) (any, error) {
	switch {
	case args.Set != nil:
		if err := validTime("clock.set", args.Set.UnixMilli()); err != nil {
			return nil, err
		}
		if err := w.setTime(ctx, *args.Set); err != nil {
			return nil, err
		}
	case args.Advance < 0:
		return nil, fault.New(fault.Invalid, "clock.advance: time only moves ahead: use clock.set to go back")
	case args.Advance > 0:
		if args.Advance > maxMove {
			return nil, fault.New(fault.Invalid, "clock.advance: the time moves by at most 292 years at once: use clock.set")
		}
		if err := validTime("clock.advance", w.calendar.Now().UnixMilli()+int64(args.Advance)); err != nil {
			return nil, err
		}
		w.calendar.move(time.Duration(args.Advance * float64(time.Millisecond)))
	}
	return map[string]int64{"now": w.calendar.Now().UnixMilli()}, nil
}

// maxMove is the farthest that the time moves at once, in milliseconds: what a time.Duration holds, 292 years.
const maxMove = float64(math.MaxInt64/time.Millisecond) - 1

// validTime refuses milliseconds since 1970 outside of the years that the app can use.
func validTime(of string, ms int64) error {
	if first, end := int64(0), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli(); ms < first || ms >= end {
		return fault.New(fault.Invalid, "%s: the time must be in the years 1970 to 9999", of)
	}
	return nil
}

// jobs runs or lists jobs.
func (s *session) jobs(ctx context.Context, w *environment, args struct {
	Op     string          `json:"op"`
	Name   string          `json:"name"`
	Params json.RawMessage `json:"params"`
	Tenant string          `json:"tenant"`
}) (any, error) {
	filter := jobs.Filter{Name: args.Name, Limit: 1000}
	switch args.Op {
	case "run":
		return w.runJobs(ctx)
	case "enqueue":
		by := operator.Caller
		by.Tenant = args.Tenant
		var enqueued jobs.Enqueued
		_, err := w.store.Update(ctx, func(tx *store.Tx) (err error) {
			enqueued, err = jobs.Enqueue(tx, w.runtime.Schema(), &by, jobs.Request{Name: args.Name, Params: args.Params}, w.keys.Now(), nil)
			return err
		})
		return enqueued, err
	case "list":
	case "failed":
		filter.State = jobs.Failed
	case "waiting":
		filter.State = jobs.Waiting
	default:
		return nil, fmt.Errorf("BUG: jobs cannot %q", args.Op)
	}
	return w.listJobs(ctx, filter)
}

// runJobs runs the jobs that are due, and returns those that ran, the first first.
func (w *environment) runJobs(ctx context.Context) ([]jobs.Job, error) {
	w.jobs.Lock()
	defer w.jobs.Unlock()
	before, err := w.listJobs(ctx, jobs.Filter{Limit: 1000})
	if err != nil {
		return nil, err
	}
	if err := w.runtime.RunJobs(ctx); err != nil {
		return nil, err
	}
	w.calendar.move(tick)
	after, err := w.listJobs(ctx, jobs.Filter{Limit: 1000})
	attempts := map[string]int{}
	for _, j := range before {
		attempts[j.ID] = j.Attempt
	}
	ran := slices.DeleteFunc(after, func(j jobs.Job) bool { return j.Attempt == attempts[j.ID] })
	slices.Reverse(ran)
	return ran, err
}

func (w *environment) listJobs(ctx context.Context, filter jobs.Filter) (all []jobs.Job, err error) {
	err = w.store.View(ctx, func(tx *store.Tx) error {
		page, err := jobs.List(tx, filter)
		all = page.Jobs
		return err
	})
	return all, err
}

// call calls a function as an operator.
func (s *session) call(ctx context.Context, w *environment, args struct {
	Function string          `json:"function"`
	Params   json.RawMessage `json:"params"`
	Tenant   string          `json:"tenant"`
	User     string          `json:"user"`
}) (any, error) {
	who := operator.Caller
	who.Tenant = args.Tenant
	if args.User != "" {
		who.UserID = args.User
	}
	got, err := w.runtime.Call(ctx, runtime.FunctionCall{
		Name: args.Function, Params: args.Params, Caller: who, RequestID: ids.New(w.calendar.Now()),
	})
	if err != nil {
		return nil, err
	}
	w.calendar.move(tick)
	var body any = json.RawMessage(got.Body)
	switch {
	case got.Code != "" && len(got.Body) == 0:
		body = struct {
			Code   string          `json:"code"`
			Detail string          `json:"detail"`
			Errors json.RawMessage `json:"errors,omitempty"`
		}{got.Code, got.Detail, got.Errors}
	case len(got.Body) == 0:
		body = nil
	case !json.Valid(got.Body):
		body = string(got.Body)
	}
	return struct {
		Status int `json:"status"`
		Body   any `json:"body"` // JSON or text; null: none
	}{got.Status, body}, nil
}

// fetches waits for the next request that a handler sends.
func (s *session) fetches(ctx context.Context, w *environment, _ nothing) (any, error) {
	sent, err := w.fetches.next(ctx)
	if sent == nil {
		return nil, err
	}
	return sent, err
}

func (s *session) answer(ctx context.Context, w *environment, a fetchAnswer) (any, error) {
	return nothing{}, w.fetches.answer(a)
}

// snapshots takes the snapshots of the file.
func (s *session) snapshots(_ context.Context, args struct {
	Write  map[string]string `json:"write"`
	Unused []string          `json:"unused"`
}) (any, error) {
	s.run.keepSnapshots(args.Write, args.Unused)
	return nothing{}, nil
}

// close closes the environments of the session.
func (s *session) close() error {
	s.mu.Lock()
	s.disarmLocked()
	s.mu.Unlock()
	var all []error
	if s.test != nil {
		all = append(all, s.test.close())
	}
	if s.hooks != nil {
		all = append(all, s.hooks.close())
	}
	for _, w := range slices.Backward(s.bases) {
		all = append(all, w.close())
	}
	return errors.Join(all...)
}
