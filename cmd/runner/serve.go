package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"runner.example/admin"
	"runner.example/audit"
	"runner.example/config"
	"runner.example/entity"
	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/internal/telemetry"
	"runner.example/keystore"
	"runner.example/runtime"
	"runner.example/runtime/front"
	"runner.example/runtime/sandbox"
	"runner.example/store"
)

// headEvery is how often the head of the audit chain goes to the log.
const headEvery = time.Minute

const serveHelp = `Serve the app until SIGTERM or an interrupt: either ends it with status 0 once
requests in flight have finished, a second one ends it at once. SIGHUP reads the schema and the modules again; when
there is a mistake in them, what was served before stays.

Once ready it prints where it listens. Its log goes to stderr.`

func (c *cli) serveCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "serve [dir]",
		Short: "serve the app",
		Long:  serveHelp,
		Args:  atMost(1, "one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.appFolder(cmd, args); err != nil {
				return err
			}
			a, err := c.readApp(cmd)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("listen") {
				if err := front.CheckListen(listen); err != nil {
					return invalid("--listen: %v", err)
				}
				a.config.Runtime.Front.Listen = listen
			}
			return c.serve(cmd.Context(), a)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "host:port to listen on; port 0 takes a free one (default: [front] listen, 127.0.0.1:8080)")
	return cmd
}

// serve serves what the app's folder holds, until a signal.
func (c *cli) serve(ctx context.Context, a *app) error {
	latest, err := a.read()
	if err != nil {
		return err
	}
	opt := c.runtimeOptions(a)
	if err := latest.fits(ctx, a, opt); err != nil {
		return err
	}
	c.boundLogQueue(a)
	logger := c.logger(a)
	for _, d := range append(a.strangers(latest.Schema), a.doubts...).Sorted() {
		logger.Warn("configuration", "about", d.String())
	}
	return c.withRooms(ctx, a, opt, logger, func(h *house) error {
		if err := latest.activate(ctx, h.rt); err != nil {
			return err
		}
		defer func() { c.stopBy = h.stopBy }()
		return h.serve(ctx, a, life{begin: func() (end func()) {
			end = a.reloadOnSignal(ctx, h.rt, logger) // who reads the line may signal at once
			if err := c.sayListening(h.local.URL); err != nil {
				logger.Warn("nobody could be told where the server listens", "cause", err)
			}
			return end
		}})
	})
}

// house is what serving works with: the rooms that are open.
type house struct {
	ln     net.Listener
	rt     *runtime.Runtime
	local  *admin.Local
	logger *slog.Logger
	// stopBy is when a shutdown that has begun must be over; exitNow then ends the
	// process.
	stopBy   time.Time
	exitNow  func()
	deadline *time.Timer
}

// closeTime is the part of shutdown_timeout that is kept for closing the store, or half
// of the timeout if that is less. A shutdown may always take that long.
const closeTime = time.Second

// startShutdown starts a timer that ends the process if it is not closed by stopBy: all
// acknowledged commits are on disk, and the next start reads them. It returns when
// requests are cut off.
func (h *house) startShutdown(timeout time.Duration) time.Time {
	h.deadline = time.AfterFunc(max(timeout, closeTime), func() {
		h.logger.Error("shutdown timed out; store not closed, acknowledged commits are not lost", "limit", "[runtime] shutdown_timeout")
		h.exitNow()
	})
	return h.stopBy.Add(-min(closeTime, timeout/2))
}

// shutdownDone stops the timer of startShutdown.
func (h *house) shutdownDone() {
	if h.deadline != nil {
		h.deadline.Stop()
	}
}

// withRooms opens the rooms from the ground up, lets do work with them, and closes
// them in reverse.
func (c *cli) withRooms(ctx context.Context, a *app, opt runtime.Options, logger *slog.Logger, do func(*house) error) (err error) {
	hearLibraries(logger)
	if err := a.checkCookies(opt.Front.Listen); err != nil {
		return err
	}
	h := &house{logger: logger, exitNow: c.exitNow}
	defer h.shutdownDone()
	st, err := openStore(ctx, a, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if err := waitChecked(ctx, st); err != nil {
		return err
	}
	keyOptions := a.keystoreOptions()
	keyOptions.Logger = logger
	keys, err := keystore.Open(ctx, st, keyOptions)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keys.Close()) }()
	endAudit, err := followAudit(ctx, st, audit.RunOptions{
		Logger: logger, Every: headEvery, KeepRefused: a.config.Audit.KeepRefused, Now: keys.Now,
	})
	if err != nil {
		return err
	}
	defer endAudit()

	opt.Store, opt.Keystore, opt.Logger = st, keys, logger
	ln, err := front.Listen(opt.Front)
	if err != nil {
		return err
	}
	defer ln.Close() // when serving never began
	rt, err := runtime.New(opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	h.ln, h.rt = ln, rt
	h.local = &admin.Local{Store: st, Keys: keys, Schema: rt.Schema, Model: rt.Entities, Runtime: rt, URL: "http://" + ln.Addr().String()}
	return do(h)
}

// life is what a command does beside serving.
type life struct {
	// begin is called once a signal ends the serving in good order. What it gives
	// ends what it began, and waits for it.
	begin func() (end func())
	// over ends the serving as a signal does; nil: nothing does.
	over <-chan struct{}
}

// serve serves both doors, the network's and the operators', until a signal.
func (h *house) serve(ctx context.Context, a *app, l life) error {
	socket, err := admin.Listen(a.data)
	if err != nil {
		return err
	}
	operators := admin.NewServer(h.local, h.logger)
	ended := make(chan error, 2)
	go func() { ended <- operators.Serve(socket) }()
	go func() { ended <- h.rt.Serve(h.ln) }()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	defer l.begin()()
	running, failed := h.attend(ended, signals, l.over)

	// Requests first: while they end, operators can still ask.
	h.stopBy = time.Now().Add(a.config.Runtime.ShutdownTimeout)
	wait, cancel := context.WithDeadline(context.WithoutCancel(ctx), h.startShutdown(a.config.Runtime.ShutdownTimeout))
	defer cancel()
	if late := h.rt.Shutdown(wait); late != nil {
		h.logger.Warn("requests were cut off: they took longer than [runtime] shutdown_timeout", "cause", late)
	}
	_ = h.ln.Close() // should serving not have begun yet
	if late := operators.Shutdown(wait); late != nil {
		h.logger.Warn("operators were cut off: they took longer than [runtime] shutdown_timeout", "cause", late)
	}
	for range running {
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// attend waits until a signal says to stop, the life is over, or one of the two
// doors fails. It tells how many still run, and why one does not.
func (h *house) attend(ended <-chan error, signals chan os.Signal, over <-chan struct{}) (running int, failed error) {
	select {
	case s := <-signals:
		lastSignal(signals)
		h.logger.Info("stopping", "signal", s.String())
		return 2, nil
	case <-over:
		return 2, nil
	case err := <-ended:
		return 1, err
	}
}

// lastSignal lets the next signal end the process, and this one if it has come
// already.
func lastSignal(signals chan os.Signal) {
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	signal.Stop(signals)
	select {
	case s := <-signals:
		_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
	default:
	}
}

// reloadOnSignal reloads the app at each SIGHUP, until end. Reloads have a
// goroutine of their own: one that takes its time holds up no signal to stop.
func (a *app) reloadOnSignal(ctx context.Context, rt *runtime.Runtime, logger *slog.Logger) (end func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-signals:
				a.reload(ctx, rt, logger)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

func (c *cli) sayListening(url string) error {
	if c.json {
		return c.print(fmt.Sprintf("{\"url\": %q}\n", url)) // one line: who waits for it reads one
	}
	return c.print("listening on " + url + "\n")
}

// boundLogQueue makes requests independent of the reader of the log: lines wait in a
// bounded queue.
func (c *cli) boundLogQueue(a *app) {
	if c.queue == nil {
		return
	}
	opt := a.config.Telemetry
	c.queue.Limit(opt.Queue, func(lines int) []byte {
		return opt.Line(slog.LevelWarn, "log lines discarded", "lines", lines)
	})
}

// logger is the server's. It redacts.
func (c *cli) logger(a *app) *slog.Logger {
	return telemetry.NewLogger(c.stderr, a.config.Telemetry)
}

// checkWait is how long a command waits until all tables of the store have been checked.
// That takes about a second for two gigabytes.
const checkWait = 2 * time.Second

func waitChecked(ctx context.Context, st *store.Store) error {
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	return st.WaitChecked(ctx)
}

// openStore opens the store of a. It waits for a command that has it, but not
// for another server.
func openStore(ctx context.Context, a *app, logger *slog.Logger) (*store.Store, error) {
	for end := time.Now().Add(patience); ; {
		st, err := store.Open(store.Options{Dir: a.data, Logger: logger})
		if !errors.Is(err, store.ErrLocked) {
			return st, err
		}
		if other, ok := serverOn(ctx, a.data); ok {
			return nil, fmt.Errorf("data folder %q is served already, by pid %d at %s: stop that server, or choose another folder with --data", a.data, other.PID, other.URL)
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("%w: stop that process, or choose another folder with --data", err)
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// serverOn asks who serves the data folder.
func serverOn(ctx context.Context, data string) (admin.Status, bool) {
	client, err := admin.Dial(ctx, data)
	if err != nil {
		return admin.Status{}, false
	}
	status, err := client.Status(ctx)
	return status, err == nil
}

// followAudit runs the background task of the audit until end is called.
func followAudit(ctx context.Context, st *store.Store, opt audit.RunOptions) (end func(), err error) {
	log, err := audit.Open(ctx, st)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		log.Run(running, opt)
	}()
	return func() {
		stop()
		<-done
		log.Close()
	}, nil
}

// content is what an app's folder holds for serving: the schema, which compile
// has checked, and the modules.
type content struct{ runtime.App }

func (a *app) read() (*content, error) {
	s, sources, err := a.compile()
	if err != nil {
		return nil, err
	}
	modules, err := runtime.ReadModules(a.dir)
	if err != nil {
		return nil, err
	}
	return &content{runtime.App{Schema: s, Sources: sources, Modules: modules}}, nil
}

// fits tells what would keep a server from starting, as far as that can be known
// soon and without a store: a start that fails had better leave no data folder
// behind.
func (latest *content) fits(ctx context.Context, a *app, opt runtime.Options) error {
	if err := a.checkData(); err != nil {
		return err
	}
	if _, err := opt.Secrets(latest.Schema.Secrets); err != nil {
		return err
	}
	if len(latest.Modules) > 0 {
		return nil // the activation compiles them, and tells about them
	}
	return runtime.CheckModules(ctx, a.sandboxOptions(""), latest.App)
}

func (latest *content) activate(ctx context.Context, rt *runtime.Runtime) error {
	return latest.explain(rt.Activate(ctx, latest.App))
}

// explain shows the places in the schema that an activation complains about.
func (latest *content) explain(err error) error {
	if unbound, ok := errors.AsType[*runtime.UnboundError](err); ok {
		return &mistakes{what: "the modules do not fit the schema: " + counted(unbound.List), sources: latest.Sources, list: unbound.List}
	}
	if change, ok := errors.AsType[*entity.ChangeError](err); ok {
		return &mistakes{what: "the schema does not fit the rows that are there: " + counted(change.List), sources: latest.Sources, list: change.List}
	}
	return err
}

// reload puts what the folder holds now in place of what is served.
func (a *app) reload(ctx context.Context, rt *runtime.Runtime, logger *slog.Logger) {
	latest, err := a.read()
	if err == nil {
		err = latest.activate(ctx, rt)
	}
	if m, ok := errors.AsType[*mistakes](err); ok {
		for _, d := range m.list.Sorted() {
			logger.Error("reload", "about", d.String())
		}
	}
	if err != nil {
		logger.Error("reload: what was served before stays", "cause", err)
		return
	}
	logger.Info("reloaded", "routes", len(latest.Schema.Routes), "modules", len(latest.Modules))
}

// runtimeOptions returns the options of the runtime for the app.
func (c *cli) runtimeOptions(a *app) runtime.Options {
	opt := a.config.Runtime
	opt.Secrets = func(names []string) (secret.Values, error) { return c.resolve(names, a.config) }
	opt.Sandbox = a.sandboxOptions(filepath.Join(a.data, "cache"))
	return opt
}

// resolve gives the values of the secrets that a schema declares. From then on the log
// hides them.
func (c *cli) resolve(names []string, conf *config.Config) (secret.Values, error) {
	values, err := secret.Resolve(names, c.lookupEnv, conf.Secrets)
	if err != nil {
		return values, fault.New(fault.Invalid, "%s", oneLine(err))
	}
	texts := make([]string, len(names))
	for i, name := range names {
		value, _ := values.Get(name)
		texts[i] = value.Reveal()
	}
	c.secrets.Add(texts...)
	return values, nil
}

func (a *app) sandboxOptions(cache string) sandbox.Options {
	opt := a.config.SandboxOptions(cache)
	opt.Compiler = moduleCompiler()
	return opt
}

// lookupEnv is os.LookupEnv over the environment the program was started with.
func (c *cli) lookupEnv(name string) (string, bool) {
	for _, entry := range c.environ {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value, true
		}
	}
	return "", false
}

// oneLine gives the text of an error that may be several.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
