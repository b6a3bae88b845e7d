package server

import (
	"context"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/schema/compiler"
	"runner.example/state/entity/catalog"
)

func (l *Local) compareSchema(ctx context.Context, _ keystore.Authority, request admin.CompareSchema) (found admin.ComparisonAnswer, err error) {
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
	found = admin.ComparisonAnswer{Findings: []admin.Finding{}, Plan: append([]catalog.Step{}, steps...)}
	for _, d := range append(list, orphaned...) {
		found.Findings = append(found.Findings, admin.Finding(d))
	}
	return found, nil
}
