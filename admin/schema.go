package admin

import (
	"context"

	"runner.example/entity/catalog"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/schema/compiler"
)

// CompareSchema is a schema to compare with the node's rows and keys.
type CompareSchema struct {
	Sources []diag.Source `json:"sources"`
}

// finding is a diagnostic as it is sent over the socket, with every part of its place.
type finding diag.Diagnostic

func (l *Local) compareSchema(ctx context.Context, _ keystore.Authority, request CompareSchema) ([]finding, error) {
	// The client has checked the schema, under limits that the node may not have.
	s, _ := compiler.Compile(request.Sources, compiler.Checked())
	if s == nil || len(request.Sources) == 0 {
		return nil, fault.New(fault.Invalid, "the schema has errors: see runner check")
	}
	list, err := catalog.Compare(ctx, l.Store, s)
	if err != nil {
		return nil, err
	}
	orphaned, err := l.Keys.OrphanedKeys(ctx, s, diag.Span{File: request.Sources[0].Name})
	if err != nil {
		return nil, err
	}
	findings := []finding{}
	for _, d := range append(list, orphaned...) {
		findings = append(findings, finding(d))
	}
	return findings, nil
}

// CompareSchema returns what an activation of the schema would refuse or warn about, given
// the node's rows and keys. It changes nothing.
func (c *Client) CompareSchema(ctx context.Context, request CompareSchema) (diag.List, error) {
	findings, err := ask[[]finding](ctx, c, "schema.compare", request)
	var list diag.List
	for _, f := range findings {
		list = append(list, diag.Diagnostic(f))
	}
	return list, err
}
