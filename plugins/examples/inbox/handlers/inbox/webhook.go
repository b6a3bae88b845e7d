package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	runner "runner.example/sdk/go"
)

// Event is the values of a new row of the entity Event.
type Event struct {
	Delivery string          `json:"delivery"`
	Type     string          `json:"type"`
	Payload  json.RawMessage `json:"payload"`
}

// receiveEvent handles the provider's calls. The route has auth none, so the handler
// checks the signature itself: the header is "sha256=<hex of HMAC-SHA-256 over the exact
// body>". The grants of the scope receive apply. An event that arrives twice is
// acknowledged twice and stored once.
func receiveEvent(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	signature := req.Header("x-signature")
	if signature == "" {
		return runner.BadRequest("missing header: x-signature"), nil
	}
	secret, err := ctx.Secret("INBOX_WEBHOOK_SECRET")
	if err != nil {
		return runner.Response{}, err
	}
	if !signed(req.RawBody(), signature, secret) {
		return runner.Unauthorized("the signature does not fit the body"), nil
	}
	body, err := runner.Body[struct {
		ID   string          `json:"id"`
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	switch {
	case body.ID == "":
		return runner.BadRequest("missing field: id"), nil
	case body.Type == "":
		return runner.BadRequest("missing field: type"), nil
	case body.Data == nil:
		return runner.BadRequest("missing field: data"), nil
	}
	err = runner.Insert("Event", Event{Delivery: body.ID, Type: body.Type, Payload: body.Data}).Row(ctx, nil)
	if refused := (*runner.HostError)(nil); errors.As(err, &refused) {
		switch refused.Code {
		case "conflict": // it is there already
			return runner.NoContent(), nil
		case "invalid":
			return runner.BadRequest(refused.Message), nil
		}
	}
	if err != nil {
		return runner.Response{}, err
	}
	ctx.Log().Info("event received", "type", body.Type, "delivery", body.ID)
	return runner.NoContent(), nil
}

func signed(body []byte, signature, secret string) bool {
	text, ok := strings.CutPrefix(signature, "sha256=")
	if !ok {
		return false
	}
	given, err := hex.DecodeString(text)
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hmac.Equal(given, mac.Sum(nil))
}
