package main

import (
	runner "runner.example/sdk/go"
)

// signinByPassword opens a session for a member of an organisation, with the member's present
// role. An organisation, a user or a password that does not exist takes as long as a wrong
// password, and answers the same. The body matches PasswordSignInInput.
func signinByPassword(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	input, err := runner.Body[struct {
		Slug     string `json:"slug"`
		Email    string `json:"email"`
		Password string `json:"password"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	member, stored, err := memberBy(ctx, input.Slug, input.Email)
	if err != nil {
		return runner.Response{}, err
	}
	check, err := ctx.VerifyPassword(input.Password, stored.Hash) // even if there is none
	if err != nil {
		return runner.Response{}, err
	}
	if !check.Valid {
		return runner.Unauthorized("the organisation, the email or the password is wrong"), nil
	}
	if check.Rehash { // the settings have changed, or another program has made the hash
		hash, err := ctx.HashPassword(input.Password)
		if err != nil {
			return runner.Response{}, err
		}
		if _, err := runner.Update("Credential", map[string]string{"hash": hash}).Where("id", "=", stored.ID).Run(ctx); err != nil {
			return runner.Response{}, err
		}
	}
	session := runner.SessionOptions{UserID: member.User, Tenant: member.Org, Roles: []string{member.Role}}
	if _, err := ctx.Client.Sessions.Create(session); err != nil {
		return runner.Response{}, err
	}
	return runner.OK(map[string]string{"org": member.Org, "user": member.User}), nil
}

// Member is a membership with what a session needs.
type Member struct {
	Org  string `json:"org"`
	User string `json:"user"`
	Role string `json:"role"`
}

// Credential is the stored hash of a password.
type Credential struct {
	ID   string `json:"id"`
	Hash string `json:"hash"`
}

// memberBy returns the member of an organisation with that email, and the user's password.
// What does not exist is empty.
func memberBy(ctx *runner.Context, slug, email string) (member Member, stored Credential, err error) {
	var org, user struct {
		ID string `json:"id"`
	}
	for _, step := range []func() (found bool, err error){
		func() (bool, error) {
			return runner.Query("Org").Select("id").Where("slug", "=", slug).First(ctx, &org)
		},
		func() (bool, error) {
			return runner.Query("User").Select("id").Where("email", "=", email).First(ctx, &user)
		},
		func() (bool, error) {
			return runner.Query("Membership").Select("org", "user", "role").Where("org", "=", org.ID).Where("user", "=", user.ID).First(ctx, &member)
		},
		func() (bool, error) {
			return runner.Query("Credential").Select("id", "hash").Where("user", "=", user.ID).First(ctx, &stored)
		},
	} {
		if found, err := step(); err != nil || !found {
			return Member{}, Credential{}, err
		}
	}
	return member, stored, nil
}

// setPassword sets the password of the caller, who has signed in by a link or with the old
// password. The runner has checked its length.
func setPassword(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	params, err := runner.Body[struct {
		Password string `json:"password"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	hash, err := ctx.HashPassword(params.Password)
	if err != nil {
		return runner.Response{}, err
	}
	user := ctx.Auth().UserID
	changed, err := runner.Update("Credential", map[string]string{"hash": hash}).Where("user", "=", user).Run(ctx)
	if err != nil {
		return runner.Response{}, err
	}
	if changed == 0 {
		if err := storePassword(ctx, user, hash); err != nil {
			return runner.Response{}, err
		}
	}
	// Sessions that were opened with the old password end. A user has one password for all
	// organisations.
	_, err = ctx.Client.Sessions.RevokeAll(runner.RevokeOptions{AllTenants: true, Except: runner.CurrentSession})
	return runner.NoContent(), err
}

func storePassword(ctx *runner.Context, user, hash string) error {
	return runner.Insert("Credential", map[string]string{"user": user, "hash": hash}).Row(ctx, nil)
}
