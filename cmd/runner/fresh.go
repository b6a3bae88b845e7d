package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"runner.example/admin"
	"runner.example/internal/console"
	"runner.example/schema"
)

// fresh is something that was just made and has a secret, to be shown once.
type fresh struct {
	id     string
	secret string
	// noun is what the secret is called.
	noun string
	// remedy is what to type when the secret was lost on the way.
	remedy string
	// print writes what was made and, when it is to be shown, the secret alone on
	// the last line.
	print func(shown bool) error
}

// makeSecret does what makes a secret and hands it over. Before a store is made
// for it, check judges the work by the schema; nil: a new store cannot do it. It
// opens the file of --out first: what cannot be handed over had better not be
// made.
func (c *cli) makeSecret(cmd *cobra.Command, out string, check func(*schema.Schema) error, do func(context.Context, *admin.Client) (fresh, error)) error {
	file, err := newSecretFile(out)
	if err != nil {
		return err
	}
	made := false
	defer func() { file.close(made) }()
	return c.withNode(cmd, errand{needsSchema: true, check: check, do: func(ctx context.Context, node *admin.Client) error {
		f, err := do(ctx, node)
		if err != nil {
			return err
		}
		made = true
		return c.handOver(f, file)
	}})
}

// handOver writes what was made, with its secret or, when there is a file, with
// the secret in there.
func (c *cli) handOver(f fresh, file *secretFile) error {
	lost := func(err error) error {
		return &console.Failure{
			Status: console.StatusFailed,
			Err:    fmt.Errorf("hand over the %s of %s: %w", f.noun, f.id, err),
			Hint:   "nobody has it now: " + f.remedy,
		}
	}
	if file != nil {
		if err := file.write(f.secret); err != nil {
			return lost(err)
		}
		c.Say("", fmt.Sprintf("the %s is in %s and is not shown again", f.noun, file.path))
	}
	if err := f.print(file == nil); err != nil {
		return lost(err)
	}
	if file == nil {
		c.Say("", fmt.Sprintf("this %s is shown once: keep it now", f.noun))
	}
	return nil
}

// secretFile is a new file that only its owner may read, waiting for a secret.
type secretFile struct {
	path string
	file *os.File
}

// newSecretFile makes the file of --out; without one there is none.
func newSecretFile(path string) (*secretFile, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if os.IsExist(err) {
		f := console.Invalid("--out %s: the file is there already", path)
		f.Hint = "name a new file: no secret is written over another"
		return nil, f
	}
	if err != nil {
		return nil, console.Invalid("--out: %w", err)
	}
	return &secretFile{path, file}, nil
}

func (t *secretFile) write(secret string) error {
	_, err := t.file.WriteString(secret + "\n")
	if err == nil {
		err = t.file.Sync()
	}
	return err
}

// close ends the file's use; one that was not to be is removed. A nil file
// needs no closing.
func (t *secretFile) close(keep bool) {
	if t == nil {
		return
	}
	_ = t.file.Close() // written to disk by write
	if !keep {
		_ = os.Remove(t.path)
	}
}
