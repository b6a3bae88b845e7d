package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/system/process"
	"runner.example/internal/telemetry"
	"runner.example/keystore"
	"runner.example/node/admin/server"
	"runner.example/node/app"
	"runner.example/node/cluster"
	"runner.example/node/gcpace"
	"runner.example/node/release"
	"runner.example/runtime"
	"runner.example/runtime/assets"
	"runner.example/runtime/front"
	"runner.example/state/audit"
)

// headEvery is how often the head of the audit chain is logged.
const headEvery = time.Minute

// readModuleTime limits the time for reading a module and its debug file after a failure.
const readModuleTime = 10 * time.Second

// Node is a server with everything that it needs open.
type Node struct {
	Listener net.Listener
	Runtime  *runtime.Runtime
	Local    *server.Local
	Logger   *slog.Logger
	Expiry   *Expiry       // of the certificates
	remote   *remote       // nil: no admin listener
	member   *cluster.Node // nil: the server is standalone
	ended    chan error    // why the server must end by itself
	// StopBy is the end of the shutdown, once it has begun; exitNow then ends the process.
	StopBy   time.Time
	exitNow  func()
	deadline *time.Timer
}

// closeTime is the part of shutdown_timeout that is kept for closing the store, or half
// of the timeout if that is less. A shutdown may always take that long.
const closeTime = time.Second

// startShutdown starts a timer that ends the process if it is not closed by StopBy: all
// acknowledged commits are on disk, and the next start reads them. It returns when
// requests are cut off.
func (n *Node) startShutdown(timeout time.Duration) time.Time {
	n.deadline = time.AfterFunc(max(timeout, closeTime), func() {
		n.Logger.Error("shutdown timed out; store not closed, acknowledged commits are not lost",
			"limit", "[runtime] shutdown_timeout")
		n.exitNow()
	})
	return n.StopBy.Add(-min(closeTime, timeout/2))
}

// shutdownDone stops the timer of startShutdown.
func (n *Node) shutdownDone() {
	if n.deadline != nil {
		n.deadline.Stop()
	}
}

// Run opens the store, the keystore, the audit, the listener and the runtime of an app,
// calls do, and closes all of them in reverse order. exitNow ends the process when a
// shutdown takes too long.
func Run(ctx context.Context, a *app.App, opt runtime.Options, logger *slog.Logger, exitNow func(),
	do func(*Node) error) (err error) {
	logLibraries(logger)
	if err := a.CheckCookies(opt.Front.Listen); err != nil {
		return err
	}
	defer gcpace.Start()()
	n := &Node{Logger: logger, exitNow: exitNow}
	defer n.shutdownDone()
	if _, err := reserveFiles(a.Config, false, 0); err != nil {
		return err // the store would not open
	}
	metricsURL := ""
	if address := a.Config.Telemetry.MetricsListen; address != "" {
		opt.Metrics = telemetry.NewMetrics()
		served, failed := serveMetrics(address, opt.Metrics, logger)
		if failed != nil {
			return failed
		}
		metricsURL = served.url
		defer func() { err = errors.Join(err, served.close()) }()
	}
	member, st, err := openMember(ctx, a, opt.Metrics, logger)
	if err != nil {
		return err
	}
	defer func() {
		if member != nil {
			member.StopServing() // it reads the store
		}
		err = errors.Join(err, closeStore(st, logger))
		if member != nil {
			n.shutdownDone() // the store is closed; the etcd server has its own limit
			member.Close()
		}
	}()
	if err := WaitChecked(ctx, st); err != nil {
		return err
	}
	if opt.Front.ReservedFiles, err = reserveFiles(a.Config, member != nil, process.OpenFiles()); err != nil {
		return err
	}
	keyOptions := a.KeystoreOptions()
	keyOptions.Logger = logger
	keys, err := keystore.Open(ctx, st, keyOptions)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keys.Close()) }()
	endAudit, err := followAudit(ctx, st, audit.RunOptions{
		Logger: logger, Every: headEvery, KeepRefused: a.Config.Audit.KeepRefused, Now: keys.Now,
	})
	if err != nil {
		return err
	}
	defer endAudit()

	opt.Store, opt.Keystore, opt.Logger = st, keys, logger
	opt.Recorded = openRecorded(a, opt.Record, keys, logger)
	defer opt.Recorded.Close()
	if opt.Compressed, err = assets.OpenCache(filepath.Join(a.Data, "assets"), logger); err != nil {
		return err
	}
	if settings := a.Config.Cluster; member != nil {
		opt.MaxStaleness = settings.MaxStaleness
		if settings.StaleKeys == "refuse" {
			opt.Auth.MaxStaleness = settings.MaxStaleness
		}
	}
	ln, err := front.Listen(opt.Front)
	if err != nil {
		return err
	}
	defer ln.Close() // when serving never began
	releaseOptions := a.Config.Release
	releaseOptions.Logger = logger
	releases := release.New(st, releaseOptions)
	opt.Sandbox.ReadModule = func(sum [sha256.Size]byte) (module, debug []byte, err error) {
		ctx, cancel := context.WithTimeout(context.Background(), readModuleTime)
		defer cancel()
		return readModule(ctx, releases, a.Dir, sum)
	}
	rt, err := runtime.New(opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	n.Listener, n.Runtime, n.member, n.ended = ln, rt, member, make(chan error, 1)
	n.Expiry = NewExpiry(logger, clock.System, opt.Metrics)
	n.Expiry.Set(frontListener, opt.Front.Certificate)
	scheme := "http://"
	if opt.Front.Certificate != nil {
		scheme = "https://"
	}
	n.Local = server.NewLocal(st, keys, releases, a.Config.Runtime.Jobs.Keep)
	n.Local.Data, n.Local.Recorded = a.Data, opt.Recorded
	n.Local.Schema, n.Local.Model, n.Local.Runtime = rt.Schema, rt.Entities, rt
	n.Local.Running = server.Running{
		URL: scheme + ln.Addr().String(), Started: clock.Mark(), Metrics: opt.Metrics, MetricsURL: metricsURL,
		Cluster: member, Leave: func() { n.end(nil) },
	}
	n.addGauges()
	if n.remote, err = n.openRemote(a); err != nil {
		return err
	}
	defer n.remote.close()
	return do(n)
}

// Hooks are what a command does while the node serves.
type Hooks struct {
	// Begin is called when signals are handled. The function that it returns is called at
	// shutdown, and ends what Begin has started.
	Begin func() (end func())
	// Stop stops the server when it is closed, as a signal does; may be nil.
	Stop <-chan struct{}
}

// Serve serves clients, and operators on the admin socket and the admin listener, until a signal.
func (n *Node) Serve(ctx context.Context, a *app.App, l Hooks) error {
	socket, err := server.Listen(a.Data, a.Config.Admin.Socket)
	if err != nil {
		return err
	}
	operators := server.NewSocketServer(n.Local, n.Logger)
	servers := []func() error{
		func() error { return operators.Serve(socket) },
		func() error { return n.Runtime.Serve(n.Listener) },
	}
	if n.remote != nil {
		servers = append(servers, n.remote.serve)
	}
	ended := make(chan error, len(servers))
	for _, serve := range servers {
		go func() { ended <- serve() }()
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, process.StopSignals...)
	defer signal.Stop(signals)
	defer l.Begin()()
	stopped, failed := n.wait(ended, signals, l.Stop, a.Config.Runtime.DrainTime)

	// Requests end first: the admin socket and the admin listener still answer meanwhile.
	n.StopBy = clock.In(a.Config.Runtime.ShutdownTimeout)
	wait, cancel := context.WithDeadline(context.WithoutCancel(ctx), n.startShutdown(a.Config.Runtime.ShutdownTimeout))
	defer cancel()
	if late := n.Runtime.Shutdown(wait); late != nil {
		n.Logger.Warn("requests cut off at shutdown", "cause", late)
	}
	n.Local.Store.BeginClose(time.Until(n.StopBy) / 4) // what follows needs the rest
	_ = n.Listener.Close()                             // should serving not have begun yet
	if late := errors.Join(operators.Shutdown(wait), n.remote.shutdown(wait)); late != nil {
		n.Logger.Warn("admin operations cut off at shutdown", "cause", late)
	}
	for range len(servers) - stopped {
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// wait waits for a signal and then for the drain time, or for stop, or until one of the servers
// fails. It returns how many servers have ended, and the error of the one that failed.
func (n *Node) wait(ended <-chan error, signals chan os.Signal, stop <-chan struct{},
	drain time.Duration) (stopped int, failed error) {
	select {
	case s := <-signals:
		lastSignal(signals)
		n.Runtime.Drain()
		n.Logger.Info("stopping", "signal", s.String(), "drain", drain)
		select {
		case <-time.After(drain):
			return 0, nil
		case err := <-ended:
			return 1, err
		}
	case <-stop:
		return 0, nil
	case why := <-n.ended:
		n.Runtime.Drain()
		return 0, why
	case err := <-ended:
		return 1, err
	}
}

// lastSignal lets the next signal end the process, even if it has arrived already.
func lastSignal(signals chan os.Signal) {
	signal.Reset(process.StopSignals...)
	signal.Stop(signals)
	select {
	case s := <-signals:
		process.EndBy(s)
	default:
	}
}
