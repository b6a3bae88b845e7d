package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	runner "runner.example/sdk/go"
)

// paymentsWebhook takes the payment provider's calls. The route has auth none,
// so the handler proves the caller itself: the header carries
// "sha256=<hex of HMAC-SHA-256 over the exact body>". It acts under the grants of
// payments_hook. An event that comes twice changes nothing the second time.
func paymentsWebhook(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	signature := req.Header("x-signature")
	if signature == "" {
		return runner.BadRequest("missing header: x-signature"), nil
	}
	secret, err := ctx.Secret("PAYMENTS_WEBHOOK_SECRET")
	if err != nil {
		return runner.Response{}, err
	}
	if !signed(req.RawBody(), signature, secret) {
		return runner.Unauthorized("the signature does not fit the body"), nil
	}
	event, err := runner.Body[struct {
		Type  string `json:"type"`
		Order string `json:"order"`
		Ref   string `json:"ref"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	settled := 0
	if event.Type == "payment.settled" {
		settled, err = runner.Update("Order", map[string]any{"status": "paid", "paymentRef": event.Ref}).
			Where("number", "=", event.Order).
			Where("status", "in", []string{"draft", "open"}).
			Run(ctx)
		if err != nil {
			return runner.Response{}, err
		}
	}
	ctx.Log().Info("payment event", "type", event.Type, "order", event.Order, "settled", settled)
	return runner.OK(map[string]int{"settled": settled}), nil
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
