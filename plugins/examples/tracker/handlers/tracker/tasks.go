package main

import (
	"encoding/json"

	runner "runner.example/sdk/go"
)

// listTasks returns tasks, filtered by ?project=, ?state= and ?assignee=.
func listTasks(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	query := runner.Query("Task").OrderBy("createdAt", "desc")
	for _, field := range []string{"project", "state", "assignee"} {
		if value := req.Query(field); value != "" {
			query = query.Where(field, "=", value)
		}
	}
	return page(ctx, req, query)
}

func getTask(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	return runner.OK(runner.Row), runner.Get("Task", req.Param("id")).Row(ctx, nil)
}

// createTask creates a task. The body matches TaskInput. A project or an assignee that the
// caller may not read counts as absent.
func createTask(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	var made struct {
		ID       string `json:"id"`
		Assignee string `json:"assignee"`
	}
	if err := runner.Insert("Task", json.RawMessage(req.RawBody())).Row(ctx, &made); err != nil {
		return refused(err)
	}
	if made.Assignee != "" { // the mail is sent after the commit, and only then
		if _, err := ctx.Client.Jobs.Enqueue("mailAssignee", map[string]string{"task": made.ID}, runner.JobOptions{}); err != nil {
			return runner.Response{}, err
		}
		if err := runner.Get("Task", made.ID).Row(ctx, nil); err != nil { // the row is the answer
			return runner.Response{}, err
		}
	}
	return runner.Created(runner.Row, "/api/v1/tasks/"+made.ID), nil
}

// TaskChange is the body of updateTask. Absent fields stay unchanged; null removes the
// assignee or the estimate.
type TaskChange struct {
	Title    string          `json:"title,omitempty"`
	State    string          `json:"state,omitempty"`
	Assignee json.RawMessage `json:"assignee,omitempty"`
	Estimate json.RawMessage `json:"estimate,omitempty"`
}

func updateTask(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	change, err := runner.Body[TaskChange](req)
	if err != nil {
		return runner.Response{}, err
	}
	if change.Title == "" && change.State == "" && change.Assignee == nil && change.Estimate == nil {
		return runner.BadRequest("nothing to change: give title, state, assignee or estimate"), nil
	}
	if _, err := runner.Update("Task", change).Where("id", "=", req.Param("id")).Rows(ctx, nil); err != nil {
		return refused(err)
	}
	return runner.OK(runner.Row), nil // 404 when there was none
}

// Event is the values of a new AuditEvent.
type Event struct {
	Actor  string `json:"actor"`
	Action string `json:"action"`
	Detail any    `json:"detail,omitempty"`
}

// ingestEvent stores an event that another system reports. Its key may not read events;
// the answer has the values it wrote, and the id.
func ingestEvent(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	return runner.Created(runner.Row), runner.Insert("AuditEvent", json.RawMessage(req.RawBody())).Row(ctx, nil)
}

func health(*runner.Context, *runner.Request) (runner.Response, error) {
	return runner.OK(map[string]string{"status": "ok"}), nil
}
