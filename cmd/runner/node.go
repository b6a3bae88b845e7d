package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/node"
)

// onNode runs the task on the app's node.
func (c *cli) onNode(cmd *cobra.Command, task node.Task) error {
	a, err := c.openApp(cmd)
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
