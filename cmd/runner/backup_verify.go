package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/system/process"
	"runner.example/node"
	"runner.example/node/backup"
)

const backupVerifyHelp = `Restore a backup into a temporary directory, check what was restored, and remove it: a restore
drill. It checks that

  the backup is intact, and the pepper is the one of the backed-up server
  the restored store opens, and its newest commit is the one of the backup
  all tables have their checksums, and all files of releases their digests
  the keys can be read
  the audit chain is intact, with the head that the backup names
  all releases have all their contents

It needs no server, and as much free space as the store that was backed up takes. "-" reads the
backup from stdin. A running server is not touched.

Exit status 3: the backup cannot replace the store, the pepper is not the one of the backed-up
server, or the backup has a level that this runner does not know. 4: the file does not exist.`

func backupVerifyCommand(c *program) *cobra.Command {
	var opt node.DrillOptions
	cmd := &cobra.Command{
		Use:   "verify <file>",
		Short: "restore a backup into a temporary directory, and check it",
		Long:  backupVerifyHelp,
		Example: `  runner backup verify orders.backup
  runner backup verify orders.backup --pepper /safe/pepper --dir /var/tmp --json`,
		Args: cli.Exactly(1, "a backup, or - for stdin"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opt.Pepper == "" {
				a, err := c.OpenApp(cmd)
				if err != nil {
					return err
				}
				opt.Pepper = a.KeystoreOptions().PepperPath()
				if _, err := os.Stat(opt.Pepper); errors.Is(err, fs.ErrNotExist) {
					f := console.Misused("runner backup verify: no pepper at %q", opt.Pepper)
					f.Hint = "name the pepper of the server that was backed up with --pepper"
					return f
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), process.Terminate) // what was restored is removed
			defer stop()
			in, size, err := backup.Open(c.Stdin, args[0])
			if err != nil {
				return explainBackup(args[0], err)
			}
			defer in.Close()
			bar := c.NewBar("restoring "+args[0], size, progress.UnitsBytes)
			restored := false
			opt.Step = func(name string) {
				if !restored {
					bar.End(nil)
					restored = true
				}
				c.Say("", name)
			}
			found, err := node.VerifyBackup(ctx, io.TeeReader(in, bar), opt)
			if !restored {
				bar.End(err)
			}
			if err != nil {
				return explainBackup(args[0], err)
			}
			return c.printDrill(args[0], found)
		},
	}
	cmd.Flags().StringVar(&opt.Pepper, "pepper", "", "pepper of the backed-up server (default: that of the data directory)")
	cmd.Flags().StringVar(&opt.Dir, "dir", "", "directory for the restored store (default: $TMPDIR, or /tmp)")
	return cmd
}

func (c *program) printDrill(path string, found node.Drill) error {
	if c.JSON {
		return c.PrintJSON(struct {
			File string `json:"file"`
			node.Drill
		}{path, found})
	}
	return c.Print(console.Pairs(append(backupRows(path, found.Info), [][2]string{
		{"keys", fmt.Sprint(found.Keys)},
		{"sessions", fmt.Sprint(found.Sessions)},
		{"audit records", fmt.Sprint(found.AuditRecords)},
		{"releases", fmt.Sprint(found.Releases)},
		{"blobs", fmt.Sprint(found.Blobs)},
		{"active release", cmp.Or(found.ActiveRelease, "-")},
		{"result", "the backup can be restored"},
	}...)))
}
