package admin

import "context"

// RevokedLinks says that all signed links which were made until then were revoked.
type RevokedLinks struct {
	// Generation is that of the links that are made from now on. It counts the revocations.
	Generation uint64 `json:"generation"`
}

// RevokeLinks revokes all signed links to files permanently.
func (c *Client) RevokeLinks(ctx context.Context) (Changed[RevokedLinks], error) {
	return ask(ctx, c, OpRevokeLinks, none{})
}
