package main

import (
	"encoding/json"
	"fmt"
	"time"

	runner "runner.example/sdk/go"
)

// Mail is what the mail service accepts.
type Mail struct {
	To      string `json:"to"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

// mailAssignee mails the assignee of a task. The service drops a mail whose key it has seen, so a job
// that runs again does not send another one.
func mailAssignee(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	params, err := runner.Body[struct {
		Task string `json:"task"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	var task struct {
		Title    string `json:"title"`
		Assignee string `json:"assignee"`
	}
	if err := runner.Get("Task", params.Task).Row(ctx, &task); err != nil || task.Assignee == "" {
		return runner.NoContent(), err
	}
	var user struct {
		Email string `json:"email"`
	}
	if err := runner.Get("User", task.Assignee).Row(ctx, &user); err != nil {
		return runner.Response{}, err
	}
	body, err := json.Marshal(Mail{user.Email, "A task for you: " + task.Title, "Task " + params.Task + " was assigned to you."})
	if err != nil {
		return runner.Response{}, err
	}
	sent, err := ctx.Fetch(runner.FetchRequest{
		Method: "POST", URL: "https://mail.example.com/send", Body: body,
		Headers: []runner.Pair{{Name: "content-type", Value: "application/json"}, {Name: "idempotency-key", Value: ctx.Job().ID}},
	})
	if err != nil {
		return runner.Response{}, err
	}
	if sent.Status >= 300 {
		return runner.Error(502, fmt.Sprintf("the mail service answered %d", sent.Status)), nil
	}
	return runner.NoContent(), nil
}

// expireLinks deletes the sign-in links whose time was over when the job was due.
func expireLinks(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	over := ctx.Job().ScheduledFor.UTC().Format(time.RFC3339)
	_, err := runner.Remove("SignInLink").Where("expiresAt", "<", over).Run(ctx)
	return runner.NoContent(), err
}
