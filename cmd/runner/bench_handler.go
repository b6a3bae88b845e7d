package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/develop/handlerbench"
	"runner.example/internal/console"
)

const benchHandlerHelp = `Run one handler of a module many times and show what a request takes: time, changed
memory and the time to restore it, and fuel, which counts loops, calls and their cost in
units of at most 64 ns.

The caller is anonymous. The request is GET / without --request, otherwise the HTTP/1.1
message in a file. The handler's writes to the store are discarded. Limits come from the
app's runner.toml. If there is a schema, secrets come from it, and its block "module" for the
file's name: arguments, environment and files of a program, and whether the module is fresh.`

func benchHandlerCommand(c *program) *cobra.Command {
	var opt handlerbench.Options
	cmd := &cobra.Command{
		Use:               "bench-handler <module> <export>",
		Short:             "measure time and memory of a handler",
		Long:              benchHandlerHelp,
		ValidArgsFunction: cli.FirstArg(cli.AnyFile, c.SchemaNames(cli.HandlerNames)),
		Args:              cli.Exactly(2, "a module's file and the name of a handler in it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := c.OpenApp(cmd)
			if err != nil {
				return err
			}
			opt.App, opt.Module, opt.Handler, opt.Logger = a, args[0], args[1], c.logger(a)
			b, err := handlerbench.Run(cmd.Context(), opt)
			if err != nil {
				return err
			}
			return printBench(&c.Console, b)
		},
	}
	cmd.Flags().StringVar(&opt.Request, "request", "", "file with the request: an HTTP/1.1 message")
	cmd.Flags().StringArrayVar(&opt.Params, "param", nil, "a path parameter, name=value; may be repeated")
	cmd.Flags().IntVarP(&opt.Runs, "runs", "n", 1000, "number of runs")
	return cmd
}

func printBench(c *console.Console, b *handlerbench.Result) error {
	if c.JSON {
		return c.PrintJSON(b)
	}
	row := func(what string, s handlerbench.Spread, show func(float64) string) []string {
		return []string{what, show(s.Median), show(s.P99)}
	}
	whole := func(n float64) string { return strconv.FormatFloat(n, 'f', 0, 64) }
	micros := func(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) + " µs" }
	bytes := func(n float64) string { return whole(n/1024) + " KiB" }
	pages := func(n float64) string { return fmt.Sprintf("%s (%s)", whole(n), bytes(n*float64(b.PageBytes))) }
	err := c.PrintTable([]string{"PER CALL", "MEDIAN", "P99"}, [][]string{
		row("time", b.TimeMicros, micros),
		row("restoring", b.RestoreMicros, micros),
		row("fuel", b.Fuel, whole),
		row("changed pages", b.ChangedPages, pages),
		row("memory", b.MemoryBytes, bytes),
		row("host calls", b.HostCalls, whole),
		row("bytes moved", b.MovedBytes, whole),
	}, "")
	if err == nil {
		c.Say("", fmt.Sprintf("%d runs of %s in %s, each answering %d with %d bytes",
			b.Runs, handlerbench.Exported(b.Handler), b.Module, b.Status, b.AnswerBytes))
	}
	return err
}
