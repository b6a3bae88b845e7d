package hostabi

import (
	"math"
	"net/netip"
	"time"

	"runner.example/internal/fault"
	"runner.example/keystore"
)

// authority returns the authority of an operation: always the caller's.
func (c *Call) authority() keystore.Authority {
	return keystore.Authority{
		Schema:         c.Host.Schema,
		Caller:         c.Caller,
		RequestID:      c.Request.ID,
		CreatesSession: c.CreatesSession,
		Address:        addressText(c.Address),
		Work:           &c.work,
	}
}

func createAPIKey(c *Call, args *arguments) (any, error) {
	req := keystore.CreateRequest{Scope: args.text("scope")}
	req.Name, _ = args.optionalText("name")
	if lifetime, ok := args.optionalSeconds("expiresIn"); ok {
		req.ExpiresIn = &lifetime
	}
	req.Metadata = args.optionalObject("metadata")
	if err := args.end(); err != nil {
		return nil, err
	}
	key, err := c.Host.Keystore.Create(c.Tx, c.authority(), req)
	if refused := fault.CodeOf(err) == fault.Denied; c.Host.Observe != nil && (err == nil || refused) {
		if scope := c.Host.Schema.Scope(req.Scope); scope != nil {
			c.Host.Observe(scope, "", !refused)
		}
	}
	return key, err
}

func getAPIKey(c *Call, args *arguments) (any, error) {
	id := args.text("id")
	if err := args.end(); err != nil {
		return nil, err
	}
	return c.Host.Keystore.Get(c.Tx, c.authority(), id)
}

func listAPIKeys(c *Call, args *arguments) (any, error) {
	var filter keystore.Filter
	filter.Scope, _ = args.optionalText("scope")
	filter.Cursor, _ = args.optionalText("cursor")
	if limit, ok := args.optionalWhole("limit"); ok {
		if limit < 1 || limit > 1000 {
			args.wrong("member %q must be from 1 to 1000", "limit")
		}
		filter.Limit = int(limit)
	}
	if err := args.end(); err != nil {
		return nil, err
	}
	return c.Host.Keystore.List(c.Tx, c.authority(), filter)
}

func rotateAPIKey(c *Call, args *arguments) (any, error) {
	id := args.text("id")
	grace, _ := args.optionalSeconds("gracePeriod")
	if err := args.end(); err != nil {
		return nil, err
	}
	return c.Host.Keystore.Rotate(c.Tx, c.authority(), id, grace)
}

func revokeAPIKey(c *Call, args *arguments) (any, error) {
	id := args.text("id")
	if err := args.end(); err != nil {
		return nil, err
	}
	return c.Host.Keystore.Revoke(c.Tx, c.authority(), id)
}

// optionalSeconds returns a time span in whole seconds, and whether it is present. It refuses a
// longer one than a Duration can be.
func (a *arguments) optionalSeconds(name string) (time.Duration, bool) {
	const most = math.MaxInt64 / int64(time.Second)
	n, ok := a.optionalWhole(name)
	if n < -most || n > most {
		a.wrong("member %q must be at most %d seconds (292 years)", name, most)
		return 0, ok
	}
	return time.Duration(n) * time.Second, ok
}

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
