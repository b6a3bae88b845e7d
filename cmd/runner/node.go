package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"runner.example/admin"
	"runner.example/keystore"
	"runner.example/schema"
	"runner.example/store"
)

const (
	// patience is how long a command waits for the store while a server starts
	// or stops, and a server for a command.
	patience = 5 * time.Second
	// pause is how long it waits before it looks again.
	pause = 25 * time.Millisecond
)

// withNode runs do with a client of the app's node: of the running server, or
// of the store opened here when there is none. Work that makes tokens needs the
// schema; what must be possible with a broken one, such as to revoke, does not.
func (c *cli) withNode(cmd *cobra.Command, needsSchema bool, do func(context.Context, *admin.Client) error) error {
	ctx := cmd.Context()
	a, err := c.openApp(cmd)
	if err != nil {
		return err
	}
	for end := time.Now().Add(patience); ; {
		client, err := admin.Dial(ctx, a.data)
		if err == nil {
			err = do(ctx, client)
			client.Close()
			if !errors.Is(err, admin.ErrNoServer) {
				return err
			}
		}
		if !errors.Is(err, admin.ErrNoServer) {
			return unreachable(a, err)
		}
		err = c.inProcess(ctx, a, needsSchema, do)
		if !errors.Is(err, store.ErrLocked) {
			return err
		}
		if time.Now().After(end) {
			return unreachable(a, err)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

func unreachable(a *app, err error) error {
	return &failure{
		status: statusUnreachable,
		err:    fmt.Errorf("reach the server on data folder %q: %w", a.data, err),
		hint:   "run the command as the server's user, or stop the process that holds the folder",
	}
}

// inProcess does the work on the store itself. The error matches
// store.ErrLocked when another process has it.
func (c *cli) inProcess(ctx context.Context, a *app, needsSchema bool, do func(context.Context, *admin.Client) error) (err error) {
	s, err := a.schemaFor(needsSchema)
	if err != nil {
		return err
	}
	if !a.hasData() {
		if !needsSchema {
			return &failure{
				status: statusNotFound, err: fmt.Errorf("there is no data folder %q", a.data),
				hint: "serve the app or create a key to make it, or name another one with --data",
			}
		}
		c.say("", fmt.Sprintf("making a new data folder %q", a.data))
	}
	st, err := store.Open(store.Options{Dir: a.data})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	keys, err := keystore.Open(ctx, st, keystore.Options{Dir: a.data, PepperFile: a.pepperFile()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keys.Close()) }()
	local := &admin.Local{Store: st, Keys: keys, Schema: func() *schema.Schema { return s }}
	client := local.Client()
	defer client.Close()
	return do(ctx, client)
}

// schemaFor compiles the schema. Without need a schema with mistakes is none;
// but a folder that has neither a schema nor data is the wrong folder.
func (a *app) schemaFor(need bool) (*schema.Schema, error) {
	s, _, _, err := a.compile()
	if err == nil || need || !a.hasData() {
		return s, err
	}
	return nil, nil
}

func (a *app) hasData() bool {
	_, err := os.Stat(a.data)
	return !errors.Is(err, fs.ErrNotExist)
}

// sleep waits for d or the end of ctx, whose error it then returns.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
