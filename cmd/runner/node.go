package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"runner.example/admin"
	"runner.example/app"
	"runner.example/entity"
	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node"
	"runner.example/schema"
	"runner.example/store"
)

// nodeTask is what a command does on the app's node.
type nodeTask struct {
	// needsSchema: the task creates tokens. What must work with an invalid schema, such as
	// a revocation, does not need one.
	needsSchema bool
	// runs: the task runs functions.
	runs bool
	// check checks the task against the schema before a data directory is created for it.
	// nil: the task needs an existing store.
	check func(*schema.Schema) error
	do    func(context.Context, *admin.Client) error
}

// withNode runs the task with a client of the app's node: of the running server, or of the
// store opened in this process when no server runs.
func (c *cli) withNode(cmd *cobra.Command, task nodeTask) error {
	a, err := c.openApp(cmd)
	if err != nil {
		return err
	}
	if err := a.CheckData(); err != nil {
		return err
	}
	return flagged(cmd, c.onNode(cmd.Context(), a, task))
}

func (c *cli) onNode(ctx context.Context, a *app.App, task nodeTask) error {
	for end := time.Now().Add(node.LockWait); ; {
		client, err := admin.Dial(ctx, a.Data)
		if err == nil {
			err = task.do(ctx, client)
			if !errors.Is(err, admin.ErrNoServer) {
				return err
			}
		}
		if !errors.Is(err, admin.ErrNoServer) {
			return unreachable(a, err)
		}
		err = c.inProcess(ctx, a, task)
		if !errors.Is(err, store.ErrLocked) {
			return err
		}
		if time.Now().After(end) {
			return unreachable(a, err)
		}
		if err := node.Sleep(ctx, node.LockPoll); err != nil {
			return err
		}
	}
}

// flagOf is the flag that sets a field of a request.
var flagOf = map[string]string{
	"expiresIn": "expires", "gracePeriod": "grace-period", "metadata": "metadata", "name": "name",
	"scope": "scope", "tenant": "tenant", "limit": "limit", "userId": "user", "roles": "role", "ttl": "ttl",
}

// flagged rewords an error that begins with the name of a request's field: it names the
// flag.
func flagged(cmd *cobra.Command, err error) error {
	all := console.Parts(err)
	for i, one := range all {
		f, ok := one.(*fault.Fault)
		if !ok || f.Code != fault.Invalid {
			continue
		}
		field, rest, _ := strings.Cut(f.Detail, " ")
		if flag := flagOf[field]; flag != "" && cmd.Flags().Lookup(flag) != nil {
			all[i] = fault.Wrap(f.Cause, f.Code, "--%s %s", flag, rest)
		}
	}
	return errors.Join(all...)
}

func unreachable(a *app.App, err error) error {
	return &console.Failure{
		Status: console.StatusUnreachable,
		Err:    fmt.Errorf("reach the server on data directory %q: %w", a.Data, err),
		Hint:   "run the command as the server's user, or stop the process that uses the directory",
	}
}

// inProcess runs the task on the store itself. The error matches store.ErrLocked when
// another process has it open.
func (c *cli) inProcess(ctx context.Context, a *app.App, task nodeTask) (err error) {
	s, err := schemaFor(a, task.needsSchema)
	if err != nil {
		return err
	}
	if !a.HasData() {
		if task.check == nil {
			return &console.Failure{
				Status: console.StatusNotFound, Err: fmt.Errorf("data directory %q does not exist", a.Data),
				Hint: "serve the app, create a key or import rows to create it, or name another one with --data",
			}
		}
		if err := task.check(s); err != nil {
			return err
		}
		c.Say("", fmt.Sprintf("creating data directory %q", a.Data))
	}
	st, err := store.Open(store.Options{Dir: a.Data})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if err := node.WaitChecked(ctx, st); err != nil {
		return err
	}
	keys, err := keystore.Open(ctx, st, a.KeystoreOptions())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keys.Close()) }()
	local := &admin.Local{
		Store: st, Keys: keys, Schema: func() *schema.Schema { return s },
		Model: sync.OnceValues(func() (*entity.Model, error) { return entities(ctx, a, st, keys) }),
	}
	if task.runs {
		if local.Runtime, err = c.functions(ctx, a, local); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, local.Runtime.Close()) }()
	}
	return task.do(ctx, local.Client())
}

// entities returns the model of the rows in the store. A command changes no schema: the
// schema in the app directory must be the active one.
func entities(ctx context.Context, a *app.App, st *store.Store, keys *keystore.Keystore) (*entity.Model, error) {
	s, _, err := a.Compile()
	if err != nil {
		return nil, err
	}
	m, err := entity.Current(ctx, st, s, entity.Options{CursorKey: keys.Derive("cursors")})
	if err == nil && m == nil {
		err = fault.New(fault.Invalid, "the active schema of the store is not the one in the app directory: restore that one, or serve the app to activate the new one (runner check --against %s compares them)", a.Data)
	}
	return m, err
}

// schemaFor compiles the schema. Unless it is needed, the schema is nil if it has errors.
// But a directory that has neither a schema nor data is the wrong directory.
func schemaFor(a *app.App, need bool) (*schema.Schema, error) {
	s, _, err := a.Compile()
	if err == nil || need || !a.HasData() {
		return s, err
	}
	return nil, nil
}
