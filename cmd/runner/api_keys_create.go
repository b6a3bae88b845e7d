package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/settings"
	"runner.example/keystore"
	"runner.example/node"
	"runner.example/node/admin"
)

const createHelp = `Create an API key. Prints its id, scope, name and expiry, then its token alone on the last
line. The token is shown only this once.`

const createExample = `  runner api-keys create --scope orders_read --name "Acme ERP" --expires 90d
  runner api-keys create --scope orders_read --name ci --out token.txt`

// createFlags are the flags of `runner api-keys create`.
type createFlags struct {
	scope, name, expires, tenant, metadata, out string
	remote                                      cli.Remote
}

func apiKeysCreateCommand(c *program) *cobra.Command {
	var f createFlags
	cmd := &cobra.Command{
		Use:     "create --scope <scope> --name <name>",
		Short:   "create a key and print its token once",
		Long:    createHelp,
		Example: createExample,
		Args:    cli.AtMost(0, "flags alone"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.createKey(cmd, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.scope, "scope", "", "scope of the key, declared in the apiKeys block (required)")
	flags.StringVar(&f.name, "name", "", "name of the key for people (required)")
	flags.StringVar(&f.expires, "expires", "", "lifetime, such as 90d (default: the schema's)")
	flags.StringVar(&f.tenant, "tenant", "", "tenant whose rows the key reaches")
	flags.StringVar(&f.metadata, "metadata", "", "a JSON object kept with the key")
	flags.StringVar(&f.out, "out", "", "write the token to this new file, mode 0600, and not to stdout")
	f.remote.AddFlags(cmd)
	cli.CompleteFlag(cmd, "scope", c.SchemaNames(cli.ScopeNames))
	return cmd
}

func (c *program) createKey(cmd *cobra.Command, f createFlags) error {
	request, err := f.request()
	if err != nil {
		return err
	}
	return c.IssueSecret(cmd, f.remote, f.out, node.Task{NeedsSchema: true, Check: request.Check},
		func(ctx context.Context, node *admin.Client) (cli.IssuedSecret, error) {
			key, err := node.CreateKey(ctx, request)
			return c.newKey(admin.Changed[keystore.Key]{Item: key}), err
		})
}

func (f createFlags) request() (admin.CreateKey, error) {
	switch {
	case f.scope == "" && f.name == "":
		return admin.CreateKey{}, console.Misused("runner api-keys create: --scope and --name are missing")
	case f.scope == "":
		return admin.CreateKey{}, console.Misused("runner api-keys create: --scope is missing")
	case f.name == "":
		return admin.CreateKey{}, console.Misused("runner api-keys create: --name is missing")
	}
	request := admin.CreateKey{Scope: f.scope, Name: f.name, Tenant: f.tenant}
	if f.metadata != "" {
		if !json.Valid([]byte(f.metadata)) {
			return request, console.Invalid("--metadata is not JSON: write an object, such as '{\"team\": \"erp\"}'")
		}
		request.Metadata = json.RawMessage(f.metadata)
	}
	if f.expires == "" {
		return request, nil
	}
	lifetime, err := settings.ParseLifetime(f.expires, "d")
	if err != nil {
		return request, console.Invalid("--expires: %v", err)
	}
	request.ExpiresIn = new(admin.SecondsOf(lifetime))
	return request, nil
}
