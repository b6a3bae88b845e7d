package node

import (
	"context"
	"fmt"
	"net"

	"runner.example/node/admin/server"
	"runner.example/node/app"
)

// remote is the admin listener.
type remote struct {
	server   *server.RemoteServer
	listener net.Listener
}

// openRemote opens the admin listener; nil without one. It answers when the node serves.
func (n *Node) openRemote(a *app.App) (*remote, error) {
	opt := a.Config.Admin
	if opt.Listen == "" {
		return nil, nil
	}
	if opt.Certificate == nil {
		var err error
		if opt.Certificate, err = server.OwnCertificate(a.Data); err != nil {
			return nil, err
		}
	}
	ln, err := net.Listen("tcp", opt.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s, set by [admin] listen: %w", opt.Listen, err)
	}
	r := &remote{listener: ln, server: server.NewRemoteServer(n.Local, server.RemoteOptions{
		Options: opt, Auth: n.Runtime.Authenticator(), Logger: n.Logger,
	})}
	n.Local.Remote, n.Local.RemoteURL = r.server, "https://"+ln.Addr().String()
	n.Expiry.Set(adminListener, opt.Certificate)
	n.Logger.Info("admin listener opened", "url", n.Local.RemoteURL, "fingerprint", r.server.Fingerprint())
	return r, nil
}

// serve answers until shutdown.
func (r *remote) serve() error { return r.server.Serve(r.listener) }

// shutdown stops listening and waits for operations in flight. r may be nil.
func (r *remote) shutdown(ctx context.Context) error {
	if r == nil {
		return nil
	}
	return r.server.Shutdown(ctx)
}

// close closes the listener of a server that never served. r may be nil.
func (r *remote) close() {
	if r != nil {
		_ = r.listener.Close()
	}
}
