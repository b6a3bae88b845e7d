package auth

import (
	"time"

	"runner.example/internal/fault"
	"runner.example/keystore"
)

// errNoPlatformKey is the refusal of a request to a node without a credential.
var errNoPlatformKey = fault.New(fault.MissingCredentials,
	"this address needs a platform key: send it as Authorization: Bearer")

// CheckPlatformKey returns the platform key of the request, for operations on the node. Only a
// bearer token is looked at: no cookie and no other header. Credentials that are not valid are
// counted, logged and limited together with those of Check, and the errors are those of Check.
func (a *Authenticator) CheckPlatformKey(p Presented, now time.Time) (keystore.PlatformIdentity, error) {
	switch {
	case p.AuthorizationLines == 0:
		return keystore.PlatformIdentity{}, errNoPlatformKey
	case p.AuthorizationLines > 1:
		return keystore.PlatformIdentity{}, errTwoCredentials
	}
	p.APIKey, p.APIKeyLines = nil, 0
	token, reason := p.credential()
	if reason != "" {
		err := a.refuse(p, token, "", reason, now)
		if token == nil {
			err = otherScheme(err)
		}
		return keystore.PlatformIdentity{}, err
	}
	if a.fresh.over(a.store, now) {
		return keystore.PlatformIdentity{}, refusedStale()
	}
	key, err := a.keys.Platform.Verify(token)
	if err != nil {
		return keystore.PlatformIdentity{}, a.refuse(p, token, key.ID, key.Refused, now)
	}
	return key, nil
}
