package admin

import (
	"context"

	"runner.example/state/entity/catalog"
)

// VerifyStore says where one part of a verification begins: the Next of the part before, or nil.
type VerifyStore struct {
	From *catalog.VerifyPlace `json:"from,omitempty"`
}

// VerifyStore checks in one snapshot that a part of the rows and their indexes agree. Ask until Next is nil.
func (c *Client) VerifyStore(ctx context.Context, request VerifyStore) (catalog.VerifiedPart, error) {
	return ask(ctx, c, OpVerifyStore, request)
}
