package adminsocket

import (
	"errors"
	"net"
)

// ErrNone means that there is no listener: the name does not exist, or its listener was killed.
var ErrNone = errors.New("there is no listener")

// Conn is a connection that a listener has accepted.
type Conn struct {
	net.Conn
	// User is the user of the process at the other end, as process.User returns it.
	User string
}
