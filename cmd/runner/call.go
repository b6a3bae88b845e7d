package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/node/app"
	"runner.example/runtime"
)

const callHelp = `Run a function of the schema as an operator, exposed or not, and print its answer. The
parameters are one JSON object; - reads it from stdin. Parameters and result are checked
as for POST /_call/<name>.

Policies, grants, tenants and rate limits do not restrict the function. --tenant restricts
it to one tenant; rows that it creates belong to that tenant. It runs in the server, or in
the command when there is no server. Its writes are committed if the answer is below 400,
with an audit record of the call.

With --json the output is an object with requestId, status, headers and body.`

func callCommand(c *program) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var tenant string
	cmd := &cobra.Command{
		Use:   "call <function> [parameters]",
		Short: "run a function of the schema",
		Long:  callHelp,
		Example: `  runner call closeMonth '{"month": "2026-10"}'
  runner call closeMonth --tenant acme - <parameters.json
  runner call closeMonth --to https://edge-1.example.com:9443 --key-file admin.key`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.ExactlyOne("the name of a function, and its parameters as a JSON object")(cmd, args)
			}
			return cli.AtMost(2, "the name of a function and one JSON object")(cmd, args)
		},
		ValidArgsFunction: cli.FirstArg(c.SchemaNames(cli.FunctionNames), cobra.NoFileCompletions),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := admin.CallFunction{Name: args[0], Tenant: tenant}
			if len(args) == 2 {
				request.Params = []byte(args[1])
			}
			if len(args) == 2 && args[1] == "-" {
				var err error
				if request.Params, err = io.ReadAll(io.LimitReader(c.Stdin, maxParams+1)); err != nil {
					return fmt.Errorf("read the parameters from stdin: %w", err)
				}
			}
			if len(request.Params) > maxParams {
				return console.Invalid("the parameters have more than %d MiB", maxParams>>20)
			}
			return c.OnRemote(cmd, remote, node.Task{NeedsSchema: true, Runtime: c.functionOptions,
				Do: func(ctx context.Context, node *admin.Client) error {
					return c.call(ctx, node, request)
				}})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "restrict the function to this tenant (default: all tenants)")
	remote.AddFlags(cmd)
	return cmd
}

// functionOptions are the options of a runtime in this process, which logs what functions log.
func (c *program) functionOptions(a *app.App) runtime.Options {
	opt := c.runtimeOptions(a)
	opt.Logger = c.logger(a)
	return opt
}

// maxParams is the largest size of parameters that the command reads. A function may accept
// less.
const maxParams = 8 << 20

func (c *program) call(ctx context.Context, node *admin.Client, request admin.CallFunction) error {
	answer, err := node.CallFunction(ctx, request)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err() // the deadline ended the wait
	}
	if err := c.printCalled(&answer); err != nil || answer.Status < 400 {
		return err
	}
	return callFailure(request.Name, &answer)
}

// printCalled writes the answer: on a terminal readable and safe, otherwise its body unchanged,
// except that text ends with a line end.
func (c *program) printCalled(answer *admin.Called) error {
	if c.JSON {
		return c.PrintJSON(struct {
			*admin.Called
			Body any `json:"body"`
		}{answer, bodyOf(answer.Body)})
	}
	out, isFile := c.Stdout.(*os.File)
	if !isFile || !term.IsTerminal(int(out.Fd())) {
		text := string(answer.Body)
		if text != "" && utf8.ValidString(text) && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return c.Print(text)
	}
	var indented bytes.Buffer
	if json.Indent(&indented, answer.Body, "", "  ") != nil {
		indented.Reset()
		indented.Write(answer.Body)
	}
	if text := strings.TrimRight(console.Harmless(indented.String()), "\n"); text != "" {
		return c.Print(text + "\n")
	}
	return nil
}

// bodyOf returns a body as a member of a document: its JSON, else a string, else base64;
// null for an empty one.
func bodyOf(body []byte) any {
	switch {
	case len(body) == 0:
		return nil
	case json.Valid(body):
		return json.RawMessage(body)
	case utf8.Valid(body):
		return string(body)
	}
	return map[string][]byte{"base64": body}
}

// callFailure reports a function's error answer, with a line for each problem in the
// parameters.
func callFailure(name string, answer *admin.Called) error {
	f := &console.Failure{Status: console.StatusFailed}
	switch fault.Code(answer.Code) {
	case fault.InvalidInput, fault.InvalidJSON, fault.BodyTooLarge:
		f.Status = console.StatusInvalid
	}
	var all []error
	for _, wrong := range answer.Errors {
		about := wrong.Field
		if about == "" {
			about = "the parameters"
		}
		line := console.Harmless(fmt.Sprintf("%s: %s %s", name, about, wrong.Message))
		all = append(all, &console.Failure{Status: f.Status, Err: errors.New(line)})
	}
	if len(all) > 0 {
		return errors.Join(all...)
	}
	text := fmt.Sprintf("%s answered %d", name, answer.Status)
	if answer.Code != "" {
		text += " " + answer.Code
	}
	if answer.Detail != "" {
		text += ": " + answer.Detail
	}
	f.Err = errors.New(console.Harmless(text))
	if answer.Status >= 500 {
		f.Hint = "the log has more about requestId " + answer.RequestID
	}
	return f
}
