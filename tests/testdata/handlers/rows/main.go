// Handlers that change rows and keys in one request.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"strconv"

	runner "runner.example/sdk/go"
)

func main() {}

//go:wasmexport increment
func exportIncrement() { runner.Handle(increment) }

//go:wasmexport order
func exportOrder() { runner.Handle(order) }

//go:wasmexport transfer
func exportTransfer() { runner.Handle(transfer) }

//go:wasmexport enter
func exportEnter() { runner.Handle(enter) }

//go:wasmexport uncaught
func exportUncaught() { runner.Handle(uncaught) }

// Counter is a row of the entity Counter.
type Counter struct {
	ID string `json:"id"`
	N  int    `json:"n"`
}

// increment adds one to a counter, and creates a key whose name is the value.
func increment(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	var c Counter
	if err := runner.Query("Counter").Where("name", "=", req.Param("name")).FirstOrFail(ctx, &c); err != nil {
		return runner.Response{}, err
	}
	c.N++
	if _, err := runner.Update("Counter", map[string]int{"n": c.N}).Where("id", "=", c.ID).Run(ctx); err != nil {
		return runner.Response{}, err
	}
	_, err := ctx.Client.APIKeys.Create(runner.APIKeyOptions{Scope: "minted", Name: strconv.Itoa(c.N)})
	return runner.OK(c.N), err
}

// enter adds one to a counter, and opens a session of the user with that number.
func enter(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	ctx.Log().Info("enters")
	var c Counter
	if err := runner.Query("Counter").Where("name", "=", req.Param("name")).FirstOrFail(ctx, &c); err != nil {
		return runner.Response{}, err
	}
	c.N++
	if _, err := runner.Update("Counter", map[string]int{"n": c.N}).Where("id", "=", c.ID).Run(ctx); err != nil {
		return runner.Response{}, err
	}
	user := strconv.Itoa(c.N)
	_, err := ctx.Client.Sessions.Create(runner.SessionOptions{UserID: user})
	return runner.OK(c.N).WithHeader("X-User", user), err
}

// order writes two rows and a key, and then ends as ?end= says.
func order(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	name := req.Query("name")
	if err := runner.Insert("Counter", []map[string]any{{"name": name + " 1"}, {"name": name + " 2"}}).Rows(ctx, nil); err != nil {
		return runner.Response{}, err
	}
	if _, err := ctx.Client.APIKeys.Create(runner.APIKeyOptions{Scope: "minted", Name: name}); err != nil {
		return runner.Response{}, err
	}
	switch req.Query("end") {
	case "refuse":
		return runner.BadRequest("no"), nil
	case "keep":
		ctx.KeepWrites()
		return runner.BadRequest("no, but"), nil
	case "error":
		return runner.Response{}, errors.New("an error of the handler's own")
	case "exit":
		os.Exit(3)
	case "conflict":
		return runner.Response{}, runner.Insert("Counter", map[string]any{"name": name + " 1"}).Row(ctx, nil)
	}
	return runner.NoContent(), nil
}

// transfer moves ?n= from one counter to another. Both must exist, and none may go below
// zero.
func transfer(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	n, err := strconv.Atoi(req.Query("n"))
	if err != nil {
		return runner.BadRequest("n is no number"), nil
	}
	var both []Counter
	names := []string{req.Query("from"), req.Query("to")}
	if err := runner.Query("Counter").Where("name", "in", names).All(ctx, &both); err != nil {
		return runner.Response{}, err
	}
	if len(both) != 2 {
		return runner.NotFound("no such counter"), nil
	}
	for _, c := range both {
		change := n
		var from Counter
		if err := runner.Query("Counter").Where("name", "=", names[0]).FirstOrFail(ctx, &from); err != nil {
			return runner.Response{}, err
		}
		if c.ID == from.ID {
			change = -n
		}
		if c.N+change < 0 {
			return runner.Error(422, "not enough"), nil
		}
		if _, err := runner.Update("Counter", map[string]int{"n": c.N + change}).Where("id", "=", c.ID).Run(ctx); err != nil {
			return runner.Response{}, err
		}
	}
	return runner.NoContent(), nil
}

// uncaught runs the operation that ?op= names with the body as its values, and returns its
// error.
func uncaught(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	body := json.RawMessage(req.RawBody())
	switch req.Query("op") {
	case "get":
		return runner.OK(runner.Row), runner.Get("Counter", req.Query("id")).Row(ctx, nil)
	case "insert":
		return runner.Created(runner.Row), runner.Insert(req.Query("entity"), body).Row(ctx, nil)
	case "update":
		_, err := runner.Update(cmp.Or(req.Query("entity"), "Counter"), body).Where("name", "=", req.Query("name")).Run(ctx)
		return runner.OK(runner.Row), err
	case "remove":
		n, err := runner.Remove("Counter").Where("name", "=", req.Query("name")).Run(ctx)
		return runner.OK(n), err
	case "problem":
		return runner.Error(402, "buy more").WithCode("no_credit").WithMember("balance", 3).WithMember("errors", json.RawMessage(`[{"field":"n","message":"too much"}]`)), nil
	case "reserved":
		return runner.Error(402, "buy more").WithMember("instance", "x"), nil
	case "first":
		return runner.OK(runner.Row), runner.Query("Counter").Where("name", "=", req.Query("name")).FirstOrFail(ctx, &Counter{})
	case "order":
		return runner.OK(runner.Rows), runner.Query("Counter").OrderBy("nothing").All(ctx, nil)
	case "spend":
		for {
			if _, err := runner.Query("Counter").Count(ctx); err != nil {
				return runner.Response{}, err
			}
		}
	}
	return runner.OK(runner.Rows), runner.Query("Counter").Match(runner.Or(
		runner.Field("name", "=", req.Query("name")), runner.And(runner.Field("n", ">", 1000), runner.Not(runner.Field("n", "=", 1))),
	)).All(ctx, nil)
}
