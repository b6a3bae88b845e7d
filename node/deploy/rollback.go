package deploy

import (
	"context"
	"errors"

	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/node/admin"
	"runner.example/node/release"
)

// Rollback is one run of runner rollback.
type Rollback struct {
	Node    *admin.Client
	Console *console.Console
	// Confirm asks before the release is activated; nil: it is activated without a question.
	Confirm func(ctx context.Context, question string) (bool, error)
	// ReplaceApp: the release may be one of another app than the active one.
	ReplaceApp bool
}

// Run activates a stored release: without names the previous one. A name is an id, or the beginning
// of one. The error is a fault with the code NotFound if there is no such release, and otherwise as
// that of Deployment.Run.
func (r Rollback) Run(ctx context.Context, names ...string) error {
	list, err := r.Node.Releases(ctx)
	if err != nil {
		return err
	}
	active, id := list.Active.ID, list.Active.Previous
	switch {
	case len(names) == 1:
		if id, err = find(list, names[0]); err != nil {
			return err
		}
	case id == "":
		return fault.New(fault.NotFound, "no release was active before").WithHint(release.KeptHint)
	}
	if r.Confirm != nil {
		yes, err := r.Confirm(ctx, "activate "+id+" instead of "+active+"?")
		if err != nil {
			return err
		}
		if !yes {
			return &console.Failure{Status: console.StatusState, Err: errors.New("nothing was changed")}
		}
	}
	if err := r.Node.ActivateRelease(ctx, admin.ActivateRelease{
		ID: id, Expected: &active, Allowed: admin.Allowed{ReplaceApp: r.ReplaceApp, AllowEmpty: true}, // it was allowed before
	}); err != nil {
		return err
	}
	if r.Console.JSON {
		return r.Console.PrintJSON(map[string]string{"active": id, "previous": active})
	}
	r.Console.Say("", "active: "+id)
	return nil
}
