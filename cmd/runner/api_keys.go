package main

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"runner.example/keystore"
)

const apiKeysHelp = `Manage the API keys of the app, beside a running server or without one.

A token is shown once, when its key is created or rotated; nothing can show it
again.`

func (c *cli) apiKeysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "api-keys",
		Short: "create, list, show, revoke, rotate, disable and enable API keys",
		Long:  apiKeysHelp,
	}
	cmd.AddCommand(
		c.apiKeysCreateCommand(), c.apiKeysListCommand(), c.apiKeysShowCommand(), c.apiKeysRotateCommand(),
		c.apiKeysRevokeCommand(), c.apiKeysDisableCommand(), c.apiKeysEnableCommand(),
	)
	c.onlySubcommands(cmd)
	return cmd
}

// timeLayout is how times stand in JSON documents; what people read of one key
// alone shows them in the same way.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

func exact(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return t.UTC().Format(timeLayout)
}

// printNewKey writes a key that was just created or rotated, and its token
// alone on the last line, or into the file when there is one.
func (c *cli) printNewKey(key keystore.Key, file *tokenFile) error {
	lost := func(err error) error {
		return &failure{
			status: statusFailed,
			err:    fmt.Errorf("hand over the token of %s: %w", key.ID, err),
			hint:   "nobody has it now: runner api-keys rotate " + key.ID,
		}
	}
	if file != nil {
		if err := file.write(key.Token.Reveal()); err != nil {
			return lost(err)
		}
		c.say("", fmt.Sprintf("the token is in %s and is not shown again", file.path))
		key.Token = keystore.Key{}.Token
	}
	if err := c.printKeyWithToken(key); err != nil {
		return lost(err)
	}
	if file == nil {
		c.say("", "this token is shown once: keep it now")
	}
	return nil
}

func (c *cli) printKeyWithToken(key keystore.Key) error {
	if c.json {
		return c.printJSON(key)
	}
	text := pairs([][2]string{
		{"id", key.ID}, {"scope", key.Scope}, {"name", cmp.Or(key.Name, "-")}, {"expiresAt", exact(key.ExpiresAt, "never")},
	})
	if !key.Token.IsZero() {
		text += key.Token.Reveal() + "\n"
	}
	return c.print(text)
}

// tokenFile is a new file that only its owner may read, waiting for a token.
type tokenFile struct {
	path string
	file *os.File
}

// newTokenFile makes the file of --out; without one there is none.
func newTokenFile(path string) (*tokenFile, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if os.IsExist(err) {
		f := invalid("--out %s: the file is there already", path)
		f.hint = "name a new file: no token is written over another"
		return nil, f
	}
	if err != nil {
		return nil, invalid("--out: %w", err)
	}
	return &tokenFile{path, file}, nil
}

func (t *tokenFile) write(token string) error {
	_, err := t.file.WriteString(token + "\n")
	if err == nil {
		err = t.file.Sync()
	}
	return err
}

// close ends the file's use; one that was not to be is removed. A nil file
// needs no closing.
func (t *tokenFile) close(keep bool) {
	if t == nil {
		return
	}
	_ = t.file.Close() // written to disk by write
	if !keep {
		_ = os.Remove(t.path)
	}
}
