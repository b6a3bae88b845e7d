package main

import (
	"errors"

	runner "runner.example/sdk/go"
)

// listProjects returns the projects of the caller's organisation that the caller may
// read.
func listProjects(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	return page(ctx, req, runner.Query("Project").OrderBy("key"))
}

// page returns one page of a query; ?cursor= asks for the next one.
func page(ctx *runner.Context, req *runner.Request, query runner.Selection) (runner.Response, error) {
	if _, err := query.Page(ctx, nil, req.Query("cursor")); err != nil {
		return refused(err)
	}
	return runner.OK(runner.Result), nil
}

// refused answers 400 when the caller's values caused the failure of an operation.
func refused(err error) (runner.Response, error) {
	var wrong *runner.HostError
	if errors.As(err, &wrong) && wrong.Code == "invalid" {
		return runner.BadRequest(wrong.Message), nil
	}
	return runner.Response{}, err
}

// Project is a project in answers.
type Project struct {
	ID        string `json:"id,omitempty"`
	Key       string `json:"key"`
	Name      string `json:"name"`
	Private   bool   `json:"private"`
	Owner     string `json:"owner"`
	CreatedAt string `json:"createdAt,omitempty"`
}

// createProject creates a project that the caller owns, and an audit event in the same
// transaction. The body matches ProjectInput.
func createProject(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	input, err := runner.Body[Project](req)
	if err != nil {
		return runner.Response{}, err
	}
	var project Project
	values := Project{Key: input.Key, Name: input.Name, Private: input.Private, Owner: ctx.Auth().UserID}
	if err := runner.Insert("Project", values).Row(ctx, &project); err != nil {
		return runner.Response{}, err
	}
	note := Event{Actor: project.Owner, Action: "project.created", Detail: map[string]string{"id": project.ID}}
	if err := runner.Insert("AuditEvent", note).Row(ctx, nil); err != nil {
		return runner.Response{}, err
	}
	return runner.Created(project, "/api/projects/"+project.ID), nil
}

func getProject(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	return runner.OK(runner.Row), runner.Get("Project", req.Param("id")).Row(ctx, nil)
}

// listProjectTasks returns the tasks of one project, or 404 when the caller may not read
// the project.
func listProjectTasks(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	id := req.Param("id")
	if err := runner.Get("Project", id, "id").Row(ctx, nil); err != nil {
		return runner.Response{}, err
	}
	return page(ctx, req, runner.Query("Task").Where("project", "=", id).OrderBy("state").OrderBy("createdAt"))
}
