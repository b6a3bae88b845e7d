package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"runner.example/internal/console"
	"runner.example/internal/secret"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/node/cluster"
)

// IssuedSecret is a secret that was just created, with its key or session. It is shown
// once.
type IssuedSecret struct {
	ID     string
	Secret string
	// Noun is the kind of secret, such as "token".
	Noun string
	// Remedy is the command to run when the secret is lost.
	Remedy string
	// Nodes says where in a cluster it is known; nil: the server is standalone, or was not asked.
	Nodes *cluster.Replication
	// Print writes the key or session and, if shown, the secret alone on the last line.
	Print func(shown bool) error
}

// IssueSecret creates a secret and writes it. It opens the file of --out first: a secret
// that cannot be written must not be created. The task is run with do, on the node that remote
// names or else on the app's.
func (c *CLI) IssueSecret(cmd *cobra.Command, remote Remote, out string, task node.Task,
	do func(context.Context, *admin.Client) (IssuedSecret, error)) error {
	file, err := openOut(out)
	if err != nil {
		return err
	}
	made := false
	defer func() { file.Close(made) }()
	task.Do = func(ctx context.Context, node *admin.Client) error {
		f, err := do(ctx, node)
		if err != nil {
			return err
		}
		made = true
		return c.writeSecret(f, file)
	}
	return c.OnRemote(cmd, remote, task)
}

// openOut creates the file that the flag --out names; nil if path is empty.
func openOut(path string) (*secret.File, error) {
	if path == "" {
		return nil, nil
	}
	file, err := secret.CreateFile(path)
	if errors.Is(err, fs.ErrExist) {
		f := console.Invalid("--out %s: the file exists", path)
		f.Hint = "name a new file: a secret never replaces a file"
		return nil, f
	}
	if err != nil {
		return nil, console.Invalid("--out: %w", err)
	}
	return file, nil
}

// writeSecret writes what was created, with its secret; the secret goes to the file if
// there is one.
func (c *CLI) writeSecret(f IssuedSecret, file *secret.File) error {
	lost := func(err error) error {
		return &console.Failure{
			Status: console.StatusFailed,
			Err:    fmt.Errorf("write the %s of %s: %w", f.Noun, f.ID, err),
			Hint:   "the secret is lost: " + f.Remedy,
		}
	}
	if file != nil {
		if err := file.Write(f.Secret); err != nil {
			return lost(err)
		}
		c.Say("", fmt.Sprintf("the %s is in %s and is not shown again", f.Noun, file.Path))
	}
	c.warnMissing(f.Nodes)
	if err := f.Print(file == nil); err != nil {
		return lost(err)
	}
	if file == nil {
		c.Say("", fmt.Sprintf("this %s is shown once: keep it now", f.Noun))
	}
	return nil
}
