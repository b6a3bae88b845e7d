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

// Comparison is what an activation of a schema would do.
type Comparison struct {
	// Findings are what it would refuse, or warn about.
	Findings diag.List
	// Plan are the changes, in the order of the entities' names.
	Plan []catalog.Step
}

// ComparisonAnswer is a Comparison as it is sent.
type ComparisonAnswer struct {
	Findings []Finding      `json:"findings"`
	Plan     []catalog.Step `json:"plan"`
}

// Finding is a diagnostic as it is sent, with every part of its place.
type Finding diag.Diagnostic

// CompareSchema returns what an activation of the schema would do, refuse or warn about, given
// the node's rows and keys. It changes nothing.
func (c *Client) CompareSchema(ctx context.Context, request CompareSchema) (Comparison, error) {
	sent, err := ask(ctx, c, OpCompareSchema, request)
	found := Comparison{Plan: sent.Plan}
	for _, f := range sent.Findings {
		found.Findings = append(found.Findings, diag.Diagnostic(f))
	}
	return found, err
}
