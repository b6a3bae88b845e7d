package admin

import (
	"net"
	"time"

	"runner.example/internal/system/socket"
)

// continueTimeout is how long an upload waits for the server to ask for its contents. A server takes longer than a moment
// if other uploads are running; one that never asks, as behind some proxies, gets them after this time.
const continueTimeout = 15 * time.Second

// answeredConn is a connection to a server that may answer before it has read a request, and close its end. A write
// fails then, although the answer has arrived: it discards the rest of the request instead. If there is no answer, the
// read that follows has the error.
type answeredConn struct{ net.Conn }

func (c answeredConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if socket.Broken(err) {
		return len(b), nil
	}
	return n, err
}
