package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"runner.example/cmd/runner/cli"
	"runner.example/cmd/runner/data"
	"runner.example/cmd/runner/jobs"
	"runner.example/cmd/runner/nodes"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/system/process"
	"runner.example/internal/telemetry"
	"runner.example/node/app"
	"runner.example/runtime/compile"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == app.CompilerCommand {
		os.Exit(compile.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	// A broken pipe is an error of a write; it must not end a server whose log reader has
	// ended.
	process.KeepBrokenPipes()
	umask := process.SetUmask(0o077) // files of the store, and those beside it, are for their owner only
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // the second interrupt has its default effect
	secrets := &telemetry.Values{}
	queue := telemetry.NewQueue(os.Stderr)
	stderr := telemetry.NewRedactor(queue, secrets) // an error may quote an argument, and that may be a token
	c := &program{&cli.CLI{
		Console: console.Console{Stdout: os.Stdout, Stderr: stderr, Terminal: process.Terminal(os.Stderr)},
		Stdin:   os.Stdin, Queue: queue, Environ: os.Environ(), Secrets: secrets, Umask: umask,
	}}
	c.Color = c.Terminal && os.Getenv("NO_COLOR") == ""
	c.ColorOut = process.Terminal(os.Stdout) && os.Getenv("NO_COLOR") == ""
	status := c.run(ctx, os.Args[1:])
	_ = stderr.Flush() // there is no other place to report the error
	queue.Flush(max(time.Until(c.StopBy), flushTime))
	os.Exit(status)
}

// flushTime is how long the process waits for the reader of stderr before it ends, when
// shutdown_timeout leaves no time for it.
const flushTime = 100 * time.Millisecond

// program is one run of the program, with its commands.
type program struct{ *cli.CLI }

// exitNow ends the process at once. Only the log is flushed.
func (c *program) exitNow() {
	if c.Queue != nil {
		c.Queue.Flush(flushTime)
	}
	os.Exit(console.StatusFailed)
}

// run executes one command line and returns its exit status.
func (c *program) run(ctx context.Context, args []string) int {
	root := c.root()
	root.SetArgs(args)
	root.SetIn(c.Stdin)
	root.SetOut(c.Stdout)
	root.SetErr(c.Stderr)
	err := root.ExecuteContext(ctx)
	if errors.Is(err, context.Canceled) {
		err = &console.Failure{Status: console.StatusInterrupted, Err: errors.New("interrupted")}
	}
	return c.report(err)
}

const rootHelp = `runner turns a schema file and a few WebAssembly modules into an HTTP service.

An app is a directory: its *.schema files, an optional runner.toml, and compiled modules in
build/*.wasm. Commands work on the app in the current directory.`

const exitHelp = `
Exit status:
  0    done
  1    failed
  2    usage: an unknown command or flag, or a missing argument
  3    the configuration, the schema or a value is invalid
  4    not found
  5    the state of the key or of the node does not allow it
  6    server not reachable
  130  interrupted
`

func (c *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "runner",
		Short:         "serve HTTP handlers compiled to WebAssembly",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return noEmptyFlags(cmd) }
	root.SetUsageTemplate(root.UsageTemplate() + exitHelp)
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.StringVar(&c.App, "app", ".", "app directory")
	flags.StringVar(&c.Data, "data", "", "data directory (default: [store] dir in the app directory)")
	flags.StringVar(&c.ConfigFile, "config", "", "configuration file (default: runner.toml in the app directory)")
	flags.BoolVar(&c.JSON, "json", false, "print one JSON document")
	root.AddCommand(
		newCommand(c), devCommand(c), serveCommand(c), statusCommand(c), reloadCommand(c), buildCommand(c), bundleCommand(c),
		testCommand(c), generateCommand(c), checkCommand(c), configCommand(c), fmtCommand(c), lspCommand(c),
		routesCommand(c),
		callCommand(c), benchHandlerCommand(c), apiKeysCommand(c), keysCommand(c), sessionsCommand(c), filesCommand(c),
		data.Command(c.CLI, c.functionOptions), releasesCommand(c), deployCommand(c), diffCommand(c),
		rollbackCommand(c), recordedCommand(c), replayCommand(c), auditCommand(c), storeCommand(c), clockCommand(c),
		levelCommand(c), nodes.Command(c.CLI),
		jobs.Command(c.CLI), backupCommand(c), restoreCommand(c), versionCommand(c),
	)
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Short = "generate the completion script of a shell"
			c.OnlySubcommands(cmd)
			for _, shell := range cmd.Commands() {
				shell.Args = cli.AtMost(0, "no argument")
			}
		}
	}
	c.OnlySubcommands(root)
	c.versionFlag(root)
	return root
}

// noEmptyFlags refuses flags that are the empty string, as when a script's variable is not
// set: what the flag is for would silently not be done.
func noEmptyFlags(cmd *cobra.Command) error {
	var all []error
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Value.Type() == "string" && flag.Value.String() == "" {
			all = append(all, console.Invalid("--%s: it must not be empty", flag.Name))
		}
	})
	return errors.Join(all...)
}

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]...",
		Short: "show the help of a command",
		RunE: func(_ *cobra.Command, args []string) error {
			about := root
			for _, word := range args {
				sub, _, err := about.Find([]string{word})
				if err != nil || sub == about {
					return cli.UnknownCommand(about, word)
				}
				about = sub
			}
			return about.Help()
		},
	}
}

// flagError rewords an error of the flag library.
func flagError(cmd *cobra.Command, err error) error {
	f := console.Misused("%s: %s", cmd.CommandPath(), strings.TrimSuffix(err.Error(), "."))
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
		if cli.IsNodeFlag(missing.GetSpecifiedName()) {
			f.Err = fmt.Errorf("%s: --%s is for commands that ask a running node: this one works on files of this machine, so run it where they are",
				cmd.CommandPath(), missing.GetSpecifiedName())
			return f
		}
		if s := diag.Suggest(missing.GetSpecifiedName(), names); s != "" {
			f.Err = errors.New(f.Err.Error() + ` (did you mean "--` + s + `"?)`)
		}
	}
	f.Hint = cmd.CommandPath() + " --help lists the flags"
	return f
}
