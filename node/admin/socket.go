package admin

import (
	"context"
	"errors"
	"net"
	"net/http"

	"runner.example/internal/system/adminsocket"
)

// SocketName is the name of the socket in the data directory, or of a link to the socket.
const SocketName = "runner.sock"

// ErrNoServer means that no server answers for a data directory: the socket does not exist,
// or a server that was killed has left it.
var ErrNoServer = errors.New("no server is running on this data directory")

// Dial returns a client of the server that uses the data directory dir, once that server
// has answered. The error matches ErrNoServer when no server answers.
func Dial(ctx context.Context, dir string) (*Client, error) {
	first, err := dial(ctx, dir)
	if err != nil {
		return nil, err
	}
	_ = first.Close() // it has shown that a server accepts connections
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, dir) },
		// A kept connection may be closed just when an operation is sent on it; then it is
		// unknown whether the operation was done.
		DisableKeepAlives:     true,
		ExpectContinueTimeout: continueTimeout,
	}
	return NewClient(&peer{transport: transport, base: "http://runner/", answerTimeout: AnswerTimeout}), nil // the host has no meaning on a Unix socket
}

// dial connects to the socket of the data directory dir. The error matches ErrNoServer when
// no server answers.
func dial(ctx context.Context, dir string) (net.Conn, error) {
	conn, err := adminsocket.Dial(ctx, dir, SocketName)
	if errors.Is(err, adminsocket.ErrNone) {
		return nil, ErrNoServer
	}
	if err != nil {
		return nil, err
	}
	return answeredConn{conn}, nil
}
