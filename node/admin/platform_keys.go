package admin

import (
	"context"

	"runner.example/keystore"
)

// CreatePlatformKey describes a new platform key.
type CreatePlatformKey struct {
	Name string        `json:"name"`
	Role keystore.Role `json:"role"`
	// ExpiresIn is the lifetime in seconds; nil: the key has no end.
	ExpiresIn *int64 `json:"expiresIn,omitempty"`
}

// ListPlatformKeys selects platform keys.
type ListPlatformKeys struct {
	// All includes expired and revoked keys that are still stored.
	All bool `json:"all,omitempty"`
}

// PlatformKeyList has platform keys, the oldest first.
type PlatformKeyList struct {
	Keys []keystore.PlatformKey `json:"keys"`
}

// Check returns the error with which every node would refuse the request, or nil.
func (r CreatePlatformKey) Check() error {
	request, err := r.Request()
	if err != nil {
		return err
	}
	return request.Check()
}

// Request returns the request to the keystore.
func (r CreatePlatformKey) Request() (keystore.CreatePlatformKey, error) {
	request := keystore.CreatePlatformKey{Name: r.Name, Role: r.Role}
	if r.ExpiresIn != nil {
		lifetime, err := DurationOf("expiresIn", *r.ExpiresIn)
		if err != nil {
			return request, err
		}
		request.ExpiresIn = &lifetime
	}
	return request, nil
}

// CreatePlatformKey creates a platform key; only this answer has its token.
func (c *Client) CreatePlatformKey(ctx context.Context, request CreatePlatformKey) (keystore.PlatformKey, error) {
	return ask(ctx, c, OpCreatePlatformKey, request)
}

// ListPlatformKeys returns the platform keys.
func (c *Client) ListPlatformKeys(ctx context.Context, request ListPlatformKeys) ([]keystore.PlatformKey, error) {
	list, err := ask(ctx, c, OpListPlatformKeys, request)
	return list.Keys, err
}

// RotatePlatformKey gives a platform key a new token; only this answer has it.
func (c *Client) RotatePlatformKey(ctx context.Context, request RotateKey) (Changed[keystore.PlatformKey], error) {
	return ask(ctx, c, OpRotatePlatformKey, request)
}

// RevokePlatformKey revokes a platform key permanently; revoking a revoked one changes nothing.
func (c *Client) RevokePlatformKey(ctx context.Context, id string) (Changed[keystore.PlatformKey], error) {
	return ask(ctx, c, OpRevokePlatformKey, KeyID{ID: id})
}
