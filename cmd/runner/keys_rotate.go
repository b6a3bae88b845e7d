package main

import (
	"context"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/node"
	"runner.example/node/admin"
)

func keysRotateCommand(c *program) *cobra.Command {
	cmd := rotateCommand(c, func(ctx context.Context, node *admin.Client, request admin.RotateKey) (cli.IssuedSecret, error) {
		key, err := node.RotatePlatformKey(ctx, request)
		return c.newPlatformKey(key), err
	}, node.Task{})
	cmd.Example = "  runner keys rotate pkey_01jz… --grace-period 24h --out deploy.key\n" +
		"  runner keys rotate pkey_01jz… --to https://edge-1.example.com:9443 --key-file admin.key"
	return cmd
}
