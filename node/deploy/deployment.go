package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/progress"

	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/node/admin"
)

// Deployment is one run of runner deploy.
type Deployment struct {
	Upload  *Upload
	Node    *admin.Client
	Console *console.Console
	PlanOptions
	// DryRun changes nothing.
	DryRun bool
	// Confirm asks before the release is activated; nil: it is activated without a question.
	Confirm func(ctx context.Context, question string) (bool, error)
}

// document is what runner deploy --json prints.
type document struct {
	*Plan
	Activated bool `json:"activated"`
}

// Run prints the difference, sends the release, and activates it. The error is a fault: NotActivated if the node cannot
// activate the release, Invalid if it needs another signature, Conflict if another release was activated meanwhile or the
// active one is of another app; and a *console.Failure if the answer was not yes. A release that the node would refuse
// is not sent.
func (d Deployment) Run(ctx context.Context) error {
	plan, err := d.Upload.Plan(ctx, d.Node, d.PlanOptions)
	if plain := d.Upload.withoutDebug; plain != nil && fault.CodeOf(err) == fault.Invalid {
		d.Console.Say("", "debug files are not sent: the node runs an older version, which does not accept them")
		plain.unusable, d.Upload = d.Upload.unusable, plain
		plan, err = plain.Plan(ctx, d.Node, d.PlanOptions)
	}
	if err != nil {
		return err
	}
	if plan.SignedBy != "" {
		d.Console.Say("", "signed by "+plan.SignedBy)
	}
	if plan.unsafe == nil && plan.isActive() {
		return d.print(plan, "release "+plan.After+" is active already")
	}
	if err := d.Upload.Check(ctx); err != nil {
		return err
	}
	drawn, err := d.Upload.Draws(ctx)
	if err != nil {
		return err
	}
	plan.add(drawn)
	plan.add(d.Upload.unusable)
	switch refused := plan.Refused(); {
	case d.DryRun:
		return errors.Join(d.print(plan, console.Plural(len(plan.Send), "file")+" would be sent; nothing was changed"), refused)
	case refused != nil && d.Console.JSON:
		return refused
	case refused != nil:
		return errors.Join(plan.Print(d.Console), refused)
	}
	if err := d.send(ctx, plan); err != nil {
		return err
	}
	if !d.Console.JSON {
		if err := plan.Print(d.Console); err != nil {
			return err
		}
	}
	if d.Confirm != nil {
		yes, err := d.Confirm(ctx, "activate "+plan.After+"?")
		if err != nil {
			return err
		}
		if !yes {
			return &console.Failure{Status: console.StatusState, Err: errors.New("the release was sent, and not activated")}
		}
	}
	if err := plan.Activate(ctx, d.Node, d.Allowed); err != nil {
		return err
	}
	if d.Console.JSON {
		return d.Console.PrintJSON(document{plan, true})
	}
	d.Console.Say("", "active: "+plan.After)
	return nil
}

// print prints a plan that is not carried out.
func (d Deployment) print(plan *Plan, text string) error {
	if d.Console.JSON {
		return d.Console.PrintJSON(document{Plan: plan})
	}
	err := plan.Print(d.Console)
	d.Console.Say("", text)
	return err
}

// send sends the files, with a progress bar on a terminal.
func (d Deployment) send(ctx context.Context, plan *Plan) error {
	if len(plan.Send) == 0 {
		return d.Upload.Send(ctx, d.Node, plan, io.Discard)
	}
	bytes := int64(0)
	for _, f := range plan.Send {
		bytes += f.Size
	}
	bar := d.Console.NewBar("sending "+console.Plural(len(plan.Send), "file"), bytes, progress.UnitsBytes)
	err := d.Upload.Send(ctx, d.Node, plan, bar)
	bar.End(err)
	if err == nil {
		d.Console.Say("", fmt.Sprintf("sent %s, %s", console.Plural(len(plan.Send), "file"), console.Plural(int(bytes), "byte")))
	}
	return err
}
