package server

import (
	"context"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/state/entity/catalog"
)

func (l *Local) compareSchema(ctx context.Context, _ keystore.Authority, request admin.CompareSchema) (found admin.Comparison, err error) {
	s, steps, list, err := l.compare(ctx, request.Sources)
	if err != nil {
		return found, err
	}
	orphaned, err := l.orphaned(ctx, s, request.Sources)
	return admin.Comparison{Excerpt: append(list, orphaned...).Excerpt(), Plan: steps}, err
}

// compare returns the schema of the sources, and what its activation would change and refuse. steps is not nil.
func (l *Local) compare(ctx context.Context, sources []diag.Source) (s *schema.Schema, steps []catalog.Step, found diag.List, err error) {
	// The client has checked the schema, under limits that the node may not have.
	s, _ = compiler.Compile(sources, compiler.Checked())
	if s == nil || len(sources) == 0 {
		return nil, nil, nil, fault.New(fault.Invalid, "the schema has errors: see runner check")
	}
	steps, found, err = catalog.Plan(ctx, l.Store, s)
	return s, append([]catalog.Step{}, steps...), found, err
}

// orphaned warns about live keys whose scopes the schema does not have.
func (l *Local) orphaned(ctx context.Context, s *schema.Schema, sources []diag.Source) (diag.List, error) {
	return l.Keys.OrphanedKeys(ctx, s, diag.Span{File: sources[0].Name})
}
