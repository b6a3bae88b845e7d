package admin

import (
	"context"
	"math"
	"time"

	"runner.example/entity/catalog"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/schema/compiler"
)

// CompareSchema is a schema to be held against what the node's store has.
type CompareSchema struct {
	Sources []diag.Source `json:"sources"`
}

// finding is a diagnostic as it goes over the socket, every part of its place
// with it.
type finding diag.Diagnostic

func (l *Local) compareSchema(ctx context.Context, _ keystore.Authority, request CompareSchema) ([]finding, error) {
	// Whoever asks has checked the schema, under bounds that the node may not have.
	s, _ := compiler.Compile(request.Sources, compiler.Options{
		MaxBody: math.MaxInt64, MaxTimeout: time.Duration(math.MaxInt64), AllowPrivate: true, InsecureCookies: true,
	})
	if s == nil || len(request.Sources) == 0 {
		return nil, fault.New(fault.Invalid, "the schema has mistakes: see runner check")
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

// CompareSchema tells what an activation of the schema would refuse or warn of,
// given the rows and keys that are there. It changes nothing.
func (c *Client) CompareSchema(ctx context.Context, request CompareSchema) (diag.List, error) {
	findings, err := ask[[]finding](ctx, c, "schema.compare", request)
	var list diag.List
	for _, f := range findings {
		list = append(list, diag.Diagnostic(f))
	}
	return list, err
}
