// authority is decided from. It decides nothing itself.
package caller

import (
	"encoding/json"
	"net/netip"
)

// Kind is how a caller was authenticated. The zero value is Anonymous.
type Kind uint8

// The kinds of callers.
const (
	Anonymous Kind = iota // a route with auth none
	Session               // a signed-in user
	APIKey                // a machine with an API key
	System                // an operator's command
)

// String returns the name that rules and handlers see: "anonymous", "session",
// "apiKey" or "system".
func (k Kind) String() string {
	return [...]string{"anonymous", "session", "apiKey", "system"}[k]
}

// Caller is the origin of a request. Fields that its kind does not have are zero. A Caller is not
// changed after authentication and may be read by any goroutine.
type Caller struct {
	Kind   Kind
	UserID string
	Tenant string
	Roles  []string
	// SessionID is the id of a cookie session; empty for other callers.
	SessionID string
	// KeyID, Scope and Capability are set for Kind APIKey.
	KeyID      string
	Scope      string
	Capability string
	// As is the scope whose grants an anonymous caller has; empty if none.
	As string
	// Metadata is the key's JSON object; nil when it has none.
	Metadata json.RawMessage
	// Claims is the JSON object of a JWT's claims; nil for other sessions.
	Claims json.RawMessage
	// Claimed is the same as rules see it: schema.ReadClaims made it.
	Claimed map[string]any
}

// AppendIdentity appends to dst a name that identifies the caller: the key id, else the user
// id, else the address. Names of different kinds are never equal.
func (c *Caller) AppendIdentity(dst []byte, address netip.Addr) []byte {
	switch {
	case c.KeyID != "":
		return append(append(dst, 'k'), c.KeyID...)
	case c.UserID != "":
		return append(append(dst, 'u'), c.UserID...)
	}
	return AppendAddress(dst, address)
}

// AppendAddress appends the name of an address, or of its /64 for IPv6, which one customer
// usually has.
func AppendAddress(dst []byte, address netip.Addr) []byte {
	address = address.Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64) // fails for more bits than there are
		address = network.Addr()
	}
	return address.AppendTo(append(dst, 'a'))
}
