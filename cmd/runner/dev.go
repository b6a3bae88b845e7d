package main

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/cmd/runner/jobs"
	"runner.example/develop/dev"
	"runner.example/internal/console"
	"runner.example/node/app"
	"runner.example/node/config"
	"runner.example/runtime/front"
)

const devHelp = `Build and serve the app, and do so again after each save of handlers, schema, runner.toml or
modules in build. Only what has changed is built. Errors are reported with file and line, and
the last good release keeps serving. At startup, the server waits for the first good release.

The line [build] command of runner.toml is run first, and again after a save of a file that is
neither a handler nor its output.

Each request is a line on stdout, followed by the log lines of its handler; errors are shown
with their source line. With --json every line is an object. The path of a request is shown
unchanged; tokens are not shown.

It listens on 127.0.0.1 and the port of [front] listen, unless --listen is given. The data
directory is that of serve. Runs of jobs are lines too, and --at closeMonth lets the schedule of a
job fire at startup. An interrupt or SIGTERM ends it with status 0 after the requests
in flight.`

func devCommand(c *program) *cobra.Command {
	var listen string
	var at []string
	var tests bool
	cmd := &cobra.Command{
		Use:   "dev [dir]",
		Short: "build and serve the app, again after each save",
		Long:  devHelp,
		Args:  cli.AtMost(1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.AppDir(cmd, args); err != nil {
				return err
			}
			if cmd.Flags().Changed("listen") {
				if err := front.CheckListen(listen); err != nil {
					return console.Invalid("--listen: %v", err)
				}
			}
			c.WritesApp()
			var test func(context.Context, []string) string
			if tests {
				test = c.testInDev(cmd)
			}
			return dev.Run(cmd.Context(), dev.Options{
				Test:    test,
				Console: &c.Console, Secrets: c.Secrets, Dir: c.App, ConfigFile: c.configPath(cmd), Listen: listen, At: at,
				Flags:          c.globalFlags(cmd),
				ReadApp:        func() (*app.App, error) { return c.ReadApp(cmd) },
				RuntimeOptions: c.runtimeOptions, PrintError: c.printError, ExitNow: c.exitNow,
			})
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "",
		"host:port to listen on; port 0 takes a free one (default: 127.0.0.1 and the port of [front] listen)")
	cmd.Flags().StringSliceVar(&at, "at", nil,
		"job whose schedule fires once the app is served, beside its times; may be repeated")
	cmd.Flags().BoolVar(&tests, "test", false, "run the tests of the app too, after each save those that it touches")
	cli.CompleteFlag(cmd, "at", c.SchemaNames(jobs.Names))
	return cmd
}

// configPath returns the path of the configuration, whether the file exists or not.
func (c *program) configPath(cmd *cobra.Command) string {
	if cmd.Flags().Changed("config") {
		return c.ConfigFile
	}
	return filepath.Join(c.App, config.FileName)
}

// globalFlags returns the global flags of the command line, quoted for a shell.
func (c *program) globalFlags(cmd *cobra.Command) (text string) {
	for _, flag := range []string{"app", "data", "config"} {
		value := map[string]string{"app": c.App, "data": c.Data, "config": c.ConfigFile}[flag]
		if value != "" && value != cmd.Flag(flag).DefValue {
			text += " --" + flag + " " + shellWord(value)
		}
	}
	return text
}

// shellWord quotes a word for a shell.
func shellWord(word string) string {
	if notInWords.MatchString(strings.ReplaceAll(word, "/", "")) || word == "" {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

var notInWords = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
