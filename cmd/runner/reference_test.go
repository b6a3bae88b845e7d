package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
)

// docs/cli.md is the help of all commands.
func TestTheCommandReferenceIsGeneratedFromTheHelp(t *testing.T) {
	const path = "../../docs/cli.md"
	want := cliReference((&program{&cli.CLI{}}).root())
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("run go test ./cmd/runner -run Reference -update (-help +page):\n%s", diff)
	}
}

// cliReference returns the reference of a command and its subcommands.
func cliReference(root *cobra.Command) string {
	var out strings.Builder
	out.WriteString("# Commands\n\n" +
		"Generated from the commands' help (`go test ./cmd/runner -run Reference -update`).\n\n" +
		"Every command takes these flags:\n\n```\n" + root.PersistentFlags().FlagUsages() + "```\n" +
		exitHelp)
	list := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(exitHelp), "Exit status:"))
	text := strings.Replace(out.String(), exitHelp, "\n## Exit statuses\n\n```\n  "+list+"\n```\n", 1)
	out.Reset()
	out.WriteString(text)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if !cmd.IsAvailableCommand() && cmd != root || cmd.Name() == "help" {
			return
		}
		if cmd != root {
			about := cmd.Long
			if about == "" {
				about = strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."
			}
			fmt.Fprintf(&out, "\n## %s\n\n```\n%s\n```\n", cmd.CommandPath(), strings.TrimRight(about, "\n"))
			if cmd.Runnable() && !cmd.HasSubCommands() {
				fmt.Fprintf(&out, "\nUsage:\n\n```\n%s\n```\n", cmd.UseLine())
			}
			if cmd.HasExample() {
				fmt.Fprintf(&out, "\nExamples:\n\n```\n%s\n```\n", strings.TrimRight(cmd.Example, "\n"))
			}
			if flags := cmd.LocalNonPersistentFlags().FlagUsages(); flags != "" {
				fmt.Fprintf(&out, "\nFlags:\n\n```\n%s```\n", flags)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return out.String()
}
