package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/internal/settings"
	"runner.example/keystore"
	"runner.example/node"
	"runner.example/node/admin"
)

// Remote are the flags of every command that works on a node: they say which one, and how long to wait for
// it. Without --to it is the node of the app, on this machine.
type Remote struct {
	url, keyFile string
	fingerprints []string
	timeout      string
	// UsesApp: the command needs the app directory that --app names, too.
	UsesApp bool
	// Slow: its operations may take long, by what the node has to do; so it waits longer.
	Slow bool
}

// nodeFlags are the names of the flags of Remote.
var nodeFlags = []string{"to", "fingerprint", "key-file", "timeout"}

// IsNodeFlag reports whether the flag with that name is one of Remote.
func IsNodeFlag(name string) bool { return slices.Contains(nodeFlags, name) }

// answerTimeUsage is the usage of --timeout.
const answerTimeUsage = "how long to wait for each answer of the node"

// LimitsAnswers reports whether the flag is the --timeout of Remote, and not one of a command's own.
func LimitsAnswers(flag *pflag.Flag) bool { return flag != nil && flag.Usage == answerTimeUsage }

// AddFlags adds the flags to a command.
func (r *Remote) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	wait := admin.AnswerTimeout
	if r.Slow {
		wait = admin.LongAnswerTimeout
	}
	if r.timeout = settings.FormatDuration(wait); flags.Lookup("timeout") == nil { // cluster wait has its own
		flags.StringVar(&r.timeout, "timeout", r.timeout, answerTimeUsage)
		CompleteFlag(cmd, "timeout", cobra.NoFileCompletions)
	}
	flags.StringVar(&r.url, "to", "",
		"URL of the admin listener of a node, such as https://edge-1.example.com:9443 (default: the node of the app)")
	flags.StringSliceVar(&r.fingerprints, "fingerprint", nil,
		"SHA-256 of the certificate of that node; given twice, of its next one too (default: this machine must trust the certificate)")
	flags.StringVar(&r.keyFile, "key-file", "", "file with the token of a platform key for that node")
	CompleteFlag(cmd, "key-file", AnyFile)
}

// OnRemote runs the task on the node that the flags name, or else on the app's node.
func (c *CLI) OnRemote(cmd *cobra.Command, r Remote, task node.Task) error {
	client, err := r.dial(cmd)
	if err != nil {
		return err
	}
	if client == nil {
		if task.AnswerTimeout, err = r.answerTimeout(); err != nil {
			return err
		}
		return c.onApp(cmd, task)
	}
	return flagged(cmd, task.Do(cmd.Context(), client))
}

// DialRemote returns a client of the node that the flags name, or else of the server that runs on
// the app's data directory.
func (c *CLI) DialRemote(cmd *cobra.Command, r Remote) (*admin.Client, error) {
	client, err := r.dial(cmd)
	if err != nil || client != nil {
		return client, err
	}
	wait, err := r.answerTimeout()
	if err != nil {
		return nil, err
	}
	if client, err = c.dialServer(cmd); err == nil {
		client.SetAnswerTimeout(wait)
	}
	return client, err
}

// Given reports whether the flags name a node on the network.
func (r Remote) Given() bool { return r.url != "" }

// NeedsTo returns an error if flags are given that need --to, which is not.
func (r Remote) NeedsTo(cmd *cobra.Command) error {
	if len(r.fingerprints) > 0 || r.keyFile != "" {
		return console.Misused("%s: --fingerprint and --key-file are for the node that --to names", cmd.CommandPath())
	}
	return nil
}

// answerTimeout returns the value of --timeout.
func (r Remote) answerTimeout() (time.Duration, error) {
	d, err := settings.ParseDuration(r.timeout, settings.FlagDurations)
	if err == nil && d <= 0 {
		err = errors.New("it must be longer than 0s")
	}
	if err != nil {
		return 0, console.Invalid("--timeout: %v", err)
	}
	return d, nil
}

// dial returns a client of the node that the flags name; nil if they name none.
func (r Remote) dial(cmd *cobra.Command) (*admin.Client, error) {
	switch changed := cmd.Flags().Changed; {
	case r.url == "":
		return nil, r.NeedsTo(cmd)
	case changed("data"), !r.UsesApp && (changed("app") || changed("config")):
		return nil, console.Misused("%s: --to names another node than --app, --data and --config: omit these",
			cmd.CommandPath())
	case r.keyFile == "":
		f := console.Misused("%s: --key-file is missing", cmd.CommandPath())
		f.Hint = "create a key on the node: runner keys create"
		return nil, f
	}
	token, err := readToken(r.keyFile)
	if err != nil {
		return nil, err
	}
	wait, err := r.answerTimeout()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), wait)
	defer cancel()
	client, err := admin.DialURL(ctx, r.url, r.fingerprints, token)
	if err == nil {
		client.SetAnswerTimeout(wait)
	}
	if fault.CodeOf(err) == fault.Unavailable {
		return nil, &console.Failure{
			Status: console.StatusUnreachable, Err: err,
			Hint: "[admin] listen opens the address; runner status on the node shows it",
		}
	}
	return client, err
}

// maxTokenFile limits the file of a token, which is a line.
const maxTokenFile = 1 << 10

// readToken reads the token of a platform key.
func readToken(path string) (token secret.Token, err error) {
	file, err := os.Open(path)
	if err != nil {
		return token, console.Invalid("--key-file: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxTokenFile))
	if err != nil {
		return token, console.Invalid("--key-file: %w", err)
	}
	line := strings.TrimSpace(string(text))
	if !keystore.ValidToken([]byte(line)) {
		return token, &console.Failure{
			Status: console.StatusInvalid, Err: errors.New("--key-file " + path + ": it does not contain a token"),
			Hint: "runner keys create --out writes such a file",
		}
	}
	return secret.NewToken(line), nil
}
