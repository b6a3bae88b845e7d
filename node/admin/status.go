package admin

import (
	"context"
	"time"

	"runner.example/node/backup"
)

// Status is the state of a node.
type Status struct {
	PID int `json:"pid"`
	// Version is that of the runner, and Commit the commit that it was built from.
	Version string `json:"version"`
	Commit  string `json:"commit"`
	// App is the declared name of the app, or empty.
	App string `json:"app"`
	URL string `json:"url"`
	// Uptime is how long the server has been running, in seconds.
	Uptime int64 `json:"uptimeSeconds"`
	// Release is the release that is served.
	Release ActiveRelease `json:"release"`
	// Sequence is the number of the newest commit.
	Sequence uint64 `json:"sequence"`
	Writable bool   `json:"writable"`
	// NotWritable is the reason why nothing can be stored now, or empty.
	NotWritable string `json:"notWritable"`
	// Level is that of the data: the form in which the node writes.
	Level int `json:"level"`
	// Metrics is the URL of the metrics, or empty.
	Metrics string `json:"metrics"`
	// Admin is the URL for operators on the network, or empty; AdminFingerprint is the SHA-256 of
	// its certificate, as 64 hexadecimal digits.
	Admin            string `json:"admin"`
	AdminFingerprint string `json:"adminFingerprint"`
	// NotReady is the reason why /_health/ready answers 503, or empty.
	NotReady    string      `json:"notReady"`
	Memory      Memory      `json:"memory"`
	Descriptors Descriptors `json:"descriptors"`
	// Vars are the variables of the active schema.
	Vars []VarStatus `json:"vars"`
	// Backup is the last good backup of this node; nil: there was none.
	Backup *backup.Last `json:"backup"`
	// Nodes are those of the cluster, by name; a standalone server has none.
	Nodes []NodeVersion `json:"nodes"`
}

// ActiveRelease is the release that a server serves.
type ActiveRelease struct {
	// ID is its id, or empty: none is served.
	ID string `json:"id"`
	// Since is when it was activated; nil: none is served.
	Since *time.Time `json:"since"`
}

// NodeVersion says what a node of a cluster runs and serves, as the asked node knows it.
type NodeVersion struct {
	Name string `json:"name"`
	// Version is that of the runner, and Release the id of the release; empty: not known, or none.
	Version string `json:"version"`
	Release string `json:"release"`
}

// VarStatus says where this node has the value of a variable from. The value is not shown.
type VarStatus struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// From is the environment variable, the place in runner.toml, or the default in the schema.
	From string `json:"from"`
}

// Memory has the memory limits of the server and the memory in use, in bytes.
type Memory struct {
	// Handlers is [sandbox] total_memory, and HandlersUsed how much of it is in use.
	Handlers     int64 `json:"handlers"`
	HandlersUsed int64 `json:"handlersUsed"`
	// Bodies is [front] body_memory, Answers [front] answer_memory.
	Bodies  int64 `json:"bodies"`
	Answers int64 `json:"answers"`
}

// Descriptors are the open file descriptors of the process, and their limit.
type Descriptors struct {
	Open  int    `json:"open"`
	Limit uint64 `json:"limit"`
}

// Status returns the state of the node.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask(ctx, c, OpStatus, none{})
}
