package main

import (
	"encoding/json"
	"net/url"

	runner "runner.example/sdk/go"
)

func getPartner(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	return runner.OK(runner.Row), runner.Query("Partner").Where("code", "=", req.Param("code")).First(ctx, nil)
}

// createPartner takes a body that fits PartnerInput.
func createPartner(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	var partner struct {
		Code string `json:"code"`
	}
	if err := runner.Insert("Partner", json.RawMessage(req.RawBody())).Row(ctx, &partner); err != nil {
		return runner.Response{}, err
	}
	return runner.Created(runner.Row, "/v1/partners/"+url.PathEscape(partner.Code)), nil
}
