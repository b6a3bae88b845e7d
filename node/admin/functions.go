package admin

import (
	"context"

	"runner.example/schema"
)

// CallFunction is a call of a function.
type CallFunction struct {
	Name string `json:"name"`
	// Params is a JSON object with the parameters, unchanged; empty is the same as {}.
	Params []byte `json:"params,omitempty"`
	// Tenant is the only tenant whose rows the function reaches; empty: all.
	Tenant string `json:"tenant,omitempty"`
}

// Called is the answer of a function. If the function or the host refused the call, its
// status is 400 or above.
type Called struct {
	RequestID string `json:"requestId"`
	Status    int    `json:"status"`
	// Code and Detail are those of a problem document; empty for other answers.
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Errors are the problems in the parameters.
	Errors []schema.FieldError `json:"errors,omitempty"`
	// Headers are pairs of name and value.
	Headers [][2]string `json:"headers"`
	Body    []byte      `json:"body"`
}

// CallFunction runs a function of the app, exposed or not. The code is NotFound if it does
// not exist.
func (c *Client) CallFunction(ctx context.Context, request CallFunction) (Called, error) {
	return ask(ctx, c, OpCallFunction, request)
}
