package main

import (
	"context"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/state/entity/catalog"
)

const storeVerifyHelp = `Check that rows and indexes agree. Every row must be readable, and its relations must refer to existing
rows, except that a tenant may have no row. Every index must have an entry for every row, and every
entry must belong to a row with the same values. In a unique index, a value must belong to one row. All
stored rows must belong to an entity.

The server can keep running: the command checks 200,000 rows and entries at a time, each time in one
snapshot. If no server runs, it opens the data directory. It changes no data, and stops after 20 findings.

To check the files of the data directory and the audit log, use runner audit verify.

Exit status 3: the check has findings.`

// verified is the document of `runner store verify --json`.
type verified struct {
	// Rows and Entries are the numbers of checked rows and index entries.
	Rows    int `json:"rows"`
	Entries int `json:"entries"`
	// Findings are empty if rows and indexes agree.
	Findings []string `json:"findings"`
}

func storeVerifyCommand(c *program) *cobra.Command {
	remote := cli.Remote{Slow: true}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "check that rows, indexes and relations agree",
		Long:  storeVerifyHelp,
		Example: `  runner store verify
  runner store verify --data /var/lib/runner/orders --json`,
		Args: cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				found, err := verifyStore(ctx, node, c.NewBar("rows and entries", 0, progress.UnitsDefault))
				if err != nil {
					return err
				}
				return c.printVerified(found)
			}})
		},
	}
	remote.AddFlags(cmd)
	return cmd
}

// verifyStore verifies the store part by part, and sums up the results.
func verifyStore(ctx context.Context, node *admin.Client, bar *console.Bar) (all verified, err error) {
	defer func() { bar.End(err) }()
	all.Findings = []string{}
	var request admin.VerifyStore
	for {
		part, err := node.VerifyStore(ctx, request)
		if err != nil {
			return all, err
		}
		all.Rows += part.Rows
		all.Entries += part.Entries
		bar.Add(int64(part.Rows + part.Entries))
		all.Findings = append(all.Findings, part.Findings...)
		if request.From = part.Next; request.From == nil || len(all.Findings) >= catalog.MaxFindings {
			return all, nil
		}
	}
}

func (c *program) printVerified(found verified) error {
	if c.JSON {
		if err := c.PrintJSON(found); err != nil {
			return err
		}
	} else if err := c.Print(fmt.Sprintf("checked %s and %s\n",
		console.Plural(found.Rows, "row"), console.Plural(found.Entries, "index entry"))); err != nil {
		return err
	}
	if len(found.Findings) == 0 {
		return nil
	}
	for _, finding := range found.Findings {
		c.Say("found: ", finding)
	}
	return &console.Failure{
		Status: console.StatusInvalid, Err: fmt.Errorf("rows and indexes do not agree: %s", console.Plural(len(found.Findings), "finding")),
		Hint: "restore a backup, or export the rows with runner data export and import them into a new data directory",
	}
}
