package main

import (
	"errors"

	runner "runner.example/sdk/go"
)

// listProjects gives the projects of the caller's organisation that the caller
// may see.
func listProjects(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	return page(ctx, req, runner.Query("Project").OrderBy("key"))
}

// page hands on one page of a query; ?cursor= asks for the next one.
func page(ctx *runner.Context, req *runner.Request, query runner.Selection) (runner.Response, error) {
	if _, err := query.Page(ctx, nil, req.Query("cursor")); err != nil {
		return refused(err)
	}
	return runner.OK(runner.Result), nil
}

// refused answers 400 for what the caller put into an operation.
func refused(err error) (runner.Response, error) {
	var wrong *runner.HostError
	if errors.As(err, &wrong) && wrong.Code == "invalid" {
		return runner.BadRequest(wrong.Message), nil
	}
	return runner.Response{}, err
}

// Project is a project as its caller sees it.
type Project struct {
	ID        string `json:"id,omitempty"`
	Key       string `json:"key"`
	Name      string `json:"name"`
	Private   bool   `json:"private"`
	Owner     string `json:"owner"`
	CreatedAt string `json:"createdAt,omitempty"`
}

// createProject makes a project of the caller's own, and a note of it in the
// same transaction. The body fits ProjectInput.
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

// listProjectTasks gives the tasks of one project, or 404 when the caller may
// not see it.
func listProjectTasks(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	id := req.Param("id")
	if err := runner.Get("Project", id, "id").Row(ctx, nil); err != nil {
		return runner.Response{}, err
	}
	return page(ctx, req, runner.Query("Task").Where("project", "=", id).OrderBy("state").OrderBy("createdAt"))
}
