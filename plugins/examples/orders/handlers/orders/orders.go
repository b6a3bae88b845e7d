package main

import (
	"encoding/json"
	"errors"

	runner "runner.example/sdk/go"
)

func hello(*runner.Context, *runner.Request) (runner.Response, error) {
	return runner.OK(struct {
		Message string `json:"message"`
	}{"hello"}), nil
}

// listOrders gives a page of the orders that the caller may read, the newest
// first: all, or those of one ?status=; ?cursor= asks for the next page.
func listOrders(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	query := runner.Query("Order").OrderBy("createdAt", "desc").Limit(50)
	if status := req.Query("status"); status != "" {
		query = query.Where("status", "=", status)
	}
	if _, err := query.Page(ctx, nil, req.Query("cursor")); err != nil {
		return badQuery(err)
	}
	return runner.OK(runner.Result), nil
}

// badQuery answers 400 for what the caller put into a query.
func badQuery(err error) (runner.Response, error) {
	var refused *runner.HostError
	if errors.As(err, &refused) && refused.Code == "invalid" {
		return runner.BadRequest(refused.Message), nil
	}
	return runner.Response{}, err
}

func getOrder(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	return runner.OK(runner.Row), runner.Get("Order", req.Param("id")).Row(ctx, nil)
}

// createOrder places an order. The body fits OrderInput, or the handler would
// not run.
func createOrder(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	var order struct {
		ID     string `json:"id"`
		Number string `json:"number"`
	}
	if err := runner.Insert("Order", json.RawMessage(req.RawBody())).Row(ctx, &order); err != nil {
		return runner.Response{}, err
	}
	ctx.Log().Info("order placed", "number", order.Number, "key", ctx.Auth().KeyID)
	return runner.Created(runner.Row, "/v1/orders/"+order.ID), nil
}

// OrderChange is what updateOrder takes: what is left out stays.
type OrderChange struct {
	Status string          `json:"status,omitempty"`
	Total  json.RawMessage `json:"total,omitempty"`
	Meta   json.RawMessage `json:"meta,omitempty"`
}

func updateOrder(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	change, err := runner.Body[OrderChange](req)
	if err != nil {
		return runner.Response{}, err
	}
	if change.Status == "" && change.Total == nil && change.Meta == nil {
		return runner.BadRequest("nothing to change: give status, total or meta"), nil
	}
	id := req.Param("id")
	n, err := runner.Update("Order", change).Where("id", "=", id).Rows(ctx, nil)
	switch {
	case err != nil:
		return badQuery(err)
	case n == 0:
		return untouched(ctx, id)
	}
	return runner.OK(runner.Row), nil
}

func deleteOrder(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	id := req.Param("id")
	n, err := runner.Remove("Order").Where("id", "=", id).Run(ctx)
	if err == nil && n == 0 {
		return untouched(ctx, id)
	}
	return runner.NoContent(), err
}

// untouched answers when an operation left an order alone: 404 when the caller
// may not see it, 403 when it stands as the caller may not change it.
func untouched(ctx *runner.Context, id string) (runner.Response, error) {
	return runner.Forbidden("the order is past this"), runner.Get("Order", id, "id").Row(ctx, nil)
}
