package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/system/process"
	"runner.example/internal/telemetry"
	"runner.example/node"
	"runner.example/node/app"
	"runner.example/node/config"
	"runner.example/runtime"
	"runner.example/runtime/front"
)

const serveHelp = `Serve the app until SIGTERM or an interrupt, which end it with status 0 after the requests in
flight; a second one ends it at once. SIGHUP reloads the schema and the modules; on an error the
previous release is kept.

If a release was activated by "runner deploy" or "runner rollback", the server serves this release
and not the app directory, unless --from-folder is given. With --data the directory may be without
an app: then the server waits for the first "runner deploy".

When it is ready it prints where it listens. Its log goes to stderr.`

func serveCommand(c *program) *cobra.Command {
	var listen string
	var fromFolder bool
	cmd := &cobra.Command{
		Use:   "serve [dir]",
		Short: "serve the app",
		Long:  serveHelp,
		Args:  cli.AtMost(1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.AppDir(cmd, args); err != nil {
				return err
			}
			if cmd.Flags().Changed("listen") {
				if err := front.CheckListen(listen); err != nil {
					return console.Invalid("--listen: %v", err)
				}
			}
			// The limit may change while the server runs; a reload uses the limit at
			// startup.
			limit, limited := config.MemoryLimit()
			a, heap, err := c.serverApp(cmd, listen, limit)
			if err != nil {
				return err
			}
			if limited && heap > 0 && os.Getenv("GOMEMLIMIT") == "" {
				debug.SetMemoryLimit(heap)
			}
			read := func() (*app.App, error) {
				next, _, err := c.serverApp(cmd, listen, limit)
				return next, err
			}
			for {
				err := c.serve(cmd.Context(), node.Sources{
					App: a, FromFolder: fromFolder, MayWait: cmd.Flags().Changed("data") && !fromFolder, Read: read,
				})
				if !errors.Is(err, node.ErrBehind) {
					return err
				}
				if a, err = read(); err != nil { // it starts over with a backup of another node
					return err
				}
			}
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "",
		"host:port to listen on; port 0 takes a free one (default: [front] listen, 127.0.0.1:8080)")
	cmd.Flags().BoolVar(&fromFolder, "from-folder", false, "serve the app directory even if a deployed release is active")
	return cmd
}

// serverApp reads the configuration of a server. It returns how many of limit bytes the Go heap
// may take; 0: the configuration is invalid.
func (c *program) serverApp(cmd *cobra.Command, listen string, limit int64) (a *app.App, heap int64, err error) {
	if a, err = c.ReadApp(cmd); err != nil {
		return nil, 0, err
	}
	return a, a.PrepareServer(cmp.Or(c.ConfigFile, config.FileName), listen, limit), nil
}

// serve serves the app until a signal arrives.
func (c *program) serve(ctx context.Context, from node.Sources) error {
	a := from.App
	latest, err := a.Read()
	waits := from.MayWait && !a.HasSchema()
	switch {
	case a.Problems.HasErrors() && waits:
		return a.InvalidConfiguration()
	case err != nil && (a.Problems.HasErrors() || !a.HasData() && !waits):
		return err
	case err == nil && !a.HasData(): // a failed start should not create a data directory
		if err := a.CheckStart(ctx, latest); err != nil {
			return err
		}
	}
	if err := a.CheckData(); err != nil {
		return err
	}
	opt := c.runtimeOptions(a)
	c.boundLogQueue(a.Config.Telemetry)
	logger := c.logger(a)
	from.Configure = func(opt telemetry.Options) {
		telemetry.Configure(logger, opt)
		c.boundLogQueue(opt)
	}
	warnings := a.Problems
	if err == nil {
		from.Folder = latest
		warnings = append(a.Unknown(latest.Schema), warnings...)
	}
	for _, line := range warnings.Excerpt().Lines() {
		logger.Warn("configuration warning", "diagnostic", line)
	}
	if listen := a.Config.Runtime.Front.Listen; !process.ForServers() && !app.IsLoopback(listen) {
		logger.Warn("other machines reach this server, which is for development: use Linux for production", "listen", listen)
	}
	return node.Run(ctx, a, opt, logger, c.exitNow, func(n *node.Node) error {
		activator := n.NewActivator(from)
		if err := n.Join(activator); err != nil {
			return err
		}
		if err := activator.Start(ctx); err != nil {
			return err
		}
		defer func() { c.StopBy = n.StopBy }()
		return n.Serve(ctx, a, node.Hooks{Begin: func() (end func()) {
			end = activator.Begin(ctx) // before the address is printed: its reader may send a signal at once
			if err := c.SayListening(n.Local.URL); err != nil {
				logger.Warn("cannot print the address", "cause", err)
			}
			return end
		}})
	})
}

// boundLogQueue makes requests independent of the reader of the log: lines wait in a
// bounded queue.
func (c *program) boundLogQueue(opt telemetry.Options) {
	if c.Queue == nil {
		return
	}
	c.Queue.Limit(opt.Queue, func(lines int) []byte {
		return opt.Line(slog.LevelWarn, "log lines discarded", "lines", lines)
	})
}

// logger returns the server's logger. It redacts secrets.
func (c *program) logger(a *app.App) *slog.Logger {
	return telemetry.NewLogger(c.Stderr, a.Config.Telemetry)
}

// runtimeOptions returns the options of the runtime for the app.
func (c *program) runtimeOptions(a *app.App) runtime.Options {
	opt := a.Config.Runtime
	opt.Sandbox = a.ServerOptions()
	return opt
}
