package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"runner.example/app"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/telemetry"
	"runner.example/runtime/compile"
	"runner.example/schema"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == app.CompilerCommand {
		os.Exit(compile.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	// A broken pipe is an error of a write; it must not end a server whose log reader has
	// ended.
	signal.Ignore(syscall.SIGPIPE)
	umask := syscall.Umask(0o077) // files of the store, and those beside it, are for their owner only
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // the second interrupt has its default effect
	secrets := &telemetry.Values{}
	queue := telemetry.NewQueue(os.Stderr)
	stderr := telemetry.NewRedactor(queue, secrets) // an error may quote an argument, and that may be a token
	c := &cli{
		Console: console.Console{Stdout: os.Stdout, Stderr: stderr, Terminal: term.IsTerminal(int(os.Stderr.Fd()))},
		stdin:   os.Stdin, queue: queue, environ: os.Environ(), secrets: secrets, umask: umask,
	}
	c.Color = c.Terminal && os.Getenv("NO_COLOR") == ""
	c.ColorOut = term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == ""
	status := c.run(ctx, os.Args[1:])
	_ = stderr.Flush() // there is no other place to report the error
	queue.Flush(max(time.Until(c.stopBy), flushTime))
	os.Exit(status)
}

// flushTime is how long the process waits for the reader of stderr before it ends, when
// shutdown_timeout leaves no time for it.
const flushTime = 100 * time.Millisecond

// cli is one run of the program: its input and output, and the global flags.
type cli struct {
	console.Console
	stdin io.Reader
	// queue is the log queue that stderr writes to, or nil.
	queue   *telemetry.Queue
	environ []string
	// stopBy is when shutdown_timeout ends; zero until a signal has arrived.
	stopBy time.Time
	// secrets are the values that stderr hides, or nil.
	secrets *telemetry.Values
	// umask is the umask with which the program was started.
	umask int

	app, data, configFile string
}

// exitNow ends the process at once. Only the log is flushed.
func (c *cli) exitNow() {
	if c.queue != nil {
		c.queue.Flush(flushTime)
	}
	os.Exit(console.StatusFailed)
}

// run executes one command line and returns its exit status.
func (c *cli) run(ctx context.Context, args []string) int {
	root := c.root()
	root.SetArgs(args)
	root.SetIn(c.stdin)
	root.SetOut(c.Stdout)
	root.SetErr(c.Stderr)
	err := root.ExecuteContext(ctx)
	if errors.Is(err, context.Canceled) {
		err = &console.Failure{Status: console.StatusInterrupted, Err: errors.New("interrupted")}
	}
	return c.report(err)
}

// writesApp restores the user's umask: files of an app are not secrets. Files that are
// secrets are created with their own mode.
func (c *cli) writesApp() { syscall.Umask(c.umask) }

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

func (c *cli) root() *cobra.Command {
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
	flags.StringVar(&c.app, "app", ".", "app directory")
	flags.StringVar(&c.data, "data", "", "data directory (default: [store] dir in the app directory)")
	flags.StringVar(&c.configFile, "config", "", "configuration file (default: runner.toml in the app directory)")
	flags.BoolVar(&c.JSON, "json", false, "print one JSON document")
	root.AddCommand(
		newCommand(c), devCommand(c), serveCommand(c), statusCommand(c), reloadCommand(c), buildCommand(c), generateCommand(c), checkCommand(c), fmtCommand(c), routesCommand(c),
		callCommand(c), benchHandlerCommand(c), apiKeysCommand(c), sessionsCommand(c), dataCommand(c), releasesCommand(c), rollbackCommand(c), auditCommand(c), storeCommand(c), clockCommand(c), backupCommand(c), restoreCommand(c), versionCommand(c),
	)
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Short = "generate the completion script of a shell"
			c.onlySubcommands(cmd)
			for _, shell := range cmd.Commands() {
				shell.Args = atMost(0, "no argument")
			}
		}
	}
	c.onlySubcommands(root)
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
					return unknownCommand(about, word)
				}
				about = sub
			}
			return about.Help()
		},
	}
}

// onlySubcommands makes a command that only has subcommands fail without one, with its help
// on stderr, and fail for an unknown one. The program alone shows its help.
func (c *cli) onlySubcommands(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 0:
			return unknownCommand(cmd, args[0])
		case !c.JSON && !cmd.HasParent():
			return cmd.Help()
		case !c.JSON:
			cmd.SetOut(c.Stderr)
			if err := cmd.Help(); err != nil {
				return err
			}
		}
		f := console.Misused("%s: a subcommand is missing", cmd.CommandPath())
		f.Hint = cmd.CommandPath() + " --help lists the commands"
		return f
	}
}

func unknownCommand(parent *cobra.Command, word string) error {
	var names []string
	for _, sub := range parent.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	f := console.Misused("unknown command %q for %q%s", word, parent.CommandPath(), diag.DidYouMean(word, names))
	f.Hint = parent.CommandPath() + " --help lists the commands"
	return f
}

// flagError rewords an error of the flag library.
func flagError(cmd *cobra.Command, err error) error {
	f := console.Misused("%s: %s", cmd.CommandPath(), strings.TrimSuffix(err.Error(), "."))
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
		if s := diag.Suggest(missing.GetSpecifiedName(), names); s != "" {
			f.Err = errors.New(f.Err.Error() + ` (did you mean "--` + s + `"?)`)
		}
	}
	f.Hint = cmd.CommandPath() + " --help lists the flags"
	return f
}

// appDir sets --app to the directory that is the argument of serve, check and similar
// commands.
func (c *cli) appDir(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.Flags().Changed("app") && c.app != args[0] {
		return console.Misused("%s: the directory is given twice, as %q and as --app %q", cmd.CommandPath(), args[0], c.app)
	}
	if args[0] == "" {
		return console.Invalid("%s: the directory must not be empty: omit it for the current one", cmd.CommandPath())
	}
	c.app = args[0]
	return nil
}

// appSchema returns the app in the directory of a command, and its schema.
func (c *cli) appSchema(cmd *cobra.Command, args []string) (*app.App, *schema.Schema, error) {
	if err := c.appDir(cmd, args); err != nil {
		return nil, nil, err
	}
	a, err := c.readApp(cmd)
	if err != nil {
		return nil, nil, err
	}
	s, _, err := a.Compile()
	return a, s, err
}

// atMost is cobra.MaximumNArgs with our error text.
func atMost(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		f := console.Misused("%s: unexpected argument %q: it takes %s", cmd.CommandPath(), args[n], what)
		f.Hint = cmd.CommandPath() + " --help explains it"
		return f
	}
}

// exactlyOne is cobra.ExactArgs(1) with our error text.
func exactlyOne(what string) cobra.PositionalArgs { return exactly(1, what) }

// exactly is cobra.ExactArgs with our error text.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		f := console.Misused("%s: it takes %s", cmd.CommandPath(), what)
		f.Hint = cmd.UseLine()
		return f
	}
}
