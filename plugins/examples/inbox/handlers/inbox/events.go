package main

import (
	"errors"

	runner "runner.example/sdk/go"
)

func hello(*runner.Context, *runner.Request) (runner.Response, error) {
	return runner.OK(struct {
		Message string `json:"message"`
	}{"hello"}), nil
}

// listEvents returns a page of the events, newest first: all, or of one ?type=;
// ?cursor= asks for the next page.
func listEvents(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	query := runner.Query("Event").OrderBy("receivedAt", "desc").Limit(50)
	if kind := req.Query("type"); kind != "" {
		query = query.Where("type", "=", kind)
	}
	_, err := query.Page(ctx, nil, req.Query("cursor"))
	var refused *runner.HostError
	if errors.As(err, &refused) && refused.Code == "invalid" {
		return runner.BadRequest(refused.Message), nil // a cursor of another query, say
	}
	return runner.OK(runner.Result), err
}

func getEvent(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	return runner.OK(runner.Row), runner.Get("Event", req.Param("id")).Row(ctx, nil)
}
