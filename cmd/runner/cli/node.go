package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/node"
	"runner.example/node/admin"
)

// onApp runs the task on the app's node.
func (c *CLI) onApp(cmd *cobra.Command, task node.Task) error {
	a, err := c.OpenApp(cmd)
	if err != nil {
		return err
	}
	if err := a.CheckData(); err != nil {
		return err
	}
	task.Say = func(text string) { c.Say("", text) }
	return flagged(cmd, task.Run(cmd.Context(), a))
}

// flagOf is the flag that sets a field of a request.
var flagOf = map[string]string{
	"expiresIn": "expires", "gracePeriod": "grace-period", "metadata": "metadata", "name": "name",
	"scope": "scope", "tenant": "tenant", "limit": "limit", "userId": "user", "roles": "role",
	"role": "role", "ttl": "ttl",
	"user": "user", "except": "except", "delay": "delay", "at": "at", "key": "key",
}

// flagged rewords an error that begins with the name of a request's field: it names the
// flag.
func flagged(cmd *cobra.Command, err error) error {
	all := console.Parts(err)
	for i, one := range all {
		f, ok := errors.AsType[*fault.Fault](one)
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

// dialServer returns a client of the server that runs on the app's data directory. It reports
// problems in the configuration only if no server answers: they may be the cause.
func (c *CLI) dialServer(cmd *cobra.Command) (*admin.Client, error) {
	a, err := c.ReadApp(cmd)
	if err != nil {
		return nil, err
	}
	client, err := admin.Dial(cmd.Context(), a.Data)
	if err == nil {
		return client, nil
	}
	if a.Problems.HasErrors() {
		return nil, a.InvalidConfiguration()
	}
	if errors.Is(err, admin.ErrNoServer) {
		return nil, &console.Failure{
			Status: console.StatusUnreachable, Err: &noServerError{a.Data},
			Hint: "start it with runner serve, or name its data directory with --data",
		}
	}
	return nil, node.Unreachable(a, err)
}

// noServerError says on which data directory no server runs. It matches admin.ErrNoServer.
type noServerError struct{ dir string }

func (e *noServerError) Error() string {
	return fmt.Sprintf("no server is running on data directory %q", e.dir)
}

func (e *noServerError) Is(target error) bool { return target == admin.ErrNoServer }
