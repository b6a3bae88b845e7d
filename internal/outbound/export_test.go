package outbound

// ErrUnreachable is what an address that may not be reached fails with.
var ErrUnreachable = errUnreachable

// Control looks at an address as a socket that is about to connect does.
func (c *Client) Control(address string) error { return c.control("tcp", address, nil) }
