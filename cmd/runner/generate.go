package main

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/node/app"
	"runner.example/schema"
	"runner.example/schema/generate"
)

const generateTypesHelp = `Generate the types of an app for editors and type checkers into its directory types:

  schema.d.ts          TypeScript: the schema's entities, types and names
  runner-sdk.d.ts      the module @runner/sdk
  runner-globals.d.ts  the globals
  runner-test.d.ts     the module @runner/test
  runner/              Python: the package runner, with the types of the schema

The languages are those of the files in handlers, and TypeScript if there are none. 'runner build'
does this too. With --out, only the TypeScript types of the schema are written, to that file.`

func generateCommand(c *program) *cobra.Command {
	cmd := &cobra.Command{Use: "generate", Short: "generate types, clients and API documents from the schema"}
	cmd.AddCommand(generateTypesCommand(c), generateOpenAPICommand(c), generateClientCommand(c))
	c.OnlySubcommands(cmd)
	return cmd
}

func generateTypesCommand(c *program) *cobra.Command {
	var out, lang string
	cmd := &cobra.Command{
		Use:   "types [dir]",
		Short: "generate types for editors and type checkers",
		Long:  generateTypesHelp,
		Args:  cli.AtMost(1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if lang != "" && !slices.Contains(app.TypeLanguages, lang) {
				return console.Misused("runner generate types: --lang %s: it is one of %s%s",
					lang, strings.Join(app.TypeLanguages, ", "), diag.DidYouMean(lang, app.TypeLanguages))
			}
			if lang == "python" && out != "" {
				return console.Misused("runner generate types: --out is for TypeScript: remove it, or --lang python")
			}
			c.WritesApp()
			a, s, err := c.AppSchema(cmd, args)
			if err != nil {
				return err
			}
			languages := []string{lang}
			if lang == "" {
				languages = app.LanguagesOfTypes(a.Dir)
			}
			if len(languages) == 0 {
				languages = app.TypeLanguages[:1]
			}
			var written []string
			if out != "" {
				languages, written = nil, []string{out}
				if err := app.WriteIfChanged(out, generate.TypeScript(s)); err != nil {
					return err
				}
			}
			for _, language := range languages {
				files, err := app.WriteTypes(a.Dir, language, s)
				if err != nil {
					return err
				}
				written = append(written, files...)
			}
			if c.JSON {
				return c.PrintJSON(written)
			}
			return c.Print(strings.Join(written, "\n") + "\n")
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "write only the TypeScript types of the schema, to this file")
	cmd.Flags().StringVar(&lang, "lang", "", "the language: "+strings.Join(app.TypeLanguages, " or ")+" (default: those of the handlers)")
	cli.CompleteFlag(cmd, "lang", cobra.FixedCompletions(app.TypeLanguages, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

const generateOpenAPIHelp = `Generate an OpenAPI 3.1 document of the app's routes and exposed functions, as JSON: paths and
parameters, credentials, bodies of routes with input: and of functions, results of functions,
and possible refusals. Comments of the schema that begin with /// are descriptions.`

func generateOpenAPICommand(c *program) *cobra.Command {
	var out string
	var opt generate.OpenAPIOptions
	cmd := &cobra.Command{
		Use:   "openapi [dir]",
		Short: "generate an OpenAPI document",
		Long:  generateOpenAPIHelp,
		Example: `  runner generate openapi > openapi.json
  runner generate openapi --out docs/openapi.json --server https://api.example.com --api-version 1.4.0`,
		Args: cli.AtMost(1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, server := range opt.Servers {
				if !isServer(server) {
					return console.Invalid(
						"--server: %q is not the URL of a server: write one as https://api.example.com, or a path on the document's own server",
						server)
				}
			}
			return c.generateText(cmd, args, out, func(s *schema.Schema) []byte { return generate.OpenAPI(s, opt) })
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "write to this file instead of stdout")
	cmd.Flags().StringArrayVar(&opt.Servers, "server", nil, "a URL of the app; may be repeated")
	cmd.Flags().StringVar(&opt.Version, "api-version", "", "the version of the app's interface (default 0.0.0)")
	return cmd
}

// isServer reports whether a URL can be a server's: http or https with a host, or a path,
// without a query or a fragment.
func isServer(text string) bool {
	u, err := url.Parse(text)
	if err != nil || strings.ContainsAny(text, "?#") || u.User != nil {
		return false
	}
	if u.Scheme == "" && u.Host == "" {
		return strings.HasPrefix(text, "/")
	}
	return (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != ""
}

const generateClientHelp = `Generate a client for the app in TypeScript: one file without imports, with a method for each
route, by its handler's name, and for each exposed function, with the types of the schema. It
runs wherever fetch exists: in browsers, Node.js, Deno and Bun.`

func generateClientCommand(c *program) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "client [dir]",
		Short: "generate a TypeScript client",
		Long:  generateClientHelp,
		Example: `  runner generate client --out web/src/client.ts
  runner generate client plugins/examples/orders > client.ts`,
		Args: cli.AtMost(1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.generateText(cmd, args, out, generate.Client)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "write to this file instead of stdout")
	return cmd
}

// generateText writes a text generated from the app's schema to a file, or to stdout if
// none is named. With --json, text that is not JSON is written as a string.
func (c *program) generateText(cmd *cobra.Command, args []string, out string, text func(*schema.Schema) []byte) error {
	c.WritesApp()
	_, s, err := c.AppSchema(cmd, args)
	if err != nil {
		return err
	}
	made := text(s)
	switch {
	case out != "":
		if err := app.WriteIfChanged(out, made); err != nil {
			return err
		}
		if c.JSON {
			return c.PrintJSON([]string{out})
		}
		return c.Print(out + "\n")
	case c.JSON && !json.Valid(made):
		return c.PrintJSON(string(made))
	}
	return c.Print(string(made))
}
