package runner

import (
	"encoding/json"
	"time"

	"runner.example/sdk/go/internal/host"
)

// Client reaches the services of the runner with the caller's authority.
type Client struct {
	APIKeys  APIKeys
	Sessions Sessions
	Webhooks Webhooks
	Jobs     Jobs
}

// APIKeys manages the keys that the caller reaches: those that it created, as a
// user or as a key. A key also reaches itself. Where @manage in the schema is
// true, the caller reaches all keys of the scope in its tenant. Every other key
// is not_found.
type APIKeys struct{ host host.Host }

// APIKey is an API key as its managers see it. Token is set by Create and
// Rotate alone, once.
type APIKey struct {
	ID         string  `json:"id"`
	Scope      string  `json:"scope"`
	Capability string  `json:"capability"`
	Name       string  `json:"name"`
	Status     string  `json:"status"`
	Hint       string  `json:"hint"`
	Tenant     *string `json:"tenant"`
	// Owner is the id of the user or the key that created it, nil for a key of an
	// operator. OwnerKind is "user", "key" or nil.
	Owner                  *string         `json:"owner"`
	OwnerKind              *string         `json:"ownerKind"`
	Metadata               json.RawMessage `json:"metadata"`
	CreatedAt              time.Time       `json:"createdAt"`
	ExpiresAt              *time.Time      `json:"expiresAt"`
	RotatedAt              *time.Time      `json:"rotatedAt"`
	PreviousTokenExpiresAt *time.Time      `json:"previousTokenExpiresAt"`
	RevokedAt              *time.Time      `json:"revokedAt"`
	LastUsedAt             *time.Time      `json:"lastUsedAt"`
	Token                  string          `json:"token,omitempty"`
}

// APIKeyOptions describes a key to be made.
type APIKeyOptions struct {
	// Scope is required: the name of a declared scope.
	Scope string
	Name  string
	// ExpiresIn is the key's lifetime, in whole seconds; zero takes the
	// schema's default.
	ExpiresIn time.Duration
	// Metadata is a JSON object of at most 16 KiB, nil for none.
	Metadata any
}

// APIKeyFilter narrows a list. The zero value asks for all keys. Limit is 1 to
// 1000, Cursor the NextCursor of the page before.
type APIKeyFilter struct {
	Scope  string `json:"scope,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// APIKeyPage is one page of a list; NextCursor is empty, null in JSON, on the
// last one.
type APIKeyPage struct {
	Keys       []APIKey `json:"keys"`
	NextCursor string   `json:"nextCursor"`
}

// MarshalJSON writes the page as the runner does: a page without keys has an
// empty list, one that is the last has null for its cursor.
func (p APIKeyPage) MarshalJSON() ([]byte, error) {
	var next *string
	if p.NextCursor != "" {
		next = &p.NextCursor
	}
	return json.Marshal(struct {
		Keys       []APIKey `json:"keys"`
		NextCursor *string  `json:"nextCursor"`
	}{append([]APIKey{}, p.Keys...), next})
}

// Create makes a key. The answer holds its token, which nothing shows again.
func (k APIKeys) Create(options APIKeyOptions) (APIKey, error) {
	args := map[string]any{"scope": options.Scope}
	if options.Name != "" {
		args["name"] = options.Name
	}
	if options.ExpiresIn != 0 {
		args["expiresIn"] = seconds(options.ExpiresIn)
	}
	if options.Metadata != nil {
		args["metadata"] = options.Metadata
	}
	return k.key("apiKeys.create", args)
}

// Get gives a key without its token.
func (k APIKeys) Get(id string) (APIKey, error) {
	return k.key("apiKeys.get", map[string]any{"id": id})
}

// Rotate gives the key, of a scope that the caller may issue, a new token. Each
// older token ends after the grace period, in whole seconds, or at its own end
// if that is sooner; with zero all end at once. With a grace period a key has at
// most 5 live tokens: a rotation beyond that is a conflict.
func (k APIKeys) Rotate(id string, gracePeriod time.Duration) (APIKey, error) {
	return k.key("apiKeys.rotate", map[string]any{"id": id, "gracePeriod": seconds(gracePeriod)})
}

// Revoke ends a key for good. It is idempotent.
func (k APIKeys) Revoke(id string) (APIKey, error) {
	return k.key("apiKeys.revoke", map[string]any{"id": id})
}

// List returns keys without tokens: one page of at most Limit keys, or without a
// Limit all, as one page that is the last.
func (k APIKeys) List(filter APIKeyFilter) (APIKeyPage, error) {
	var all APIKeyPage
	paged := filter.Limit != 0
	if !paged {
		filter.Limit = 1000
	}
	for {
		var page APIKeyPage
		if err := callHost(k.host, "apiKeys.list", filter, &page); err != nil {
			return APIKeyPage{}, err
		}
		page.Keys = append(all.Keys, page.Keys...)
		if paged || page.NextCursor == "" {
			return page, nil
		}
		all, filter.Cursor = page, page.NextCursor
	}
}

func (k APIKeys) key(op string, args map[string]any) (APIKey, error) {
	var key APIKey
	err := callHost(k.host, op, args, &key)
	return key, err
}

// seconds is d in the unit of the ABI. A duration that is not a whole number of seconds goes
// out as it is, for the host to refuse.
func seconds(d time.Duration) json.Number {
	text, _ := json.Marshal(d.Seconds())
	return json.Number(text)
}

// callHost runs an operation. A nil result is left with the host.
func callHost(h host.Host, op string, args, result any) error {
	in, err := appendArgument(nil, op, "", args)
	if err != nil {
		return err
	}
	if err := h.Call(op, in); err != nil || result == nil {
		return host.Of(op, err)
	}
	return host.Of(op, host.Decode(h, result))
}
