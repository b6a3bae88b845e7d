package admin

import (
	"context"

	"runner.example/internal/diag"
	"runner.example/state/entity/catalog"
)

// CompareSchema is a schema to compare with the node's rows and keys.
type CompareSchema struct {
	Sources []diag.Source `json:"sources"`
}

// Comparison is what an activation of a schema would do, refuse or warn about.
type Comparison struct {
	diag.Excerpt
	// Plan are the changes, in the order of the entities' names.
	Plan []catalog.Step `json:"plan"`
}

// CompareSchema returns what an activation of the schema would do, refuse or warn about, given
// the node's rows and keys. It changes nothing.
func (c *Client) CompareSchema(ctx context.Context, request CompareSchema) (Comparison, error) {
	return ask(ctx, c, OpCompareSchema, request)
}
