package node

import (
	"fmt"
	"strings"

	"runner.example/internal/fault"
	"runner.example/internal/system/process"
	"runner.example/node/cluster"
	"runner.example/node/config"
	"runner.example/runtime/front"
)

// The open files that a server needs.
const (
	// ownFiles are those of the store, the modules, the listeners and the keys, growingFiles those that the
	// store and the compiler of modules open later.
	ownFiles     = 64
	growingFiles = 32
	// operatorFiles are the connections on the admin socket.
	operatorFiles = 16
	// leastClientFiles are those of the 32 connections of clients that a server must be able to accept.
	leastClientFiles = 32 * front.FilesPerConnection
)

// reserveFiles returns how many open files are kept from the connections of clients: what a flood of these
// must leave to the store, to outbound requests, to operators and to other nodes. open is the number of open
// files; 0: the store is not open yet. The error has the code Invalid and names the number that is needed, if
// the process may open fewer.
func reserveFiles(c *config.Config, member bool, open int) (reserved int, err error) {
	limit, known, err := process.FileLimit()
	if err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	var parts []string
	for _, part := range []struct {
		files int
		what  string
	}{
		{max(ownFiles, open+growingFiles), "the store and its own files"},
		{c.Runtime.Outbound.MaxConnections(), "outbound requests"},
		{operatorFiles, "the admin socket"},
		{c.Admin.MaxConnections(), "[admin] listen"},
		{metricsFiles(c), "[metrics] listen"},
		{clusterFiles(member), "other nodes"},
	} {
		if part.files > 0 {
			reserved += part.files
			parts = append(parts, fmt.Sprintf("%d for %s", part.files, part.what))
		}
	}
	if needed := reserved + leastClientFiles; known && limit < uint64(needed) {
		return 0, fault.New(fault.Invalid,
			"this process may open %d files, and needs at least %d: %s, and %d for clients; raise the limit with LimitNOFILE= of the unit or `ulimit -n`",
			limit, needed, strings.Join(parts, ", "), leastClientFiles)
	}
	return reserved, nil
}

func metricsFiles(c *config.Config) int {
	if c.Telemetry.MetricsListen == "" {
		return 0
	}
	return maxMetricsConns
}

func clusterFiles(member bool) int {
	if !member {
		return 0
	}
	return cluster.MaxConnections
}
