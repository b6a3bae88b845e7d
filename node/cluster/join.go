package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"runner.example/internal/atomicio"
	"runner.example/internal/fault"
	"runner.example/internal/level"
	"runner.example/internal/secret"
	"runner.example/node/backup"
	"runner.example/state/store/datadir"
)

// JoinOptions configure Join.
type JoinOptions struct {
	Options
	// Data is the data directory to create. It must be empty if it exists.
	Data string
	// Pepper is the file in which the node keeps the pepper; empty: one in the data directory.
	Pepper string
	// Progress gets a copy of the bytes that are received; may be nil.
	Progress io.Writer
}

// Join makes a new data directory a node, with an invitation. The runner that serves it becomes
// part of the cluster.
func Join(ctx context.Context, invitation secret.Text, opt JoinOptions) (Peer, error) {
	t, err := parseToken(invitation.Reveal())
	if err != nil {
		return Peer{}, err
	}
	path, err := backup.CheckTarget(opt.Data)
	switch { // before the invitation is used
	case errors.Is(err, backup.ErrNotEmpty):
		return Peer{}, fault.New(fault.Conflict,
			"the data directory %q is not empty: a node begins with the data of the cluster, so name a new directory with --data",
			opt.Data)
	case err != nil:
		return Peer{}, err
	}
	if err := opt.checkEndpoints(); err != nil {
		return Peer{}, err
	}
	self, err := newPeer(t.Role, opt.Options, t.Address)
	if err != nil {
		return Peer{}, err
	}
	work := joinDir(path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.RemoveAll(work), os.Mkdir(work, 0o700)); err != nil {
		return Peer{}, fmt.Errorf("make the data directory %q: %w", opt.Data, err)
	}
	defer os.RemoveAll(work)
	key, request, err := newCSR(self.Name)
	if err != nil {
		return Peer{}, err
	}
	first := newPeerClient(joining([32]byte(t.Fingerprint)))
	defer first.close()
	answer, err := requestJoin(ctx, first, t, &self, request, opt.Listen == "")
	if err != nil {
		return Peer{}, err
	}
	id := &identity{Cluster: answer.Cluster, Peer: self, Endpoints: answer.Endpoints}
	for _, p := range answer.Peers {
		if p.Name != self.Name {
			id.Peers = append(id.Peers, p)
		}
	}
	c := credentials{ca: answer.CA, caKey: answer.CAKey, cert: answer.Certificate, key: key}
	pepper := filepath.Join(work, "pepper")
	if err := os.WriteFile(pepper, answer.Pepper, 0o600); err != nil {
		return Peer{}, err
	}
	if opt.Pepper != "" {
		if err := atomicio.WriteFile(opt.Pepper, answer.Pepper); err != nil {
			return Peer{}, err
		}
	}
	trusted, err := newNodeTLS(c)
	if err != nil {
		return Peer{}, err
	}
	peers := newPeerClient(trusted.client())
	defer peers.close()
	err = receiveSnapshot(ctx, peers, t.Address, opt.Progress, backup.RestoreOptions{
		Dir: opt.Data, Pepper: pepper, KeepPepper: opt.Pepper != "",
		Complete: func(dir string) error {
			return errors.Join(c.write(dir), id.write(dir), datadir.SetNode(dir, true))
		},
	})
	if err != nil {
		return Peer{}, fmt.Errorf(
			"%w (the invitation was used: before the next try, remove the node with runner cluster leave %s, and make another invitation)",
			err, self.Name)
	}
	return self, nil
}

// requestJoin asks the node that made the invitation t to take self in. With chosen, the address of self
// was chosen by this machine: if its ports are those of a node that does not run now, requestJoin tries
// the next free ones, and sets self.Address.
func requestJoin(ctx context.Context, c *peerClient, t token, self *Peer, csr []byte, chosen bool) (joinAnswer, error) {
	for {
		answer, err := call[joinAnswer](ctx, c, t.Address, opJoin, joinRequest{
			Secret: t.Secret, Peer: *self, CSR: csr, Levels: level.Known(),
		})
		if err == nil || !chosen || fault.CodeOf(err) != fault.Conflict ||
			!strings.Contains(fault.Of(err).Detail, self.Address) {
			return answer, err
		}
		_, port, _ := net.SplitHostPort(self.Address)
		used, _ := strconv.Atoi(port)
		if self.Address, err = freeAddress(used + portsPerNode); err != nil {
			return answer, err
		}
	}
}

// joinDir returns the path of the directory in which Join keeps the pepper until there is a data
// directory. After a crash the next Join or Start removes it.
func joinDir(data string) string {
	return filepath.Join(filepath.Dir(data), "."+filepath.Base(data)+"-joining")
}

// receiveSnapshot makes a data directory from a backup of the node at address.
func receiveSnapshot(ctx context.Context, c *peerClient, address string, progress io.Writer,
	opt backup.RestoreOptions) error {
	body, err := c.open(ctx, address, opSnapshot, struct{}{})
	if err != nil {
		return err
	}
	defer body.Close()
	var in io.Reader = body
	if progress != nil {
		in = io.TeeReader(body, progress)
	}
	if _, err := backup.Restore(ctx, in, opt); err != nil {
		return fmt.Errorf("receive the data of the cluster from %s: %w", address, err)
	}
	return nil
}
