package admin

import (
	"context"

	"runner.example/internal/settings"
)

// ConfigInForce is the configuration of a running server.
type ConfigInForce struct {
	Settings []settings.Setting `json:"settings"`
}

// Config returns the configuration of the node, without the values of secrets.
func (c *Client) Config(ctx context.Context) ([]settings.Setting, error) {
	answer, err := ask(ctx, c, OpShowConfig, none{})
	return answer.Settings, err
}
