package hostabi

import (
	"runner.example/internal/fault"
	"runner.example/state/webhook"
)

// verifyWebhook checks the signature of this request, as a route with verify: does for its
// handler. It does not record deliveries.
func verifyWebhook(c *Call, args *arguments) (any, error) {
	scheme, name := args.text("scheme"), args.text("secret")
	if err := args.end(); err != nil {
		return nil, err
	}
	value, err := c.secret(name)
	if err != nil { // denied means a wrong signature
		return nil, fault.New(fault.Invalid, "%s", fault.Of(err).Detail)
	}
	v, err := webhook.New(scheme, value, 0)
	if err != nil {
		return nil, err
	}
	whole, ok := c.WholeBody()
	if !ok {
		return nil, fault.New(fault.Invalid, "the handler has read parts of the body: a signature covers the whole body")
	}
	body := c.SentBody
	if body == nil {
		body = whole
	}
	d, err := v.Verify(c.Request.Header, body, c.now(), &c.work)
	if err != nil {
		return nil, fault.New(fault.Denied, "%s", fault.Of(err).Detail)
	}
	out := struct {
		ID        string `json:"id"`
		Timestamp *int64 `json:"timestamp"`
	}{ID: d.ID}
	if !d.Time.IsZero() {
		seconds := d.Time.Unix()
		out.Timestamp = &seconds
	}
	return out, nil
}
