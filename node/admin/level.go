package admin

import (
	"context"

	"runner.example/node/cluster"
)

// RaiseLevel asks for a higher level of the data; 0: the newest that a node knows.
type RaiseLevel struct {
	To int `json:"to,omitempty"`
}

// RaisedLevel is the level before, and the one in force.
type RaisedLevel struct {
	Before int `json:"before"`
	Level  int `json:"level"`
}

// Levels returns the level of the data, and which levels each node knows.
func (c *Client) Levels(ctx context.Context) (cluster.LevelOverview, error) {
	return ask(ctx, c, OpShowLevel, none{})
}

// RaiseLevel raises the level of the data, on all nodes at the same commit.
func (c *Client) RaiseLevel(ctx context.Context, request RaiseLevel) (RaisedLevel, error) {
	return ask(ctx, c, OpRaiseLevel, request)
}
