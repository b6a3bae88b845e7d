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
	"path/filepath"
	"syscall"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"runner.example/admin"
	"runner.example/backup"
	"runner.example/internal/atomicio"
	"runner.example/internal/console"
)

const backupHelp = `Write a backup of the app's data to a file: rows, keys, sessions and the audit, as of
one commit. A running server writes it while it serves; without one the store is opened.
The file appears complete or not at all, with mode 0600. "-" writes to stdout.

The pepper is not in the backup: keep a copy of it elsewhere. Restoring needs both.

With --check, read a whole backup instead, and print what it is of. Exit status 3: it is
damaged or incomplete.`

func backupCommand(c *cli) *cobra.Command {
	var check, force bool
	cmd := &cobra.Command{
		Use:   "backup <file>",
		Short: "write a backup of the data, or check one",
		Long:  backupHelp,
		Example: `  runner backup orders.backup
  runner backup - | ssh vault 'cat > orders.backup'
  runner backup --check orders.backup`,
		Args: exactly(1, "a file, or - for stdout"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM) // the partial file is removed
			defer stop()
			switch {
			case check && force:
				return console.Misused("runner backup: --check writes nothing: omit --force")
			case check:
				return c.checkBackup(ctx, args[0])
			}
			return c.withNode(cmd, nodeTask{do: func(_ context.Context, node *admin.Client) error {
				return c.backup(ctx, node, args[0], force)
			}})
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "read the file and report whether it is intact")
	cmd.Flags().BoolVar(&force, "force", false, "replace an existing file")
	return cmd
}

// backup writes a backup to a file or to stdout.
func (c *cli) backup(ctx context.Context, node *admin.Client, path string, force bool) error {
	if path != "-" {
		info, err := c.backupFile(ctx, node, path, force)
		if err != nil {
			return err
		}
		return c.printBackup(path, info)
	}
	if c.JSON {
		return console.Misused("runner backup: stdout cannot have both the backup and a JSON document: name a file")
	}
	if f, ok := c.Stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return console.Misused("runner backup: stdout is a terminal: name a file, or redirect it")
	}
	info, err := checked(ctx, node, c.Stdout)
	if err == nil {
		c.Say("", fmt.Sprintf("backup written: sequence %d, %d bytes, sha256 %s, audit head %s", info.Sequence, info.Bytes, info.SHA256, info.AuditHead))
	}
	return err
}

// backupFile writes a backup beside path and then gives it that name.
func (c *cli) backupFile(ctx context.Context, node *admin.Client, path string, force bool) (info backup.Info, err error) {
	exists := &console.Failure{Status: console.StatusFailed, Err: fmt.Errorf("%q exists", path), Hint: "choose another name, or replace it with --force"}
	if _, err := os.Lstat(path); err == nil && !force {
		return info, exists
	}
	partial := path + ".partial"
	file, err := os.OpenFile(partial, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return info, fmt.Errorf("another process writes %q", partial)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(partial)
		}
	}()
	if err := errors.Join(file.Chmod(0o600), file.Truncate(0)); err != nil {
		return info, err
	}
	bar := c.NewBar("backing up", 0, progress.UnitsBytes)
	info, err = checked(ctx, node, io.MultiWriter(file, barWriter{bar}))
	bar.End(err)
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return info, err
	}
	flags := uint(unix.RENAME_NOREPLACE)
	if force {
		flags = 0
	}
	err = unix.Renameat2(unix.AT_FDCWD, partial, unix.AT_FDCWD, path, flags)
	if errors.Is(err, fs.ErrExist) {
		return info, exists
	}
	if err != nil {
		return info, fmt.Errorf("rename %q to %q: %w", partial, path, err)
	}
	return info, atomicio.SyncDir(filepath.Dir(path))
}

// checked writes a backup to w and checks it on its way.
func checked(ctx context.Context, node *admin.Client, w io.Writer) (info backup.Info, err error) {
	in, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		var err error
		info, err = backup.Check(ctx, in)
		in.CloseWithError(err) // ends the backup
		done <- err
	}()
	sent := node.Backup(ctx, io.MultiWriter(w, out))
	out.CloseWithError(sent)
	found := <-done
	switch {
	case sent != nil && !errors.Is(sent, backup.ErrInvalid):
		return info, sent
	case found != nil:
		return info, fmt.Errorf("the backup that arrived is not intact: %w", found)
	}
	return info, nil
}

// barWriter advances a progress bar.
type barWriter struct{ bar *console.Bar }

func (b barWriter) Write(p []byte) (int, error) {
	b.bar.Add(int64(len(p)))
	return len(p), nil
}

// checkBackup reads a backup and prints what it is of.
func (c *cli) checkBackup(ctx context.Context, path string) error {
	in, size, err := c.openBackup(path)
	if err != nil {
		return err
	}
	defer in.Close()
	bar := c.NewBar("reading "+path, size, progress.UnitsBytes)
	info, err := backup.Check(ctx, io.TeeReader(in, barWriter{bar}))
	bar.End(err)
	if err != nil {
		return explainBackup(path, err)
	}
	return c.printBackup(path, info)
}

// openBackup opens a backup to read; "-" is stdin. The size is 0 if it is unknown.
func (c *cli) openBackup(path string) (in io.ReadCloser, size int64, err error) {
	if path == "-" {
		return io.NopCloser(c.stdin), 0, nil
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, &console.Failure{Status: console.StatusNotFound, Err: err}
	}
	if err != nil {
		return nil, 0, err
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	return file, size, nil
}

// explainBackup names the file of an invalid backup.
func explainBackup(path string, err error) error {
	if !errors.Is(err, backup.ErrInvalid) {
		return err
	}
	return &console.Failure{Status: console.StatusInvalid, Err: fmt.Errorf("%q: %w", path, err), Hint: "use another backup"}
}

func (c *cli) printBackup(path string, info backup.Info) error {
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
