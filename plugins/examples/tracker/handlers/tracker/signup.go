package main

import runner "runner.example/sdk/go"

// signup creates an organisation, its first user with the password that was given, the user's
// membership and a session, in one transaction. The body matches SignupInput.
func signup(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	input, err := runner.Body[struct {
		Slug     string `json:"slug"`
		Org      string `json:"org"`
		Email    string `json:"email"`
		Name     string `json:"name"`
		Password string `json:"password"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	var org, user struct {
		ID string `json:"id"`
	}
	if err := runner.Insert("Org", map[string]string{"slug": input.Slug, "name": input.Org}).Row(ctx, &org); err != nil {
		return runner.Response{}, err
	}
	if err := runner.Insert("User", map[string]string{"email": input.Email, "name": input.Name}).Row(ctx, &user); err != nil {
		return runner.Response{}, err
	}
	if input.Password != "" {
		hash, err := ctx.HashPassword(input.Password)
		if err != nil {
			return runner.Response{}, err
		}
		if err := storePassword(ctx, user.ID, hash); err != nil {
			return runner.Response{}, err
		}
	}
	membership := map[string]string{"org": org.ID, "user": user.ID, "role": "owner"}
	if err := runner.Insert("Membership", membership).Row(ctx, nil); err != nil {
		return runner.Response{}, err
	}
	if _, err := ctx.Client.Sessions.Create(runner.SessionOptions{UserID: user.ID, Tenant: org.ID, Roles: []string{"owner"}}); err != nil {
		return runner.Response{}, err
	}
	ctx.Log().Info("organisation made", "org", org.ID, "user", user.ID)
	return runner.Created(map[string]string{"org": org.ID, "user": user.ID}), nil
}
