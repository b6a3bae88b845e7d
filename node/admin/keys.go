package admin

import (
	"context"
	"encoding/json"

	"runner.example/internal/caller"
	"runner.example/keystore"
	"runner.example/schema"
)

// CreateKey describes a new key.
type CreateKey struct {
	Scope string `json:"scope"`
	Name  string `json:"name"`
	// ExpiresIn is the lifetime in seconds; nil means the schema's.
	ExpiresIn *int64 `json:"expiresIn,omitempty"`
	// Metadata is a JSON object; nil: none.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Tenant   string          `json:"tenant,omitempty"`
}

// RotateKey names a key that gets a new token.
type RotateKey struct {
	ID string `json:"id"`
	// GracePeriod is how long the old token stays valid, in seconds.
	GracePeriod int64 `json:"gracePeriod"`
}

// KeyID identifies a key.
type KeyID struct {
	ID string `json:"id"`
}

// ListKeys selects keys; the zero value selects the first 100 active ones.
type ListKeys struct {
	Scope string `json:"scope,omitempty"`
	// Owner is the id of the user or the key that created the keys.
	Owner string `json:"owner,omitempty"`
	// All includes expired and revoked keys.
	All    bool   `json:"all,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// Check returns the error with which every node with that schema would refuse the request,
// or nil.
func (r CreateKey) Check(s *schema.Schema) error {
	request, err := r.Request()
	if err != nil {
		return err
	}
	return keystore.Authority{Schema: s, Caller: caller.Caller{Kind: caller.System}}.Check(request)
}

// Request returns the request to the keystore.
func (r CreateKey) Request() (keystore.CreateRequest, error) {
	request := keystore.CreateRequest{Scope: r.Scope, Name: r.Name, Metadata: r.Metadata, Tenant: r.Tenant}
	if r.ExpiresIn != nil {
		lifetime, err := DurationOf("expiresIn", *r.ExpiresIn)
		if err != nil {
			return request, err
		}
		request.ExpiresIn = &lifetime
	}
	return request, nil
}

// CreateKey creates a key; only this answer has its token.
func (c *Client) CreateKey(ctx context.Context, request CreateKey) (keystore.Key, error) {
	return ask(ctx, c, OpCreateKey, request)
}

// RotateKey gives a key a new token; only this answer has it.
func (c *Client) RotateKey(ctx context.Context, request RotateKey) (Changed[keystore.Key], error) {
	return ask(ctx, c, OpRotateKey, request)
}

// ListKeys returns one page of keys.
func (c *Client) ListKeys(ctx context.Context, request ListKeys) (keystore.Page, error) {
	return ask(ctx, c, OpListKeys, request)
}

// Key returns one key.
func (c *Client) Key(ctx context.Context, id string) (keystore.Key, error) {
	return ask(ctx, c, OpGetKey, KeyID{ID: id})
}

// RevokeKey revokes a key permanently; revoking a revoked key changes nothing.
func (c *Client) RevokeKey(ctx context.Context, id string) (Changed[keystore.Key], error) {
	return ask(ctx, c, OpRevokeKey, KeyID{ID: id})
}

// DisableKey disables a key until EnableKey.
func (c *Client) DisableKey(ctx context.Context, id string) (Changed[keystore.Key], error) {
	return ask(ctx, c, OpDisableKey, KeyID{ID: id})
}

// EnableKey enables a disabled key.
func (c *Client) EnableKey(ctx context.Context, id string) (keystore.Key, error) {
	return ask(ctx, c, OpEnableKey, KeyID{ID: id})
}
