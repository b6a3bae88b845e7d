package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/internal/wait"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/node/admin/server"
	"runner.example/node/app"
	"runner.example/node/gcpace"
	"runner.example/node/release"
	"runner.example/runtime"
	"runner.example/schema"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// Task is what a command does on the node of an app.
type Task struct {
	// NeedsSchema: the task creates tokens. What must work with an invalid schema, such as a
	// revocation, does not need one.
	NeedsSchema bool
	// Runtime returns the options of a runtime, because the task runs functions; nil: it runs
	// none.
	Runtime func(*app.App) runtime.Options
	// Check checks the task against the schema before a data directory is created for it. nil:
	// the task needs an existing store.
	Check func(*schema.Schema) error
	// WithoutSchema: a data directory is created for the task even if there is no schema, because
	// the user has named it. Then Check is called with nil.
	WithoutSchema bool
	// AnswerTimeout is how long a running server may be silent; 0: admin.AnswerTimeout.
	AnswerTimeout time.Duration
	// Say tells the user something; it is called when a data directory is created.
	Say func(string)
	Do  func(context.Context, *admin.Client) error
}

// Run runs the task with a client of the app's node: of the running server, or of the store
// opened in this process when no server runs.
func (t Task) Run(ctx context.Context, a *app.App) error {
	for end := clock.In(LockWait); ; {
		client, err := admin.Dial(ctx, a.Data)
		if err == nil {
			if t.AnswerTimeout > 0 {
				client.SetAnswerTimeout(t.AnswerTimeout)
			}
			err = t.Do(ctx, client)
			if !errors.Is(err, admin.ErrNoServer) {
				return err
			}
		}
		if !errors.Is(err, admin.ErrNoServer) {
			return Unreachable(a, err)
		}
		err = t.inProcess(ctx, a)
		if !errors.Is(err, store.ErrLocked) {
			return err
		}
		if clock.Mark().After(end) {
			return Unreachable(a, err)
		}
		if err := wait.For(ctx, LockPoll); err != nil {
			return err
		}
	}
}

// Unreachable returns the error for a node that cannot be used because of err.
func Unreachable(a *app.App, err error) error {
	return &console.Failure{
		Status: console.StatusUnreachable,
		Err:    fmt.Errorf("reach the server on data directory %q: %w", a.Data, err),
		Hint:   "run the command as the server's user, or stop the process that uses the directory",
	}
}

// inProcess runs the task on the store itself. The error matches store.ErrLocked when another
// process has it open.
func (t Task) inProcess(ctx context.Context, a *app.App) (err error) {
	if err := t.prepare(a); err != nil {
		return err
	}
	st, err := store.Open(store.Options{Dir: a.Data})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(st, slog.New(slog.DiscardHandler))) }()
	defer gcpace.Start()()
	if err := WaitChecked(ctx, st); err != nil {
		return err
	}
	bundle, err := activeBundle(ctx, a, st, t.Runtime != nil)
	if err != nil && t.NeedsSchema {
		return err
	}
	keys, err := keystore.Open(ctx, st, a.KeystoreOptions())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keys.Close()) }()
	local := server.NewLocal(st, keys, release.New(st, a.Config.Release), a.Config.Runtime.Jobs.Keep)
	local.Data = a.Data
	local.Recorded = openRecorded(a, a.Config.Runtime.Record, keys, slog.New(slog.DiscardHandler))
	defer local.Recorded.Close()
	local.Bundle = func(ctx context.Context, id string) (*runtime.Bundle, error) {
		if id == "" {
			return a.Read()
		}
		rel, files, err := local.Releases.Read(ctx, id)
		if err == nil {
			err = a.Config.Release.TrustedKeys.Check(rel)
		}
		if err != nil {
			return nil, err
		}
		return a.BundleOf(rel, files)
	}
	local.Schema = func() *schema.Schema { return bundle.Schema }
	local.Model = sync.OnceValues(func() (*entity.Model, error) { return currentModel(ctx, a, bundle, st, keys) })
	if t.Runtime != nil {
		if local.Runtime, err = functions(ctx, t.Runtime(a), bundle, local); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, local.Runtime.Close()) }()
	}
	return t.Do(ctx, local.Client())
}

// prepare checks the task when there is no data directory yet.
func (t Task) prepare(a *app.App) error {
	if a.HasData() {
		return nil
	}
	if t.WithoutSchema {
		if err := t.Check(nil); err != nil {
			return err
		}
		t.Say(fmt.Sprintf("creating data directory %q", a.Data))
		return nil
	}
	s, _, err := a.Compile()
	switch {
	case err != nil && (t.Check != nil || !a.DataNamed):
		return err // a directory that has neither a schema nor data is the wrong directory
	case t.Check == nil:
		return &console.Failure{
			Status: console.StatusNotFound, Err: fmt.Errorf("data directory %q does not exist", a.Data),
			Hint: "serve the app, create a key or import rows to create it, or name another one with --data",
		}
	}
	if err := t.Check(s); err != nil {
		return err
	}
	t.Say(fmt.Sprintf("creating data directory %q", a.Data))
	return nil
}

// activeBundle returns what the store's active release has; without one, what the app directory
// has. Modules are read only if they are wanted, and then it is an error if the settings require a
// signature that the release does not have. The bundle is never nil; after an error it has no schema.
func activeBundle(ctx context.Context, a *app.App, st *store.Store, modules bool) (*runtime.Bundle, error) {
	var active release.Pointer
	err := st.View(ctx, func(tx *store.Tx) (err error) {
		active, err = release.Active(tx)
		return err
	})
	bundle := &runtime.Bundle{}
	switch {
	case err != nil:
	case active.ID != "":
		var rel release.Release
		var files []release.FileData
		if rel, files, err = release.New(st, release.Options{}).Read(ctx, active.ID); err == nil && modules {
			err = a.Config.Release.TrustedKeys.Check(rel)
		}
		if err == nil {
			bundle, err = a.BundleOf(rel, files)
		}
	case modules:
		if bundle, err = a.Read(); err == nil {
			err = checkFolder(ctx, a, st, bundle)
		}
	default:
		bundle.Schema, bundle.Sources, err = a.Compile()
	}
	if err != nil {
		return &runtime.Bundle{}, err
	}
	return bundle, nil
}

// currentModel returns the model of the rows in the store. A command changes no schema: that of the
// bundle must be the active one.
func currentModel(ctx context.Context, a *app.App, bundle *runtime.Bundle, st *store.Store, keys *keystore.Keystore) (*entity.Model, error) {
	m, err := entity.Current(ctx, st, bundle.Schema, entity.Options{CursorKey: keys.Derive("cursors")})
	if err == nil && m == nil {
		err = fault.New(fault.Invalid,
			"the active schema of the store is not the one in the app directory: restore that one, or serve the app to activate the new one (runner check --against %s compares them)",
			a.Data)
	}
	return m, err
}

// functions returns a runtime that runs functions in this process, on the open store of local.
func functions(ctx context.Context, opt runtime.Options, bundle *runtime.Bundle, local *server.Local) (*runtime.Runtime, error) {
	rows, err := local.Model()
	if err != nil {
		return nil, err
	}
	opt.Store, opt.Keystore, opt.Recorded = local.Store, local.Keys, local.Recorded
	rt, err := runtime.New(opt)
	if err != nil {
		return nil, err
	}
	if err := bundle.Explain(rt.Load(ctx, bundle, rows)); err != nil {
		return nil, errors.Join(err, rt.Close())
	}
	return rt, nil
}
