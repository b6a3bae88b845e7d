package admin

import (
	"context"
	"encoding/json"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/runtime"
	"runner.example/schema"
)

// CallFunction says which function to run.
type CallFunction struct {
	Name string `json:"name"`
	// Params is a JSON object of the parameters, as it came; nothing is an empty one.
	Params []byte `json:"params,omitempty"`
	// Tenant is the only one that the function reaches; empty: all.
	Tenant string `json:"tenant,omitempty"`
}

// Called is how a function answered. One that failed, or was refused by the host, has
// a status of 400 or above.
type Called struct {
	RequestID string `json:"requestId"`
	Status    int    `json:"status"`
	// Code and Detail are those of a problem; empty for every other answer.
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Errors are what is wrong with the parameters.
	Errors []schema.FieldError `json:"errors,omitempty"`
	// Headers are names and values.
	Headers [][2]string `json:"headers"`
	Body    []byte      `json:"body"`
}

// CallFunction runs a function of the app, exposed or not. NotFound is an unknown one.
func (c *Client) CallFunction(ctx context.Context, request CallFunction) (Called, error) {
	return ask[Called](ctx, c, "functions.call", request)
}

func (l *Local) callFunction(ctx context.Context, who keystore.Authority, args CallFunction) (called Called, err error) {
	if l.Runtime == nil {
		return called, fault.New(fault.Unavailable, "the node runs no functions")
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
