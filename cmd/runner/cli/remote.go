package cli

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/keystore"
	"runner.example/node"
	"runner.example/node/admin"
)

// Remote are the flags of a command that may run on a node on the network.
type Remote struct {
	url, keyFile string
	fingerprints []string
	// SendsApp: the command sends the app directory that --app names to the node.
	SendsApp bool
}

// AddFlags adds the flags to a command.
func (r *Remote) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
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
		return c.OnNode(cmd, task)
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
	return c.DialServer(cmd)
}

// dial returns a client of the node that the flags name; nil if they name none.
func (r Remote) dial(cmd *cobra.Command) (*admin.Client, error) {
	switch changed := cmd.Flags().Changed; {
	case r.url == "" && (len(r.fingerprints) > 0 || r.keyFile != ""):
		return nil, console.Misused("%s: --fingerprint and --key-file are for the node that --to names", cmd.CommandPath())
	case r.url == "":
		return nil, nil
	case changed("data"), !r.SendsApp && (changed("app") || changed("config")):
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
	client, err := admin.DialURL(cmd.Context(), r.url, r.fingerprints, token)
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
