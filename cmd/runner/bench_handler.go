package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"runner.example/app"
	"runner.example/entity"
	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/outbound"
	"runner.example/internal/wasm"
	"runner.example/keystore"
	"runner.example/runtime/sandbox"
	"runner.example/schema/compiler"
	"runner.example/schema/syntax"
	"runner.example/store"
)

const benchHandlerHelp = `Run one handler of a module again and again and show what a request of it takes:
time, memory that it changes and that is put back afterwards, and fuel: passes
through loops, calls, and what they take at worst by 64 ns.

The request is one of an anonymous caller: GET / without --request, else the
HTTP/1.1 message in a file, as it would be sent. What the handler writes to the
store is dropped. The limits are those of the app's runner.toml, and the secrets
those that its schema declares, if there is one.`

// benchHandlerFlags are what the command is told.
type benchHandlerFlags struct {
	request string
	params  []string
	n       int
}

func (c *cli) benchHandlerCommand() *cobra.Command {
	var flags benchHandlerFlags
	cmd := &cobra.Command{
		Use:   "bench-handler <module> <export>",
		Short: "show the time and the memory that a handler takes",
		Long:  benchHandlerHelp,
		Args:  exactly(2, "a module's file and the name of a handler in it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := c.openApp(cmd)
			if err != nil {
				return err
			}
			b, err := c.benchHandler(cmd.Context(), a, args[0], args[1], flags)
			if err != nil {
				return err
			}
			return c.printBench(b)
		},
	}
	cmd.Flags().StringVar(&flags.request, "request", "", "file with the request: an HTTP/1.1 message")
	cmd.Flags().StringArrayVar(&flags.params, "param", nil, "a parameter of the path: name=value (again for more)")
	cmd.Flags().IntVarP(&flags.n, "runs", "n", 1000, "how often to run it")
	return cmd
}

// spread is the median and the 99th percentile of a row of numbers.
type spread struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
}

// benchResult is the document of `runner bench-handler --json`.
type benchResult struct {
	Module        string `json:"module"`
	Handler       string `json:"handler"`
	Runs          int    `json:"runs"`
	Status        int    `json:"status"`
	AnswerBytes   int    `json:"answerBytes"`
	TimeMicros    spread `json:"timeMicros"`
	RestoreMicros spread `json:"restoreMicros"`
	Fuel          spread `json:"fuel"`
	ChangedPages  spread `json:"changedPages"`
	PageBytes     int    `json:"pageBytes"`
	MemoryBytes   spread `json:"memoryBytes"`
	HostCalls     spread `json:"hostCalls"`
	MovedBytes    spread `json:"movedBytes"`
}

// benchHandler runs the handler, a few times before it counts.
func (c *cli) benchHandler(ctx context.Context, a *app.App, path, handler string, flags benchHandlerFlags) (_ *benchResult, err error) {
	if flags.n < 1 || flags.n > 10_000_000 {
		return nil, console.Invalid("--runs: %d is outside 1..10000000", flags.n)
	}
	request, err := readRequest(flags)
	if err != nil {
		return nil, err
	}
	file, err := wasm.ReadFile(path, wasm.DefaultLimits().ModuleBytes)
	if err != nil {
		return nil, console.Invalid("%s: %v", path, err)
	}
	host, close, err := c.benchHost(ctx, a)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, close()) }()
	options := a.SandboxOptions("")
	options.Logger, options.NoBreaker = host.host.Logger, true
	engine, err := sandbox.New(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close(ctx)) }()
	module, err := engine.Load(ctx, path, file)
	if err != nil {
		return nil, err
	}
	offered := module.Offers(func(name string) bool { return name == handler })
	if !slices.Contains(offered, handler) {
		var names []string
		for _, name := range offered {
			names = append(names, exported(name))
		}
		return nil, &console.Failure{Status: console.StatusNotFound, Err: fmt.Errorf("%s has no handler %q", path, handler),
			Hint: "its handlers are " + strings.Join(names, ", ")}
	}
	call := &hostabi.Call{Input: hostabi.Input{Host: &host.host, Request: request, Address: netip.AddrFrom4([4]byte{127, 0, 0, 1})}}
	const warmUp = 10
	usages := make([]sandbox.Usage, 0, flags.n)
	for i := range warmUp + flags.n {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		u, err := host.measure(ctx, module, call, handler, a.Config.Runtime.Timeout)
		if err != nil {
			f := fault.Of(err)
			text, _, _ := strings.Cut(f.Error(), "\n")
			return nil, fmt.Errorf("run %d of %s: %s", i+1, exported(handler), text)
		}
		if i >= warmUp {
			usages = append(usages, u)
		}
	}
	return summarize(path, handler, call, usages), nil
}

// exported shows a name that a module gives, which may be any text: quoted, unless
// it reads the same without.
func exported(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` || strings.ContainsAny(name, ", ") {
		return q
	}
	return name
}

// benchHost is the host of the measured handler, with an empty store in memory.
type benchHost struct {
	host  hostabi.Host
	store *store.Store
}

func (c *cli) benchHost(ctx context.Context, a *app.App) (b *benchHost, close func() error, err error) {
	s, _ := compiler.Compile(nil, compiler.Options{})
	var sources []diag.Source
	if _, err := syntax.Load(a.Dir); err == nil {
		if s, sources, err = a.Compile(); err != nil {
			return nil, nil, err
		}
	}
	values, err := c.resolve(s.Secrets, a.Config)
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
	host := hostabi.Host{
		Keystore: keys, Entities: rows, Schema: s, Secrets: values, Logger: c.logger(a), Limits: c.runtimeOptions(a).Limits,
		Origins: origins, Outbound: client,
	}
	return &benchHost{host, st}, func() error { client.Close(); return errors.Join(keys.Close(), st.Close()) }, nil
}

// errMeasured makes the store drop what a run wrote.
var errMeasured = errors.New("the run was for measuring")

func (b *benchHost) measure(ctx context.Context, m *sandbox.Module, call *hostabi.Call, handler string, timeout time.Duration) (u sandbox.Usage, err error) {
	deadline := hostabi.NewDeadline(ctx, time.Now().Add(timeout))
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

// readRequest makes the request out of a file, or GET / without one.
func readRequest(flags benchHandlerFlags) (*abi.Request, error) {
	r := &abi.Request{ID: "00000000000000000000000000", Method: []byte("GET"), Path: []byte("/"), Route: "/"}
	for _, p := range flags.params {
		name, value, ok := strings.Cut(p, "=")
		if !ok {
			return nil, console.Invalid("--param: %q is not name=value", p)
		}
		r.Params = append(r.Params, pairOf(name, value))
	}
	if flags.request == "" {
		return r, nil
	}
	text, err := os.ReadFile(flags.request)
	if err != nil {
		return nil, console.Invalid("read request: %v", err)
	}
	rest := bufio.NewReader(bytes.NewReader(text))
	message, err := http.ReadRequest(rest)
	if err != nil {
		return nil, console.Invalid("%s is not an HTTP/1.1 message: %v", flags.request, err)
	}
	framed := message.Header.Get("Content-Length") != "" || message.TransferEncoding != nil
	if r.Body, err = io.ReadAll(message.Body); err == nil && !framed {
		r.Body, err = io.ReadAll(rest) // a file that people write has no length
	}
	if err != nil {
		return nil, console.Invalid("%s: the body does not fit its headers: %v", flags.request, err)
	}
	r.Method, r.Path = []byte(message.Method), []byte(message.URL.EscapedPath())
	r.RawQuery = []byte(message.URL.RawQuery)
	for pair := range strings.SplitSeq(message.URL.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, err1 := url.QueryUnescape(name)
		value, err2 := url.QueryUnescape(value)
		if err := cmp.Or(err1, err2); err != nil {
			return nil, console.Invalid("%s: the query: %v", flags.request, err)
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

func summarize(path, handler string, call *hostabi.Call, usages []sandbox.Usage) *benchResult {
	of := func(number func(u *sandbox.Usage) float64) spread {
		all := make([]float64, len(usages))
		for i := range usages {
			all[i] = number(&usages[i])
		}
		slices.Sort(all)
		return spread{all[len(all)/2], all[len(all)*99/100]}
	}
	micros := func(d time.Duration) float64 { return float64(d) / 1e3 }
	return &benchResult{
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

func (c *cli) printBench(b *benchResult) error {
	if c.JSON {
		return c.PrintJSON(b)
	}
	row := func(what string, s spread, show func(float64) string) []string {
		return []string{what, show(s.Median), show(s.P99)}
	}
	whole := func(n float64) string { return strconv.FormatFloat(n, 'f', 0, 64) }
	micros := func(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) + " µs" }
	bytes := func(n float64) string { return whole(n/1024) + " KiB" }
	pages := func(n float64) string { return fmt.Sprintf("%s (%s)", whole(n), bytes(n*float64(b.PageBytes))) }
	err := c.PrintTable([]string{"PER CALL", "MEDIAN", "P99"}, [][]string{
		row("time", b.TimeMicros, micros),
		row("restoring", b.RestoreMicros, micros),
		row("fuel", b.Fuel, whole),
		row("changed pages", b.ChangedPages, pages),
		row("memory", b.MemoryBytes, bytes),
		row("host calls", b.HostCalls, whole),
		row("bytes moved", b.MovedBytes, whole),
	}, "")
	if err == nil {
		c.Say("", fmt.Sprintf("%d runs of %s in %s, each answering %d with %d bytes", b.Runs, exported(b.Handler), b.Module, b.Status, b.AnswerBytes))
	}
	return err
}
