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
	"syscall"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
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

The pepper is not in the backup: keep a copy of it elsewhere. Restoring needs both.

With --check, read a whole backup instead, and describe it. Exit status 3: the backup is
damaged or incomplete.`

func backupCommand(c *program) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var check, force bool
	cmd := &cobra.Command{
		Use:   "backup <file>",
		Short: "write a backup of the data, or check one",
		Long:  backupHelp,
		Example: `  runner backup orders.backup
  runner backup - | ssh vault 'cat > orders.backup'
  runner backup edge-1.backup --to https://edge-1.example.com:9443 --key-file admin.key
  runner backup --check orders.backup`,
		Args: cli.Exactly(1, "a file, or - for stdout"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM) // the partial file is removed
			defer stop()
			switch {
			case check && force:
				return console.Misused("runner backup: --check writes nothing: omit --force")
			case check && remote.Given():
				return console.Misused("runner backup: --check reads a file of this machine: omit --to")
			case check:
				return c.checkBackup(ctx, args[0])
			case args[0] == "-" && c.JSON:
				return console.Misused("runner backup: stdout cannot have both the backup and a JSON document: name a file")
			}
			backup.YieldToOthers()
			return c.OnRemote(cmd, remote, node.Task{Do: func(_ context.Context, node *admin.Client) error {
				return c.writeBackup(ctx, args[0], force, func(w io.Writer) error { return node.Backup(ctx, w) })
			}})
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "read the file and report whether it is intact")
	cmd.Flags().BoolVar(&force, "force", false, "replace an existing file")
	remote.AddFlags(cmd)
	return cmd
}

// writeBackup writes a backup to a file or to stdout.
func (c *program) writeBackup(ctx context.Context, path string, force bool, send func(io.Writer) error) error {
	if path == "-" {
		if f, ok := c.Stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return console.Misused("runner backup: stdout is a terminal: name a file, or redirect it")
		}
		info, err := backup.Copy(ctx, c.Stdout, send)
		if errors.Is(err, syscall.EPIPE) { // the backup is incomplete
			return &console.Failure{Status: console.StatusFailed, Err: err}
		}
		if err == nil {
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
	return c.printBackup(path, info)
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
	return c.Print(console.Pairs([][2]string{
		{"file", path},
		{"app", cmp.Or(info.App, "-")},
		{"created", info.Created.Format(time.RFC3339)},
		{"runner", info.Version},
		{"sequence", fmt.Sprint(info.Sequence)},
		{"bytes", fmt.Sprint(info.Bytes)},
		{"sha256", info.SHA256},
		{"audit head", info.AuditHead},
	}))
}
