package runner

import (
	"time"

	"runner.example/sdk/go/internal/host"
)

// Webhooks checks requests on routes that do not say `verify:` themselves.
type Webhooks struct{ host host.Host }

// Delivery is a webhook call that is signed as it should be.
type Delivery struct {
	// ID is the signature where the scheme has none.
	ID string
	// Time is when it was signed, zero where the scheme does not say.
	Time time.Time
}

// Verify checks that this request is signed with a declared secret by a scheme:
// "standard", "stripe", "github" or "slack". What is not is denied. It does not
// remember deliveries, as `verify:` does: one that comes twice passes twice.
func (w Webhooks) Verify(scheme, secret string) (Delivery, error) {
	var result struct {
		ID        string `json:"id"`
		Timestamp *int64 `json:"timestamp"`
	}
	err := callHost(w.host, "webhooks.verify", map[string]string{"scheme": scheme, "secret": secret}, &result)
	delivery := Delivery{ID: result.ID}
	if result.Timestamp != nil {
		delivery.Time = time.Unix(*result.Timestamp, 0).UTC()
	}
	return delivery, err
}
