package main

import (
	"crypto/rand"
	"encoding/hex"
	"time"

	runner "runner.example/sdk/go"
)

// linkLives is how long a link is valid.
const linkLives = 15 * time.Minute

// makeSignInLink creates the token of a sign-in link for a member and replaces the
// member's previous one. Only the answer has the token; the store has its digest, which
// is enough because the token is random. The body matches SignInLinkInput.
func makeSignInLink(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	input, err := runner.Body[struct {
		Slug  string `json:"slug"`
		Email string `json:"email"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	var org, user, membership struct {
		ID string `json:"id"`
	}
	if err := runner.Query("Org").Select("id").Where("slug", "=", input.Slug).FirstOrFail(ctx, &org); err != nil {
		return runner.Response{}, err
	}
	if err := runner.Query("User").Select("id").Where("email", "=", input.Email).FirstOrFail(ctx, &user); err != nil {
		return runner.Response{}, err
	}
	members := runner.Query("Membership").Select("id").Where("org", "=", org.ID).Where("user", "=", user.ID)
	if err := members.FirstOrFail(ctx, &membership); err != nil {
		return runner.Response{}, err
	}
	if _, err := runner.Remove("SignInLink").Where("membership", "=", membership.ID).Run(ctx); err != nil {
		return runner.Response{}, err
	}
	token := rand.Text()
	digest, err := digestOf(ctx, token)
	if err != nil {
		return runner.Response{}, err
	}
	expiresAt := time.Now().UTC().Truncate(time.Second).Add(linkLives)
	link := map[string]any{"org": org.ID, "membership": membership.ID, "digest": digest, "expiresAt": expiresAt}
	if err := runner.Insert("SignInLink", link).Row(ctx, nil); err != nil {
		return runner.Response{}, err
	}
	return runner.Created(map[string]any{"token": token, "expiresAt": expiresAt}), nil
}

// signin opens a session for the member of the link, with the member's present role, and
// deletes the link. When two requests use a link at once, one of them conflicts, runs
// again and does not find it. The body matches SignInInput.
func signin(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	input, err := runner.Body[struct {
		Token string `json:"token"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	digest, err := digestOf(ctx, input.Token)
	if err != nil {
		return runner.Response{}, err
	}
	var link struct {
		ID         string `json:"id"`
		Membership string `json:"membership"`
	}
	good := runner.Query("SignInLink").Where("digest", "=", digest).Where("expiresAt", ">", time.Now().UTC())
	switch found, err := good.First(ctx, &link); {
	case err != nil:
		return runner.Response{}, err
	case !found:
		return runner.Unauthorized("the link was used or is too old: ask for a new one"), nil
	}
	if _, err := runner.Remove("SignInLink").Where("id", "=", link.ID).Run(ctx); err != nil {
		return runner.Response{}, err
	}
	var member struct {
		Org  string `json:"org"`
		User string `json:"user"`
		Role string `json:"role"`
	}
	if err := runner.Get("Membership", link.Membership).Row(ctx, &member); err != nil {
		return runner.Response{}, err
	}
	session := runner.SessionOptions{UserID: member.User, Tenant: member.Org, Roles: []string{member.Role}}
	if _, err := ctx.Client.Sessions.Create(session); err != nil {
		return runner.Response{}, err
	}
	return runner.OK(map[string]string{"org": member.Org, "user": member.User}), nil
}

func digestOf(ctx *runner.Context, token string) (string, error) {
	digest, err := ctx.Digest(runner.SHA256, []byte(token))
	return hex.EncodeToString(digest), err
}

// signout ends the caller's session.
func signout(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	return runner.NoContent(), ctx.Client.Sessions.Revoke(runner.CurrentSession)
}
