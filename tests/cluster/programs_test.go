package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const waitingSchema = `app waiting
module waits { files: "lib", startTimeout: 10s }
routes("/release", auth: none, rateLimit: none) { GET / -> release }
`

// waitingCluster is a cluster of so many voters and edge nodes that serve a program which waits for requests, with n files.
func waitingCluster(t *testing.T, voters, edges, n int) *harness.Cluster {
	t.Helper()
	harness.NeedPatches(t)
	module := harness.CProgram(t, harness.Testdata("programs/waits.c"))
	c := harness.NewCluster(t, nil, func() *harness.App {
		a := harness.NewApp(t, waitingSchema, "")
		a.Write("build/waits.wasm", module)
		a.Write("lib/mark.txt", "1000")
		for i := range n {
			a.Write(fmt.Sprintf("lib/d%d/%d.txt", i%7, i), fmt.Sprint("content ", i))
		}
		return a
	})
	c.Nodes[0].Serve()
	for i := 1; i < voters+edges; i++ {
		var flags []string
		if i >= voters {
			flags = append(flags, "--edge")
		}
		c.Add(flags...).Serve()
	}
	for _, n := range c.Nodes {
		n.WaitReady()
	}
	return c
}

// waitForMark waits until nodes answer with the mark of a release.
func waitForMark(mark string, nodes ...*harness.Node) {
	for _, n := range nodes {
		n.T.Helper()
		n.Server.WaitUntil(n.Name+" serves "+mark, func() bool {
			got, err := n.Server.Try("GET", "/release", "")
			return err == nil && got.Status == 200 && strings.HasPrefix(got.Body, `["0000","`+mark+`",`)
		})
	}
}

// A program and its files are deployed to one node. The others fetch the files and start the program, also those that
// start again or were away.
func TestNodesServeAProgramThatWaitsAndItsFiles(t *testing.T) {
	t.Parallel()
	c := waitingCluster(t, 3, 1, 200)
	n1, n3, edge := c.Nodes[0], c.Nodes[2], c.Nodes[3]
	waitForMark("1000", c.Nodes...)
	deploy := func(mark string) {
		t.Helper()
		n1.Write("lib/mark.txt", mark)
		n1.Write("lib/new/"+mark+".txt", "a file of "+mark)
		n1.Must("deploy", "--yes")
	}
	deploy("1001")
	waitForMark("1001", c.Nodes...)

	// A node that starts again, after a stop and after a crash.
	edge.Server.Stop()
	n3.Server.Kill()
	// A voter and an edge node that are away for two releases.
	deploy("1002")
	deploy("1003")
	waitForMark("1003", n1, c.Nodes[1])
	for _, n := range []*harness.Node{edge, n3} {
		n.Serve()
		n.WaitReady()
	}
	waitForMark("1003", c.Nodes...)

	// A rollback on another node than the one that has all files from its client.
	n3.Must("rollback", "--yes")
	waitForMark("1002", c.Nodes...)

	// The nodes have the release by themselves: each starts it without the node that got it.
	n1.Server.Kill()
	edge.Server.Kill()
	edge.Serve()
	edge.WaitReady()
	waitForMark("1002", edge)
	n1.Serve()
	n1.WaitReady()
	waitForMark("1002", n1)
}
