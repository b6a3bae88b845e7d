package admin

import (
	"context"

	"runner.example/keystore"
	"runner.example/state/store"
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

// CreatePlatformKey creates a platform key; only this answer has its token.
func (c *Client) CreatePlatformKey(ctx context.Context, request CreatePlatformKey) (keystore.PlatformKey, error) {
	return ask[keystore.PlatformKey](ctx, c, "platformKeys.create", request)
}

// ListPlatformKeys returns the platform keys.
func (c *Client) ListPlatformKeys(ctx context.Context, request ListPlatformKeys) ([]keystore.PlatformKey, error) {
	list, err := ask[PlatformKeyList](ctx, c, "platformKeys.list", request)
	return list.Keys, err
}

// RevokePlatformKey revokes a platform key permanently; revoking a revoked one changes nothing.
func (c *Client) RevokePlatformKey(ctx context.Context, id string) (Changed[keystore.PlatformKey], error) {
	return ask[Changed[keystore.PlatformKey]](ctx, c, "platformKeys.revoke", KeyID{ID: id})
}

// Check returns the error with which every node would refuse the request, or nil.
func (r CreatePlatformKey) Check() error {
	request, err := r.request()
	if err != nil {
		return err
	}
	return request.Check()
}

func (r CreatePlatformKey) request() (keystore.CreatePlatformKey, error) {
	request := keystore.CreatePlatformKey{Name: r.Name, Role: r.Role}
	if r.ExpiresIn != nil {
		lifetime, err := seconds("expiresIn", *r.ExpiresIn)
		if err != nil {
			return request, err
		}
		request.ExpiresIn = &lifetime
	}
	return request, nil
}

func (l *Local) createPlatformKey(ctx context.Context, who keystore.Authority, args CreatePlatformKey) (key keystore.PlatformKey, err error) {
	request, err := args.request()
	if err != nil {
		return key, err
	}
	_, err = l.Store.Update(ctx, func(tx *store.Tx) error {
		key, err = l.Keys.Platform.Create(tx, who, request)
		return err
	})
	return key, err
}

func (l *Local) listPlatformKeys(ctx context.Context, who keystore.Authority, args ListPlatformKeys) (list PlatformKeyList, err error) {
	list.Keys = []keystore.PlatformKey{}
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		keys, err := l.Keys.Platform.List(tx, who, args.All)
		list.Keys = append(list.Keys, keys...)
		return err
	})
	return list, err
}

func (l *Local) revokePlatformKey(ctx context.Context, who keystore.Authority, args KeyID) (Changed[keystore.PlatformKey], error) {
	var key keystore.PlatformKey
	seq, err := l.Store.Update(ctx, func(tx *store.Tx) (err error) {
		key, err = l.Keys.Platform.Revoke(tx, who, args.ID)
		return err
	})
	return everywhere(ctx, l, key, seq, err)
}
