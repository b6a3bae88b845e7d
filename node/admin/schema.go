package admin

import (
	"context"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/schema/compiler"
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

// comparison is a Comparison as it is sent.
type comparison struct {
	Findings []finding      `json:"findings"`
	Plan     []catalog.Step `json:"plan"`
}

// finding is a diagnostic as it is sent over the socket, with every part of its place.
type finding diag.Diagnostic

func (l *Local) compareSchema(ctx context.Context, _ keystore.Authority, request CompareSchema) (found comparison, err error) {
	// The client has checked the schema, under limits that the node may not have.
	s, _ := compiler.Compile(request.Sources, compiler.Checked())
	if s == nil || len(request.Sources) == 0 {
		return found, fault.New(fault.Invalid, "the schema has errors: see runner check")
	}
	steps, list, err := catalog.Plan(ctx, l.Store, s)
	if err != nil {
		return found, err
	}
	orphaned, err := l.Keys.OrphanedKeys(ctx, s, diag.Span{File: request.Sources[0].Name})
	if err != nil {
		return found, err
	}
	found = comparison{[]finding{}, append([]catalog.Step{}, steps...)}
	for _, d := range append(list, orphaned...) {
		found.Findings = append(found.Findings, finding(d))
	}
	return found, nil
}

// CompareSchema returns what an activation of the schema would do, refuse or warn about, given
// the node's rows and keys. It changes nothing.
func (c *Client) CompareSchema(ctx context.Context, request CompareSchema) (Comparison, error) {
	sent, err := ask[comparison](ctx, c, "schema.compare", request)
	found := Comparison{Plan: sent.Plan}
	for _, f := range sent.Findings {
		found.Findings = append(found.Findings, diag.Diagnostic(f))
	}
	return found, err
}
