package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/system/process"
	"runner.example/internal/system/socket"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/node/backup"
)

const backupHelp = `Write a backup of the data to a file: rows, jobs, keys, sessions, releases and the audit, as of
one commit. A running server sends it and continues to serve; without a server, the
command opens the store. With --to, the node on the network sends it, to a key with the role
admin; the file is written on this machine. The command has a low priority (nice 15): on a busy machine the
backup takes longer, and requests are served as before. The file appears complete or not at
all, with mode 0600. "-" writes to stdout.

With --without-files the contents of the files of rows are left out. After a restore the rows still describe their
files, and reading one is the error not_found.

The pepper is not in the backup: keep a copy of it elsewhere. Restoring needs both.

With --keep, the argument is a directory that exists. The backup becomes the file <app>-<time>.backup there, with
the time in UTC, and then older backups are deleted. --keep 7d,4w keeps the newest backup of each of
the last 7 days that have one, and of each of the last 4 weeks that have one; m stands for months.
Days begin at midnight in UTC, weeks on Monday. Only files are deleted that have such a name and that
begin as a backup of this app with this pepper. If the backup fails, none is deleted.

With --check, read a whole backup instead, and describe it. Exit status 3: the backup is
damaged or incomplete. "runner backup verify" also restores it, and checks the result.`

func backupCommand(c *program) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var check, force bool
	var keep string
	var request admin.BackupRequest
	cmd := &cobra.Command{
		Use:   "backup <file or directory>",
		Short: "write a backup of the data, delete old ones, or check one",
		Long:  backupHelp,
		Example: `  runner backup orders.backup
  runner backup - | ssh vault 'cat > orders.backup'
  runner backup /var/backups/runner --keep 7d,4w
  runner backup orders.backup --without-files
  runner backup edge-1.backup --to https://edge-1.example.com:9443 --key-file admin.key
  runner backup --check orders.backup`,
		Args: cli.Exactly(1, "a file, - for stdout, or with --keep a directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), process.Terminate) // the partial file is removed
			defer stop()
			switch {
			case check && force:
				return console.Misused("runner backup: --check writes nothing: omit --force")
			case cmd.Flags().Changed("keep") && (check || force || args[0] == "-"):
				return console.Misused("runner backup: --keep writes a new file in a directory: omit --check and --force, and name a directory")
			case check && request.WithoutFiles:
				return console.Misused("runner backup: --check writes nothing: omit --without-files")
			case cmd.Flags().Changed("keep"):
				return c.backupIntoDir(ctx, cmd, remote, args[0], keep, request)
			case check && remote.Given():
				return console.Misused("runner backup: --check reads a file of this machine: omit --to")
			case check:
				return c.checkBackup(ctx, args[0])
			case args[0] == "-" && c.JSON:
				return console.Misused("runner backup: stdout cannot have both the backup and a JSON document: name a file")
			}
			process.YieldToOthers() // a server sends a backup no faster than its reader reads
			return c.OnRemote(cmd, remote, node.Task{Do: func(_ context.Context, node *admin.Client) error {
				return c.writeBackup(ctx, node, args[0], force, request)
			}})
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "read the file and report whether it is intact")
	cmd.Flags().BoolVar(&force, "force", false, "replace an existing file")
	cmd.Flags().StringVar(&keep, "keep", "", "write a new file in a directory, and keep backups by days, weeks and months: 7d,4w,12m")
	cmd.Flags().BoolVar(&request.WithoutFiles, "without-files", false, "leave out the contents of the files of rows")
	remote.AddFlags(cmd)
	cmd.AddCommand(backupVerifyCommand(c))
	return cmd
}

// writeBackup writes a backup to a file or to stdout.
func (c *program) writeBackup(ctx context.Context, node *admin.Client, path string, force bool, request admin.BackupRequest) error {
	send := func(w io.Writer) error { return node.Backup(ctx, request, w) }
	if path == "-" {
		if f, ok := c.Stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return console.Misused("runner backup: stdout is a terminal: name a file, or redirect it")
		}
		info, err := backup.Copy(ctx, c.Stdout, send)
		if socket.Broken(err) { // the backup is incomplete
			return &console.Failure{Status: console.StatusFailed, Err: err}
		}
		if err == nil {
			c.recordBackup(ctx, node, info)
			c.Say("", fmt.Sprintf("backup written: sequence %d, %d bytes, sha256 %s, audit head %s",
				info.Sequence, info.Bytes, info.SHA256, info.AuditHead))
		}
		return err
	}
	bar := c.NewBar("backing up", 0, progress.UnitsBytes)
	info, err := backup.File(ctx, path, force, func(w io.Writer) error { return send(io.MultiWriter(w, bar)) })
	bar.End(err)
	if errors.Is(err, backup.ErrExists) {
		return &console.Failure{
			Status: console.StatusFailed, Err: err, Hint: "choose another name, or replace it with --force",
		}
	}
	if err != nil {
		return err
	}
	c.recordBackup(ctx, node, info)
	return c.printBackup(path, info)
}

// backupIntoDir writes a backup to a new file of a directory, and deletes old ones.
func (c *program) backupIntoDir(ctx context.Context, cmd *cobra.Command, remote cli.Remote, dir, text string, request admin.BackupRequest) error {
	keep, err := backup.ParseKeep(text)
	if err != nil {
		return console.Invalid("--keep: %v", err)
	}
	process.YieldToOthers()
	return c.OnRemote(cmd, remote, node.Task{Do: func(_ context.Context, node *admin.Client) error {
		status, err := node.Status(ctx)
		if err != nil {
			return err
		}
		bar := c.NewBar("backing up", 0, progress.UnitsBytes)
		path, info, changed, err := backup.InDir(ctx, dir, status.App, keep, func(w io.Writer) error {
			return node.Backup(ctx, request, io.MultiWriter(w, bar))
		})
		bar.End(err)
		if path != "" {
			c.recordBackup(ctx, node, info)
		}
		if err != nil {
			return err
		}
		for _, name := range changed.Deleted {
			c.Say("", "deleted "+name)
		}
		if c.JSON {
			return c.PrintJSON(struct {
				File string `json:"file"`
				backup.Info
				backup.Changed
			}{path, info, changed})
		}
		return c.Print(console.Pairs(append(backupRows(path, info),
			[2]string{"kept", fmt.Sprint(len(changed.Kept))}, [2]string{"deleted", fmt.Sprint(len(changed.Deleted))})))
	}})
}

// recordBackup tells the node of a good backup. Without it the backup is as good, and the metrics show the one before.
func (c *program) recordBackup(ctx context.Context, node *admin.Client, info backup.Info) {
	if _, err := node.RecordBackup(ctx, info); err != nil {
		c.Say("warning: ", fmt.Sprintf("the backup is good, but the node has not noted it, so status and metrics do not show it: %v", err))
	}
}

// checkBackup reads a backup and describes it.
func (c *program) checkBackup(ctx context.Context, path string) error {
	in, size, err := backup.Open(c.Stdin, path)
	if err != nil {
		return explainBackup(path, err)
	}
	defer in.Close()
	bar := c.NewBar("reading "+path, size, progress.UnitsBytes)
	info, err := backup.Check(ctx, io.TeeReader(in, bar))
	bar.End(err)
	if err != nil {
		return explainBackup(path, err)
	}
	return c.printBackup(path, info)
}

// explainBackup names the file of an invalid backup.
func explainBackup(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &console.Failure{Status: console.StatusNotFound, Err: err}
	}
	if !errors.Is(err, backup.ErrInvalid) {
		return err
	}
	return &console.Failure{
		Status: console.StatusInvalid, Err: fmt.Errorf("%q: %w", path, err), Hint: "use another backup",
	}
}

func (c *program) printBackup(path string, info backup.Info) error {
	if c.JSON {
		return c.PrintJSON(struct {
			File string `json:"file"`
			backup.Info
		}{path, info})
	}
	return c.Print(console.Pairs(backupRows(path, info)))
}

func backupRows(path string, info backup.Info) [][2]string {
	files := "all"
	if info.WithoutFiles {
		files = "without their contents"
	}
	return [][2]string{
		{"file", path},
		{"app", cmp.Or(info.App, "-")},
		{"created", info.Created.Format(time.RFC3339)},
		{"runner", info.Version},
		{"sequence", fmt.Sprint(info.Sequence)},
		{"bytes", fmt.Sprint(info.Bytes)},
		{"sha256", info.SHA256},
		{"audit head", info.AuditHead},
		{"files of rows", files},
	}
}
