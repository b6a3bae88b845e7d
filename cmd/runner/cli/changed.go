package cli

import (
	"fmt"
	"strings"

	"runner.example/node/cluster"
)

// PrintChanged writes what a command has done to an item, such as revoked. nodes says where in a
// cluster that is known; nil: the server is standalone.
func (c *CLI) PrintChanged(done, id string, changed any, nodes *cluster.Replication) error {
	if c.JSON {
		return c.PrintJSON(changed)
	}
	text := done + " " + id + "\n"
	if nodes != nil {
		text += fmt.Sprintf("%s on %d of %d nodes\n", done, nodes.Applied, nodes.Nodes)
	}
	c.warnMissing(nodes)
	return c.Print(text)
}

// warnMissing names the nodes that have not applied a change. nodes may be nil.
func (c *CLI) warnMissing(nodes *cluster.Replication) {
	if nodes != nil && len(nodes.Missing) > 0 {
		c.Say("warning: ", "not yet on "+strings.Join(nodes.Missing, ", ")+
			": a node that is cut off applies it when it is connected again")
	}
}
