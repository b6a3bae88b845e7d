package handlerbench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/longwork"
	"runner.example/hostabi/outbound"
	"runner.example/internal/clock"
	"runner.example/internal/console"
	"runner.example/internal/deadline"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/wasm"
	"runner.example/keystore"
	"runner.example/node/app"
	"runner.example/runtime"
	"runner.example/runtime/sandbox"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/schema/syntax"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// Options are the input of Run.
type Options struct {
	App *app.App
	// Logger logs the lines of the handler. It must redact.
	Logger *slog.Logger
	// Module is the path of a module, Handler the name of a handler in it.
	Module, Handler string
	// Request is the path of an HTTP/1.1 message; empty: GET /. Params are parameters of the
	// path, name=value.
	Request string
	Params  []string
	// Runs is the number of measured runs.
	Runs int
}

// Spread is the median and the 99th percentile of the runs.
type Spread struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
}

// Result is the document of `runner bench-handler --json`.
type Result struct {
	Module        string `json:"module"`
	Handler       string `json:"handler"`
	Runs          int    `json:"runs"`
	Status        int    `json:"status"`
	AnswerBytes   int    `json:"answerBytes"`
	TimeMicros    Spread `json:"timeMicros"`
	RestoreMicros Spread `json:"restoreMicros"`
	Fuel          Spread `json:"fuel"`
	ChangedPages  Spread `json:"changedPages"`
	PageBytes     int    `json:"pageBytes"`
	MemoryBytes   Spread `json:"memoryBytes"`
	HostCalls     Spread `json:"hostCalls"`
	MovedBytes    Spread `json:"movedBytes"`
}

// Run measures a handler in a sandbox, with an empty store in memory, after some runs that do not
// count.
func Run(ctx context.Context, opt Options) (_ *Result, err error) {
	a, path, handler := opt.App, opt.Module, opt.Handler
	if opt.Runs < 1 || opt.Runs > 10_000_000 {
		return nil, console.Invalid("--runs: %d is outside 1..10000000", opt.Runs)
	}
	request, err := readRequest(opt)
	if err != nil {
		return nil, err
	}
	file, err := wasm.ReadFile(path, wasm.DefaultLimits().ModuleBytes)
	if err != nil {
		return nil, console.Invalid("%s: %v", path, err)
	}
	s, sources, err := readSchema(a)
	if err != nil {
		return nil, err
	}
	bundle := &runtime.Bundle{Schema: s, Sources: sources, Modules: []runtime.ModuleFile{{Name: path, Wasm: file}}}
	if err := a.ReadTrees(bundle); err != nil {
		return nil, err
	}
	h, close, err := newHost(ctx, opt, s, sources)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, close()) }()
	options := a.ToolOptions()
	options.Logger, options.NoBreaker = h.host.Logger, true
	engine, err := sandbox.New(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close(ctx)) }()
	module, err := engine.LoadAs(ctx, path, file, runtime.ModuleSettings(s, bundle.Modules[0]))
	if err != nil {
		return nil, err
	}
	offered := module.Offers(func(name string) bool { return name == handler })
	if !slices.Contains(offered, handler) {
		var names []string
		for _, name := range offered {
			names = append(names, Exported(name))
		}
		return nil, &console.Failure{Status: console.StatusNotFound, Err: fmt.Errorf("%s has no handler %q", path, handler),
			Hint: "its handlers are " + strings.Join(names, ", ")}
	}
	call := &hostabi.Call{
		Input: hostabi.Input{Host: h.host, Request: request, Address: netip.AddrFrom4([4]byte{127, 0, 0, 1})},
	}
	const warmUp = 10
	usages := make([]sandbox.Usage, 0, opt.Runs)
	for i := range warmUp + opt.Runs {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		u, err := h.measure(ctx, module, call, handler, a.Config.Runtime.Timeout)
		if err != nil {
			f := fault.Of(err)
			text, _, _ := strings.Cut(f.Error(), "\n")
			return nil, fmt.Errorf("run %d of %s: %s", i+1, Exported(handler), text)
		}
		if i >= warmUp {
			usages = append(usages, u)
		}
	}
	return summarize(path, handler, call, usages), nil
}

// Exported returns the name of an export, which may be any text: quoted if needed.
func Exported(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` || strings.ContainsAny(name, ", ") {
		return q
	}
	return name
}

// host is the host of the measured handler, with an empty store in memory.
type host struct {
	host  *hostabi.Host
	store *store.Store
}

// readSchema compiles the schema of an app, which may have none.
func readSchema(a *app.App) (*schema.Schema, []diag.Source, error) {
	if _, err := syntax.Load(a.Dir); err != nil {
		s, _ := compiler.Compile(nil, compiler.Options{})
		return s, nil, nil
	}
	return a.Compile()
}

func newHost(ctx context.Context, opt Options, s *schema.Schema, sources []diag.Source) (b *host, close func() error, err error) {
	a := opt.App
	values, err := a.Secrets(s.Secrets)
	if err != nil {
		return nil, nil, err
	}
	st, err := store.Open(store.Options{})
	if err != nil {
		return nil, nil, err
	}
	keys, err := keystore.Open(ctx, st, keystore.Options{})
	if err != nil {
		return nil, nil, errors.Join(err, st.Close())
	}
	rows, err := entity.Activate(ctx, st, s, sources, entity.Options{})
	if err != nil {
		return nil, nil, errors.Join(err, keys.Close(), st.Close())
	}
	origins, err := outbound.ParseOrigins(s.Outbound)
	if err != nil {
		return nil, nil, errors.Join(err, keys.Close(), st.Close())
	}
	client := outbound.New(a.Config.Runtime.Outbound)
	passwords := a.Config.Runtime.Passwords
	long := longwork.New(passwords.LongWork)
	shared := hostabi.NewHost(hostabi.Host{
		Keystore: keys, Entities: rows, Schema: s, Secrets: values, Logger: opt.Logger, Limits: a.Config.Runtime.Limits,
		Origins: origins.WithPublic(s.OutboundPublic), Outbound: client, Passwords: passwords.Hashes, LongWork: long,
	})
	return &host{shared, st}, func() error {
		client.Close()
		long.Close()
		return errors.Join(keys.Close(), st.Close())
	}, nil
}

// errMeasured makes the store discard the writes of a run.
var errMeasured = errors.New("measured")

func (b *host) measure(ctx context.Context, m *sandbox.Module, call *hostabi.Call, handler string, timeout time.Duration) (u sandbox.Usage, err error) {
	deadline := deadline.New(ctx, clock.In(timeout))
	defer deadline.Stop()
	_, err = b.store.Update(deadline, func(tx *store.Tx) error {
		call.Context, call.Tx, call.Attempt = deadline, tx, tx.Attempt()
		var err error
		if u, err = m.Measure(call, handler); err != nil {
			return err
		}
		return errMeasured
	})
	if errors.Is(err, errMeasured) {
		err = nil
	}
	return u, err
}

// readRequest reads the request from a file; GET / without one.
func readRequest(opt Options) (*abi.Request, error) {
	r := &abi.Request{ID: "00000000000000000000000000", Method: []byte("GET"), Path: []byte("/"), Route: "/"}
	for _, p := range opt.Params {
		name, value, ok := strings.Cut(p, "=")
		if !ok {
			return nil, console.Invalid("--param: %q is not name=value", p)
		}
		r.Params = append(r.Params, pairOf(name, value))
	}
	if opt.Request == "" {
		return r, nil
	}
	text, err := os.ReadFile(opt.Request)
	if err != nil {
		return nil, console.Invalid("read request: %v", err)
	}
	rest := bufio.NewReader(bytes.NewReader(text))
	message, err := http.ReadRequest(rest)
	if err != nil {
		return nil, console.Invalid("%s is not an HTTP/1.1 message: %v", opt.Request, err)
	}
	framed := message.Header.Get("Content-Length") != "" || message.TransferEncoding != nil
	if r.Body, err = io.ReadAll(message.Body); err == nil && !framed {
		r.Body, err = io.ReadAll(rest) // a handwritten file has no length
	}
	if err != nil {
		return nil, console.Invalid("%s: the body does not match its headers: %v", opt.Request, err)
	}
	r.Method, r.Path = []byte(message.Method), []byte(message.URL.EscapedPath())
	if message.URL.RawQuery != "" || message.URL.ForceQuery {
		r.RawQuery = []byte(message.URL.RawQuery)
	}
	for pair := range strings.SplitSeq(message.URL.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, err1 := url.QueryUnescape(name)
		value, err2 := url.QueryUnescape(value)
		if err := cmp.Or(err1, err2); err != nil {
			return nil, console.Invalid("%s: the query: %v", opt.Request, err)
		}
		if pair != "" {
			r.Query = append(r.Query, pairOf(name, value))
		}
	}
	message.Header.Set("Host", message.Host)
	for _, name := range slices.Sorted(maps.Keys(message.Header)) {
		r.Headers = append(r.Headers, pairOf(strings.ToLower(name), strings.Join(message.Header[name], ", ")))
	}
	return r, nil
}

func pairOf(name, value string) abi.Pair { return abi.Pair{Name: []byte(name), Value: []byte(value)} }

func summarize(path, handler string, call *hostabi.Call, usages []sandbox.Usage) *Result {
	of := func(number func(u *sandbox.Usage) float64) Spread {
		all := make([]float64, len(usages))
		for i := range usages {
			all[i] = number(&usages[i])
		}
		slices.Sort(all)
		return Spread{all[len(all)/2], all[len(all)*99/100]}
	}
	micros := func(d time.Duration) float64 { return float64(d) / 1e3 }
	return &Result{
		Module: path, Handler: handler, Runs: len(usages),
		Status: call.Response.Status, AnswerBytes: len(call.Response.Body),
		TimeMicros:    of(func(u *sandbox.Usage) float64 { return micros(u.Time) }),
		RestoreMicros: of(func(u *sandbox.Usage) float64 { return micros(u.Restore) }),
		Fuel:          of(func(u *sandbox.Usage) float64 { return float64(u.Fuel) }),
		ChangedPages:  of(func(u *sandbox.Usage) float64 { return float64(u.ChangedPages) }),
		PageBytes:     usages[0].PageBytes,
		MemoryBytes:   of(func(u *sandbox.Usage) float64 { return float64(u.MemoryBytes) }),
		HostCalls:     of(func(u *sandbox.Usage) float64 { return float64(u.HostCalls) }),
		MovedBytes:    of(func(u *sandbox.Usage) float64 { return float64(u.MovedBytes) }),
	}
}
