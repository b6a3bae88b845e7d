package admin

import (
	"context"
	"encoding/json"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/runtime"
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
	return ask[Called](ctx, c, "functions.call", request)
}

func (l *Local) callFunction(ctx context.Context, who keystore.Authority, args CallFunction) (called Called, err error) {
	if l.Runtime == nil {
		return called, fault.New(fault.Unavailable, "this node runs no functions")
	}
	if err := keystore.CheckLine("tenant", args.Tenant); err != nil {
		return called, err
	}
	who.Caller.Tenant = args.Tenant
	answer, err := l.Runtime.Call(ctx, runtime.FunctionCall{Name: args.Name, Params: args.Params, Caller: who.Caller, RequestID: who.RequestID})
	if err != nil {
		return called, err
	}
	called = Called{
		RequestID: who.RequestID, Status: answer.Status, Code: answer.Code, Detail: answer.Detail,
		Headers: [][2]string{}, Body: answer.Body,
	}
	for _, h := range answer.Headers {
		called.Headers = append(called.Headers, [2]string{string(h.Name), string(h.Value)})
	}
	if answer.Errors != nil {
		err = json.Unmarshal(answer.Errors, &called.Errors)
	}
	return called, err
}
