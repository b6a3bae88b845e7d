package main

import (
	"time"

	runner "runner.example/sdk/go"
)

// The routes under /account/keys let an administrator manage the keys of
// partners. Which scopes it may issue is the schema's word (@issue), enforced
// below these functions.

func listKeys(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	page, err := ctx.Client.APIKeys.List(runner.APIKeyFilter{Scope: req.Query("scope"), Cursor: req.Query("cursor")})
	if err != nil {
		return runner.Response{}, err
	}
	return runner.OK(page), nil
}

func createKey(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	options, err := runner.Body[struct {
		Scope     string `json:"scope"`
		Name      string `json:"name"`
		ExpiresIn int64  `json:"expiresIn"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	if options.Scope == "" {
		return runner.BadRequest("missing field: scope"), nil
	}
	key, err := ctx.Client.APIKeys.Create(runner.APIKeyOptions{
		Scope: options.Scope, Name: options.Name, ExpiresIn: time.Duration(options.ExpiresIn) * time.Second,
	})
	if err != nil {
		return runner.Response{}, err
	}
	return runner.Created(key), nil
}

func rotateKey(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	options, err := runner.Body[struct {
		GracePeriod int64 `json:"gracePeriod"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	key, err := ctx.Client.APIKeys.Rotate(req.Param("id"), time.Duration(options.GracePeriod)*time.Second)
	if err != nil {
		return runner.Response{}, err
	}
	return runner.OK(key), nil
}

func revokeKey(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	if _, err := ctx.Client.APIKeys.Revoke(req.Param("id")); err != nil {
		return runner.Response{}, err
	}
	return runner.NoContent(), nil
}
