package main

import (
	"time"

	runner "runner.example/sdk/go"
)

// Functions for owners and administrators to manage the keys of their organisation. The
// runner has checked the parameters. The schema declares which scopes the caller may issue
// (@issue) and whose keys it reaches beside its own (@manage), and the runner enforces it.

func createKey(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	params, err := runner.Body[struct {
		Name      string `json:"name"`
		Scope     string `json:"scope"`
		ExpiresIn int64  `json:"expiresIn"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	key, err := ctx.Client.APIKeys.Create(runner.APIKeyOptions{
		Scope: params.Scope, Name: params.Name, ExpiresIn: time.Duration(params.ExpiresIn) * time.Second,
	})
	if err != nil {
		return refused(err) // a scope that there is not, say
	}
	return runner.OK(key), nil
}

func listKeys(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	page, err := ctx.Client.APIKeys.List(runner.APIKeyFilter{})
	if err != nil {
		return runner.Response{}, err
	}
	return runner.OK(page), nil
}

func rotateKey(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	params, err := runner.Body[struct {
		ID          string `json:"id"`
		GracePeriod int64  `json:"gracePeriod"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	key, err := ctx.Client.APIKeys.Rotate(params.ID, time.Duration(params.GracePeriod)*time.Second)
	if err != nil {
		return refused(err)
	}
	return runner.OK(key), nil
}

func revokeKey(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	params, err := runner.Body[struct {
		ID string `json:"id"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	key, err := ctx.Client.APIKeys.Revoke(params.ID)
	if err != nil {
		return runner.Response{}, err
	}
	return runner.OK(key), nil
}
