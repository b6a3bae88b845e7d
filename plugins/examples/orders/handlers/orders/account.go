package main

import runner "runner.example/sdk/go"

// me tells who is signed in, and the user's row when there is one.
func me(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	who := ctx.Auth()
	var found []User
	if err := runner.Query("User").Where("id", "=", who.UserID).All(ctx, &found); err != nil {
		return runner.Response{}, err
	}
	answer := struct {
		UserID string   `json:"userId"`
		Roles  []string `json:"roles"`
		User   *User    `json:"user"`
	}{who.UserID, who.Roles, nil}
	if len(found) > 0 {
		answer.User = &found[0]
	}
	return runner.OK(answer), nil
}

// User is a row of the entity of that name.
type User struct {
	ID    string `json:"id"`
	Email string `json:"email"`
	Name  string `json:"name"`
}
