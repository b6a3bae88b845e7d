package main

import (
	"errors"
	"io"
	"os/signal"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/system/process"
	"runner.example/node/app"
	"runner.example/node/backup"
)

const restoreHelp = `Make a new data directory from a backup. The directory must be empty if it exists; it
appears complete or not at all. "-" reads the backup from stdin.

--pepper names the pepper file of the server that was backed up. It is copied into the data
directory, unless [keystore] pepper_file names the file where the server reads it.

Exit status 1: the directory is not empty. 3: the backup is damaged or incomplete, the pepper is
not the one of the backed-up server, or the backup has a level that this runner does not know.`

func restoreCommand(c *program) *cobra.Command {
	var pepper string
	cmd := &cobra.Command{
		Use:   "restore <file>",
		Short: "make a data directory from a backup",
		Long:  restoreHelp,
		Example: `  runner restore orders.backup --pepper /safe/pepper
  runner restore orders.backup --data /var/lib/orders/data --pepper /safe/pepper`,
		Args: cli.Exactly(1, "a backup, or - for stdin"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := c.OpenApp(cmd)
			if err != nil {
				return err
			}
			if err := a.CheckData(); err != nil {
				return err
			}
			opt, err := restoreOptions(cmd, a, pepper)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), process.Terminate) // what was written is removed
			defer stop()
			in, size, err := backup.Open(c.Stdin, args[0])
			if err != nil {
				return explainBackup(args[0], err)
			}
			defer in.Close()
			bar := c.NewBar("restoring "+a.Data, size, progress.UnitsBytes)
			info, err := backup.Restore(ctx, io.TeeReader(in, bar), opt)
			bar.End(err)
			if errors.Is(err, backup.ErrNotEmpty) {
				return &console.Failure{Status: console.StatusFailed, Err: err, Hint: "name a new data directory with --data"}
			}
			if err != nil {
				return explainBackup(args[0], err)
			}
			return c.printBackup(args[0], info)
		},
	}
	cmd.Flags().StringVar(&pepper, "pepper", "", "pepper of the backed-up server (default: [keystore] pepper_file)")
	return cmd
}

func restoreOptions(cmd *cobra.Command, a *app.App, pepper string) (backup.RestoreOptions, error) {
	configured := a.KeystoreOptions().PepperFile
	switch {
	case cmd.Flags().Changed("pepper"):
		return backup.RestoreOptions{Dir: a.Data, Pepper: pepper, KeepPepper: configured != ""}, nil
	case configured != "":
		return backup.RestoreOptions{Dir: a.Data, Pepper: configured, KeepPepper: true}, nil
	}
	f := console.Misused("runner restore: --pepper is missing")
	f.Hint = "name the pepper of the server that was backed up: the file pepper of its data directory"
	return backup.RestoreOptions{}, f
}
