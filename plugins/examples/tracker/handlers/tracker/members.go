package main

import runner "runner.example/sdk/go"

// Functions for owners and administrators to change the members of their organisation. A
// session keeps the role that it was created with, so the member's sessions end in the
// transaction of the change. `@manage` in the schema allows this, for sessions of the caller's
// organisation only.

func setRole(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	params, err := runner.Body[struct {
		User string `json:"user"`
		Role string `json:"role"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	changed, err := runner.Update("Membership", map[string]string{"role": params.Role}).Where("user", "=", params.User).Run(ctx)
	return endSessions(ctx, params.User, changed, err)
}

func removeMember(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	params, err := runner.Body[struct {
		User string `json:"user"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	removed, err := runner.Remove("Membership").Where("user", "=", params.User).Run(ctx)
	return endSessions(ctx, params.User, removed, err)
}

// endSessions ends the sessions of a member, if the membership was changed, and answers.
func endSessions(ctx *runner.Context, user string, changed int, err error) (runner.Response, error) {
	if err != nil {
		return runner.Response{}, err
	}
	if changed == 0 {
		return runner.NotFound("the organisation has no such member"), nil
	}
	_, err = ctx.Client.Sessions.Of(user).RevokeAll(runner.RevokeOptions{})
	return runner.NoContent(), err
}
