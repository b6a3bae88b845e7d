package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
)

// onFiles are the commands that work on files of this machine: a directory of an app, a data directory that no server
// uses, or a file.
var onFiles = []string{
	"runner new", "runner dev", "runner serve", "runner build", "runner bundle", "runner generate types", "runner generate client", "runner lsp",
	"runner generate openapi", "runner check", "runner fmt", "runner bench-handler", "runner store salvage",
	"runner restore", "runner backup verify", "runner version",
	"runner cluster init", "runner cluster join", "runner cluster dissolve",
	"runner completion bash", "runner completion fish", "runner completion powershell", "runner completion zsh", "runner help",
}

// Every command takes the flags that name a node, or says in one sentence why it does not.
func TestEveryCommandWorksOnANodeOrSaysThatItDoesNot(t *testing.T) {
	var local []string
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		flags := cmd.LocalNonPersistentFlags()
		if cmd.HasSubCommands() && flags.Lookup("to") == nil || !cmd.Runnable() {
			return // it only has subcommands
		}
		for _, name := range []string{"fingerprint", "key-file", "timeout"} {
			if (flags.Lookup(name) == nil) != (flags.Lookup("to") == nil) {
				t.Errorf("%s has only some of the flags that name a node", cmd.CommandPath())
			}
		}
		if flags.Lookup("to") == nil {
			local = append(local, cmd.CommandPath())
		}
	}
	root := (&program{&cli.CLI{}}).root()
	root.InitDefaultHelpCmd()
	visit(root)
	slices.Sort(local)
	want := slices.Sorted(slices.Values(onFiles))
	if !slices.Equal(local, want) {
		t.Errorf("commands without the flags:\n%s\nwant\n%s", strings.Join(local, "\n"), strings.Join(want, "\n"))
	}
	for _, path := range local {
		if path == "runner help" {
			continue // it takes words, no flags
		}
		var stdout, stderr bytes.Buffer
		c := &program{&cli.CLI{Console: console.Console{Stdout: &stdout, Stderr: &stderr}, Stdin: strings.NewReader("")}}
		status := c.run(t.Context(), append(strings.Fields(path)[1:], "--to", "https://edge-1.example.com:9443"))
		want := "runner: error: " + path + ": --to is for commands that ask a running node: " +
			"this one works on files of this machine, so run it where they are\n"
		if text := stderr.String(); status != console.StatusMisused || stdout.Len() > 0 || text != want {
			t.Errorf("%s: %d %s%s", path, status, stdout.String(), text)
		}
	}
}
