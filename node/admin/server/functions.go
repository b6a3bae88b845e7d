package server

import (
	"context"
	"encoding/json"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/node/cluster"
	"runner.example/runtime"
)

func (l *Local) callFunction(ctx context.Context, who keystore.Authority, args admin.CallFunction) (called admin.Called, err error) {
	if l.Runtime == nil {
		return called, fault.New(fault.Unavailable, "this node runs no functions")
	}
	if err := keystore.CheckLine("tenant", args.Tenant); err != nil {
		return called, err
	}
	who.Caller.Tenant = args.Tenant
	answer, err := l.Runtime.Call(ctx, runtime.FunctionCall{Name: args.Name, Params: args.Params, Caller: who.Caller, RequestID: who.RequestID, Address: who.Address})
	if err != nil {
		return called, err
	}
	if answer.Status >= 500 && context.Cause(ctx) == cluster.ErrNoMajority {
		return called, cluster.ErrNoMajority
	}
	called = admin.Called{
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
