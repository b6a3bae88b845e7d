package cli

import (
	"io"
	"time"

	"runner.example/internal/console"
	"runner.example/internal/system/process"
	"runner.example/internal/telemetry"
)

// CLI is one run of the program: its input and output, and the global flags.
type CLI struct {
	console.Console
	Stdin io.Reader
	// Queue is the log queue that stderr writes to, or nil.
	Queue *telemetry.Queue
	// Environ is the environment with which the program was started.
	Environ []string
	// StopBy is when shutdown_timeout ends; zero until a signal has arrived.
	StopBy time.Time
	// Secrets are the values that stderr hides, or nil.
	Secrets *telemetry.Values
	// Umask is the umask with which the program was started.
	Umask int

	// App, Data and ConfigFile are --app, --data and --config.
	App, Data, ConfigFile string
}

// WritesApp restores the user's umask: files of an app are not secrets. Files that are
// secrets are created with their own mode.
func (c *CLI) WritesApp() { process.SetUmask(c.Umask) }
