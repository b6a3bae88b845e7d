package admin

import (
	"context"

	"runner.example/state/entity/catalog"
)

// VerifyStore are the arguments of Client.VerifyStore. From is the Next of the previous part, and nil for the first.
type VerifyStore struct {
	From *catalog.VerifyPlace `json:"from,omitempty"`
}

// VerifyStore checks, in one snapshot, that one part of the rows and their indexes agree. Repeat it with Next until
// Next is nil.
func (c *Client) VerifyStore(ctx context.Context, request VerifyStore) (catalog.VerifiedPart, error) {
	return ask(ctx, c, OpVerifyStore, request)
}
