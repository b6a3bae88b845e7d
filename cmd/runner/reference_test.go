package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"runner.example/cmd/runner/cli"
)

// referencePages are the pages of docs/cli: each has the commands of one subject. Each command is on one page.
var referencePages = []struct {
	name, title, about string
	commands           []string
}{
	{"develop.md", "Commands that write and build an app",
		"These commands create, build, check and try an app; a server is not needed. [dev.md](../dev.md) describes " +
			"`runner dev`, and [releases.md](releases.md) has the commands that bring an app to a server.",
		[]string{"new", "dev", "build", "bundle", "test", "generate", "check", "fmt", "lsp", "routes", "bench-handler", "version", "completion"}},
	{"node.md", "Commands that run a node",
		"These commands start, watch, back up and repair a node. [install.md](../install.md) and " +
			"[backup.md](../backup.md) describe the tasks, and [cluster.md](cluster.md) has the commands for several nodes.",
		[]string{"serve", "status", "reload", "config", "backup", "restore", "store", "level"}},
	{"releases.md", "Commands for releases",
		"These commands deploy an app to a node, compare releases and go back to an earlier one. " +
			"[deploy.md](../deploy.md) describes the tasks, and [develop.md](develop.md) has the commands that build the app.",
		[]string{"deploy", "diff", "releases", "rollback"}},
	{"data.md", "Commands for rows and functions",
		"These commands read and change the rows of an app, call its functions, and run failed requests again. [data.md](../data.md) and " +
			"[recordings.md](../recordings.md) describe the tasks, and [jobs.md](jobs.md) has the commands for jobs.",
		[]string{"data", "call", "recorded", "replay"}},
	{"jobs.md", "Commands for jobs",
		"These commands enqueue, list, retry and cancel the jobs of an app. [jobs.md](../jobs.md) describes jobs, and " +
			"[data.md](data.md) has the commands for rows.",
		[]string{"jobs"}},
	{"keys.md", "Commands for keys, sessions and the audit",
		"These commands manage API keys, platform keys and sessions, and read the audit and the clock that lifetimes " +
			"are measured by. [access.md](../access.md) describes the tasks, and [node.md](node.md) has the other commands of operators.",
		[]string{"api-keys", "keys", "sessions", "files", "audit", "clock"}},
	{"cluster.md", "Commands for a cluster",
		"These commands create a cluster, add nodes to it and remove them. [cluster.md](../cluster.md) describes the " +
			"tasks, and [node.md](node.md) has the commands of a single node.",
		[]string{"cluster"}},
}

// The pages of docs/cli are the help of all commands.
func TestTheCommandReferenceIsGeneratedFromTheHelp(t *testing.T) {
	const dir = "../../docs/cli"
	want := cliReference(t, (&program{&cli.CLI{}}).root())
	if *update {
		for name, page := range want {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, path := range found {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got[filepath.Base(path)] = string(page)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run go test ./cmd/runner -run Reference -update (-help +pages):\n%s", diff)
	}
}

const generatedFromHelp = "Generated from the commands' help (`go test ./cmd/runner -run Reference -update`).\n"

// cliReference returns the pages of the reference by their names.
func cliReference(t *testing.T, root *cobra.Command) map[string]string {
	t.Helper()
	var index strings.Builder
	exits := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(exitHelp), "Exit status:"))
	index.WriteString("# Commands\n\nEvery command of `runner`, with the page that has its help, its flags and examples. " +
		generatedFromHelp + "\nEvery command takes these flags:\n\n```\n" + root.PersistentFlags().FlagUsages() +
		"```\n\n## Commands that ask a node\n\n" + aboutNodeFlags + "\n\n```\n" + flagsOf(nodeCommand(t, root), namesNode) +
		"```\n\n## Exit statuses\n\n```\n  " + exits + "\n```\n")
	pages := map[string]string{}
	var listed []string
	for _, page := range referencePages {
		fmt.Fprintf(&index, "\n## %s\n\n| command | |\n|---|---|\n", page.title)
		var out strings.Builder
		fmt.Fprintf(&out, "# %s\n\n%s\n\n%sThe flags of all commands, those that name a node, and the exit statuses are in the [index](README.md).\n",
			page.title, page.about, generatedFromHelp)
		for _, name := range page.commands {
			cmd, _, err := root.Find([]string{name})
			if err != nil {
				t.Fatal(err)
			}
			listed = append(listed, name)
			path := cmd.CommandPath()
			fmt.Fprintf(&index, "| [%s](%s#%s) | %s |\n", path, page.name, strings.ReplaceAll(path, " ", "-"), cmd.Short)
			writeHelp(&out, cmd)
		}
		pages[page.name] = out.String()
	}
	pages["README.md"] = index.String()
	var commands []string
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() && cmd.Name() != "help" {
			commands = append(commands, cmd.Name())
		}
	}
	slices.Sort(listed)
	slices.Sort(commands)
	if diff := cmp.Diff(commands, listed); diff != "" {
		t.Errorf("referencePages must have each command once (-commands +listed):\n%s", diff)
	}
	return pages
}

const aboutNodeFlags = "A command that asks a node asks the server on the app's data directory, over the socket in it. With `--to` it " +
	"asks a node on the network, at the address of its `[admin] listen`; the role of the key must allow it " +
	"([access.md](../access.md#operating-a-node-over-the-network)). It ends with the exit status 6 when the node has been silent " +
	"for `--timeout`, which is longer for operations that may take long. Commands without these flags work on files of " +
	"this machine."

// nodeCommand is a command with the flags of a node.
func nodeCommand(t *testing.T, root *cobra.Command) *cobra.Command {
	cmd, _, err := root.Find([]string{"status"})
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

// namesNode reports whether a flag is one of those that all commands share.
func namesNode(flag *pflag.Flag) bool {
	return cli.IsNodeFlag(flag.Name) && (flag.Name != "timeout" || cli.LimitsAnswers(flag))
}

// flagsOf returns the usage of those flags of a command that are wanted.
func flagsOf(cmd *cobra.Command, wanted func(*pflag.Flag) bool) string {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if wanted(flag) {
			set.AddFlag(flag)
		}
	})
	return set.FlagUsages()
}

// writeHelp writes the help of a command and of its subcommands.
func writeHelp(out *strings.Builder, cmd *cobra.Command) {
	if !cmd.IsAvailableCommand() {
		return
	}
	about := cmd.Long
	if about == "" {
		about = strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."
	}
	fmt.Fprintf(out, "\n## %s\n\n```\n%s\n```\n", cmd.CommandPath(), strings.TrimRight(about, "\n"))
	if cmd.Runnable() && !cmd.HasSubCommands() {
		fmt.Fprintf(out, "\nUsage:\n\n```\n%s\n```\n", cmd.UseLine())
	}
	if cmd.HasExample() {
		fmt.Fprintf(out, "\nExamples:\n\n```\n%s\n```\n", strings.TrimRight(cmd.Example, "\n"))
	}
	if flags := flagsOf(cmd, func(flag *pflag.Flag) bool { return !namesNode(flag) }); flags != "" {
		fmt.Fprintf(out, "\nFlags:\n\n```\n%s```\n", flags)
	}
	if flags := cmd.LocalNonPersistentFlags(); flags.Lookup("to") != nil {
		fmt.Fprint(out, "\nIt takes the [flags that name a node](README.md#commands-that-ask-a-node)")
		if wait := flags.Lookup("timeout"); cli.LimitsAnswers(wait) {
			fmt.Fprintf(out, "; `--timeout` is %s by default", wait.DefValue)
		}
		fmt.Fprint(out, ".\n")
	}
	for _, sub := range cmd.Commands() {
		writeHelp(out, sub)
	}
}
