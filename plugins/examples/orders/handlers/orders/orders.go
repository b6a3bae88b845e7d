package main

import (
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	runner "runner.example/sdk/go"
)

// Order is one order; amounts are in cents.
type Order struct {
	ID       string `json:"id"`
	Number   string `json:"number"`
	Status   string `json:"status"`
	Currency string `json:"currency"`
	Lines    []Line `json:"lines"`
	Total    int    `json:"total"`
}

// Line is one position of an order.
type Line struct {
	Item     string `json:"item"`
	Quantity int    `json:"quantity"`
	Price    int    `json:"price"`
}

// The app keeps no rows of its own: the orders it lists and the prices it
// knows are compiled into the module.
var (
	//go:embed orders.json
	ordersJSON []byte
	orders     = mustOrders()
	prices     = map[string]int{"tea": 450, "coffee": 690, "cup": 1200, "pot": 3900}
)

func mustOrders() []Order {
	var all []Order
	if err := json.Unmarshal(ordersJSON, &all); err != nil {
		panic(err)
	}
	return all
}

func hello(*runner.Context, *runner.Request) (runner.Response, error) {
	return runner.OK(struct {
		Message string `json:"message"`
	}{"hello"}), nil
}

func ping(*runner.Context, *runner.Request) (runner.Response, error) {
	return runner.NoContent(), nil
}

func myProfile(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	return runner.OK(map[string]any{"userId": ctx.Auth().UserID, "roles": ctx.Auth().Roles}), nil
}

// listOrders lists all orders, or those of one ?status=.
func listOrders(_ *runner.Context, req *runner.Request) (runner.Response, error) {
	status := req.Query("status")
	found := []Order{}
	for _, order := range orders {
		if status == "" || order.Status == status {
			found = append(found, order)
		}
	}
	return runner.OK(found), nil
}

func getOrder(_ *runner.Context, req *runner.Request) (runner.Response, error) {
	id := req.Param("id")
	for _, order := range orders {
		if order.ID == id {
			return runner.OK(order), nil
		}
	}
	return runner.NotFound(fmt.Sprintf("no order %q", id)), nil
}

// createOrder prices an order and gives it an id.
func createOrder(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	order, err := runner.Body[Order](req)
	if err != nil {
		return runner.Response{}, err
	}
	if order.Number == "" {
		return runner.BadRequest("missing field: number"), nil
	}
	if len(order.Lines) == 0 {
		return runner.BadRequest("missing field: lines"), nil
	}
	order.ID, order.Status, order.Currency, order.Total = "ord-"+strings.ToLower(rand.Text()), "open", "EUR", 0
	for i, line := range order.Lines {
		price, known := prices[line.Item]
		if !known {
			return runner.Error(422, fmt.Sprintf("lines[%d]: no item %q", i, line.Item)), nil
		}
		if line.Quantity < 1 || line.Quantity > 10_000 {
			return runner.BadRequest(fmt.Sprintf("lines[%d]: quantity must be 1 to 10000", i)), nil
		}
		order.Lines[i].Price = price
		order.Total += price * line.Quantity
	}
	ctx.Log().Info("order placed", "number", order.Number, "total", order.Total, "key", ctx.Auth().KeyID)
	return runner.Created(order, "/v1/orders/"+order.ID), nil
}
