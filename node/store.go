package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/telemetry"
	"runner.example/internal/wait"
	"runner.example/node/admin"
	"runner.example/node/app"
	"runner.example/node/cluster"
	"runner.example/state/audit"
	"runner.example/state/store"
)

const (
	// LockWait is how long a command waits for the store while a server starts or stops, and
	// a server for a command.
	LockWait = 5 * time.Second
	// LockPoll is the pause between two attempts.
	LockPoll = 25 * time.Millisecond
)

// checkWait is how long a command waits until all tables of the store have been checked.
// That takes about a second for two gigabytes.
const checkWait = 2 * time.Second

// WaitChecked waits until the tables of a store have been checked, at most checkWait.
func WaitChecked(ctx context.Context, st *store.Store) error {
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	return st.WaitChecked(ctx)
}

// openStore opens the store of an app, with the log of its cluster if member is not nil. It waits for
// a command that has the lock, but not for another server.
func openStore(ctx context.Context, a *app.App, member *cluster.Node, metrics *telemetry.Metrics,
	logger *slog.Logger) (*store.Store, error) {
	opt := store.Options{Dir: a.Data, MaxFiles: a.Config.Store.MaxFiles, Logger: logger, Metrics: metrics}
	if member != nil {
		member.StoreOptions(&opt)
	}
	for end := clock.In(LockWait); ; {
		st, err := store.Open(opt)
		if !errors.Is(err, store.ErrLocked) {
			return st, err
		}
		if other, ok := serverOn(ctx, a.Data); ok {
			return nil, fmt.Errorf(
				"data directory %q is in use by the server with pid %d at %s: stop that server, or choose another directory with --data",
				a.Data, other.PID, other.URL)
		}
		if clock.Mark().After(end) {
			return nil, fmt.Errorf("%w: stop that process, or choose another directory with --data", err)
		}
		if err := wait.For(ctx, LockPoll); err != nil {
			return nil, err
		}
	}
}

// closeStore closes a store before the process ends. A full disk is not an error then: nothing is lost.
func closeStore(st *store.Store, logger *slog.Logger) error {
	err := st.Close()
	if errors.Is(err, store.ErrUnflushed) {
		logger.Warn("store not closed; acknowledged commits are not lost", "cause", err)
		return nil
	}
	return err
}

// serverOn returns the status of the server that uses the data directory.
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
