// Command guest is what is measured of handlers in Go.
package main

import "runner.example/sdk/go"

func main() {}

//go:wasmexport hello
func exportHello() { runner.Handle(hello) }

func hello(*runner.Context, *runner.Request) (runner.Response, error) {
	return runner.OK(struct {
		Message string `json:"message"`
	}{"hello"}), nil
}

type newOrder struct {
	Item string `json:"item"`
	Qty  int    `json:"qty"`
}

type savedOrder struct {
	ID string `json:"id"`
	newOrder
}

//go:wasmexport order
func exportOrder() { runner.Handle(order) }

func order(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	in, err := runner.Body[newOrder](req)
	if err != nil {
		return runner.Response{}, err
	}
	var saved savedOrder
	err = runner.Insert("Order", in).Row(ctx, &saved)
	return runner.Created(saved), err
}

type row struct {
	ID    string  `json:"id"`
	Item  string  `json:"item"`
	Qty   int     `json:"qty"`
	Price float64 `json:"price"`
	Total float64 `json:"total"`
}

//go:wasmexport hundred
func exportHundred() { runner.Handle(hundred) }

func hundred(_ *runner.Context, req *runner.Request) (runner.Response, error) {
	rows, err := runner.Body[[]row](req)
	for i := range rows {
		rows[i].Total = float64(rows[i].Qty) * rows[i].Price
	}
	return runner.OK(rows), err
}
