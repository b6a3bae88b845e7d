package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/internal/system/process"
	"runner.example/node/admin"
	"runner.example/node/app"
	"runner.example/node/cluster"
	"runner.example/state/store"
)

const clusterHelp = `Manage a cluster: several runners that have the same rows, keys and releases, and share one
log of commits. A majority of the voters decides each commit, so 3 voters go on without one of
them, and 5 without two. Edge nodes follow, and commit through the voters; there may be many.

The first node is made from a stopped server by init, and each further one by an invitation:

  runner cluster init --data n1 --listen 10.0.0.1:9400
  runner serve --data n1
  runner cluster invite --data n1                             (prints a token)
  runner cluster join <token> --data n2 --listen 10.0.0.2:9400  (on the other machine)
  runner serve --data n2
  runner cluster wait n2 --data n1                            (until the next step is safe)

A node uses three ports: that of --listen for the other nodes, and the two after it for etcd.`

// Command returns the command cluster.
func Command(c *cli.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "make several runners one service: init, invite, join, status, wait, leave, dissolve",
		Long:  clusterHelp,
	}
	cmd.AddCommand(initCommand(c), inviteCommand(c), joinCommand(c), statusCommand(c), waitCommand(c), leaveCommand(c),
		dissolveCommand(c))
	if !process.ForServers() {
		for _, sub := range cmd.Commands() {
			sub.RunE = func(*cobra.Command, []string) error {
				return console.Misused("a cluster needs Linux: this system is for development, with one server")
			}
		}
	}
	c.OnlySubcommands(cmd)
	return cmd
}

// flags are those of commands that make a node.
type flags struct{ name, listen string }

func (f *flags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.name, "name", "", "name of the node (default: [cluster] name, or the machine's)")
	cmd.Flags().StringVar(&f.listen, "listen", "",
		"host:port at which the other nodes reach this one (default: [cluster] listen, or a free port of 127.0.0.1)")
}

// app returns the app, whose settings the flags replace.
func (f *flags) app(c *cli.CLI, cmd *cobra.Command) (*app.App, error) {
	a, err := c.OpenApp(cmd)
	if err != nil {
		return nil, err
	}
	for _, flag := range []string{"name", "listen"} {
		if cmd.Flags().Changed(flag) && cmd.Flag(flag).Value.String() == "" { // a variable of a script that is not set
			return nil, console.Misused("--%s is empty: leave it out to use the default", flag)
		}
	}
	opt := &a.Config.Cluster
	opt.Name, opt.Listen = cmp.Or(f.name, opt.Name), cmp.Or(f.listen, opt.Listen)
	for _, set := range []struct{ key, flag, value string }{
		{"cluster.name", "--name", f.name}, {"cluster.listen", "--listen", f.listen},
	} {
		if err := opt.CheckSetting(set.key, set.value); err != nil {
			return nil, console.Invalid("%s: %v", set.flag, err)
		}
	}
	return a, a.CheckData()
}

const initHelp = `Make a data directory that no server uses the first node of a new cluster: a voter. Its rows, keys
and releases stay. A directory that does not exist is created.

From then on only a server may open the directory: all commands on it need a running server, and exit
with status 6 otherwise.`

func initCommand(c *cli.CLI) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:     "init",
		Short:   "make a stopped server the first node of a cluster",
		Long:    initHelp,
		Example: "  runner cluster init --data /var/lib/orders/data --listen 10.0.0.1:9400 --name paris",
		Args:    cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := f.app(c, cmd)
			if err != nil {
				return err
			}
			self, err := cluster.Init(cmd.Context(), a.Data, a.ClusterOptions())
			if err != nil {
				return inUse(a, err)
			}
			return printNode(c, "the data directory "+a.Data+" is now a node", self, "runner serve --data "+a.Data)
		},
	}
	f.add(cmd)
	return cmd
}

// printNode writes what was made, and what to do next.
func printNode(c *cli.CLI, done string, self cluster.Peer, next string) error {
	if c.JSON {
		return c.PrintJSON(self)
	}
	c.Say("", done)
	c.Say("hint: ", next)
	return c.Print(console.Pairs([][2]string{{"name", self.Name}, {"role", string(self.Role)}, {"address", self.Address}}))
}

// inUse gives the error of a data directory that a process uses its hint.
func inUse(a *app.App, err error) error {
	if errors.Is(err, store.ErrLocked) {
		return &console.Failure{
			Status: console.StatusState, Err: fmt.Errorf("%q: %w", a.Data, err), Hint: "stop the server first",
		}
	}
	return err
}

const inviteHelp = `Print an invitation for one machine: a token for "runner cluster join", which can be used once
within 15 minutes. A machine with the token becomes a node, and receives all rows and the pepper of
the keys. So send the token as you would send a password.

A voter takes part in decisions: use 1, 3 or 5. Any number of nodes may be edge nodes. The server of
a voter must run.`

func inviteCommand(c *cli.CLI) *cobra.Command {
	var request admin.InviteNode
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:     "invite",
		Short:   "print a token with which one machine can join",
		Long:    inviteHelp,
		Example: "  runner cluster invite --data n1\n  runner cluster invite --edge --to https://n1.example.com:9443 --key-file admin.key",
		Args:    cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			node, err := c.DialRemote(cmd, remote)
			if err != nil {
				return err
			}
			i, err := node.InviteNode(cmd.Context(), request)
			if err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(i)
			}
			return c.Print(i.Token + "\n")
		},
	}
	cmd.Flags().BoolVar(&request.Edge, "edge", false, "invite an edge node")
	remote.AddFlags(cmd)
	return cmd
}

const joinHelp = `Make a new data directory a node of the cluster that sent the invitation. It receives the pepper,
and all rows, keys and releases. "runner serve --data <dir>" then serves it.

Exit status 3: the token is not valid. 5: the invitation was used or has expired, the name or
address is taken, or this runner does not know the level of the cluster. 6: the node that made the invitation cannot be reached.`

func joinCommand(c *cli.CLI) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:     "join <token>",
		Short:   "make a new data directory a node",
		Long:    joinHelp,
		Example: "  runner cluster join runner-join-eyJhIjoi… --data /var/lib/orders/data --listen 10.0.0.2:9400 --name rome",
		Args:    cli.Exactly(1, "the token that runner cluster invite has printed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := f.app(c, cmd)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), process.Terminate) // what was written is removed
			defer stop()
			bar := c.NewBar("receiving the data of the cluster", 0, progress.UnitsBytes)
			self, err := cluster.Join(ctx, secret.New(args[0]), cluster.JoinOptions{
				Options: a.ClusterOptions(), Data: a.Data, Pepper: a.KeystoreOptions().PepperFile, Progress: bar,
			})
			bar.End(err)
			if err != nil {
				return joinFailure(err)
			}
			return printNode(c, "joined", self, "runner serve --data "+a.Data)
		},
	}
	f.add(cmd)
	return cmd
}

// joinFailure gives the error of a join its exit status.
func joinFailure(err error) error {
	switch fault.CodeOf(err) {
	case fault.Denied, fault.Conflict:
		return &console.Failure{Status: console.StatusState, Err: err}
	}
	return err
}

const statusHelp = `Show the nodes of the cluster as the asked node sees them: their role, which commit they have applied,
how old what they know may be, when they answered last, the release that they serve, and by how much
their clocks differ. leader is the voter that orders commits, owner the node that does the background
work. The last line says how many voters may fail now. Secrets and variables of the app whose values
differ between nodes are named.

With --json all of it, with the reasons.`

func statusCommand(c *cli.CLI) *cobra.Command {
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "show the nodes of the cluster",
		Long:    statusHelp,
		Example: "  runner cluster status --data n1",
		Args:    cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			node, err := c.DialRemote(cmd, remote)
			if err != nil {
				return err
			}
			s, err := node.ClusterStatus(cmd.Context())
			if err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(s)
			}
			return printStatus(c, s)
		},
	}
	remote.AddFlags(cmd)
	return cmd
}

func printStatus(c *cli.CLI, s cluster.Overview) error {
	var rows [][]string
	for _, n := range s.Nodes {
		state := "ready"
		switch {
		case n.Unlisted:
			state = "not a node, but counts as a voter: run runner cluster leave " + n.Name
		case n.Leaving:
			state = "leaving: if it stays so, run runner cluster leave " + n.Name + " again"
		case !n.Connected:
			state = "not connected"
		case n.NotReady != "":
			state = n.NotReady
		case n.Joining:
			state = "no vote yet"
		case n.MissingFiles > 0:
			state = "ready, lacks " + console.Plural(int(n.MissingFiles), "file")
		}
		seen := "never"
		switch {
		case n.Name == s.Node:
			seen = "-"
		case n.Seen >= 0:
			seen = fmt.Sprintf("%.1fs ago", float64(n.Seen)/1000)
		}
		age := "unknown"
		if n.Staleness >= 0 {
			age = (time.Duration(n.Staleness) * time.Millisecond).Round(10 * time.Millisecond).String()
		}
		marks := ""
		if n.Joining {
			marks += " joining"
		}
		if n.Name == s.Leader {
			marks += " leader"
		}
		if n.Name == s.Owner {
			marks += " owner"
		}
		rows = append(rows, []string{
			n.Name, string(n.Role) + marks, n.Address, fmt.Sprint(n.Applied), fmt.Sprint(n.Lag), age, seen,
			(time.Duration(n.Skew) * time.Millisecond).String(), short(n.Release), state,
		})
	}
	if err := c.PrintTable([]string{"NODE", "ROLE", "ADDRESS", "APPLIED", "LAG", "AGE", "SEEN", "CLOCK", "RELEASE", "STATE"},
		rows, "no nodes"); err != nil {
		return err
	}
	if s.MayFail >= 0 {
		if err := c.Print(mayFail(s) + "\n"); err != nil {
			return err
		}
	}
	if !s.Quorum {
		c.Say("warning: ", "no majority of the voters can be reached from "+s.Node+": nothing can be stored")
	}
	if len(s.Secrets) > 0 {
		c.Say("warning: ", "secrets with different values: "+strings.Join(s.Secrets, ", "))
	}
	if len(s.Vars) > 0 {
		c.Say("", "variables with different values: "+strings.Join(s.Vars, ", "))
	}
	return nil
}

// mayFail says how many voters may fail now.
func mayFail(s cluster.Overview) string {
	take := "take"
	if s.Voters == 1 {
		take = "takes"
	}
	return fmt.Sprintf("%d of %s %s part, %d must: %d may fail now", s.Voting, console.Plural(s.Voters, "voter"), take, s.Needed(), s.MayFail)
}

// short returns the beginning of the id of a release, enough to tell it from others.
func short(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return cmp.Or(id, "-")
}

const leaveHelp = `Remove a node from the cluster permanently: the one whose server is asked, which then ends, or another
one by its name, which need not run. A removed node may join again with a new data directory.

The last voter cannot leave: stop it and use "runner cluster dissolve".`

func leaveCommand(c *cli.CLI) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var yes bool
	cmd := &cobra.Command{
		Use:     "leave [node]",
		Short:   "remove a node from the cluster",
		Long:    leaveHelp,
		Example: "  runner cluster leave --data n3\n  runner cluster leave rome --data n1",
		Args:    cli.AtMost(1, "the name of a node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "" { // a variable of a script that is not set
				return console.Misused("the name of the node is empty: leave it out to remove the node of the server that is asked")
			}
			node, err := c.DialRemote(cmd, remote)
			if err != nil {
				return err
			}
			request := admin.LeaveCluster{}
			question := "remove the node of this server from its cluster?"
			if len(args) == 1 {
				request.Node = args[0]
				question = "remove the node " + args[0] + " from its cluster?"
			}
			if ok, err := confirmed(c, cmd.Context(), yes, question); err != nil || !ok {
				return err
			}
			left, err := node.LeaveCluster(cmd.Context(), request)
			if err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(left)
			}
			text := "removed " + left.Node + "\n"
			if left.Self {
				c.Say("", "its server stops; runner cluster dissolve turns its data directory into a standalone one")
			}
			return c.Print(text)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	remote.AddFlags(cmd)
	return cmd
}

// confirmed asks a person; scripts are not asked.
func confirmed(c *cli.CLI, ctx context.Context, yes bool, question string) (bool, error) {
	if yes || !c.CanAsk() {
		return true, nil
	}
	return c.Confirm(ctx, question)
}

const dissolveHelp = `Turn the data directory of a stopped node back into that of a standalone server. Its rows, keys, releases and audit stay, and
commands work on it without a server.

The other nodes are not told. So dissolve the last node, or one node of a cluster that has lost a
majority of its voters permanently: commits that this node has not applied are not in it. If two nodes
of one cluster go on, each has its own rows from then on.`

func dissolveCommand(c *cli.CLI) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "dissolve",
		Short:   "turn a stopped node back into a standalone server",
		Long:    dissolveHelp,
		Example: "  runner cluster dissolve --data n2",
		Args:    cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.OpenApp(cmd)
			if err != nil {
				return err
			}
			if ok, err := confirmed(c, cmd.Context(), yes,
				"turn "+a.Data+" into a standalone data directory?"); err != nil || !ok {
				return err
			}
			self, err := cluster.Dissolve(cmd.Context(), a.Data)
			if err != nil {
				return inUse(a, err)
			}
			if c.JSON {
				return c.PrintJSON(self)
			}
			return c.Print("the node " + self.Name + " is standalone now\n")
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}
