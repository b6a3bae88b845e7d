package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"

	"runner.example/backup"
	"runner.example/internal/atomicio"
	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/store"
	"runner.example/store/datadir"
)

// firstPort is where free ports are looked for when no address is set.
const firstPort = 9400

// Init makes a data directory, which no process uses, the first node of a new cluster: a voter. Its
// data stays. It is created if it does not exist.
func Init(ctx context.Context, data string, opt Options) (Peer, error) {
	switch is, err := IsNode(data); {
	case err != nil:
		return Peer{}, err
	case is:
		return Peer{}, fault.New(fault.Conflict, "the data directory %q belongs to a node already: run runner cluster dissolve first", data)
	}
	if err := opt.checkEndpoints(); err != nil {
		return Peer{}, err
	}
	id := &identity{Cluster: strings.ToLower(ulid.MustNew(ulid.Now(), rand.Reader).String()), Bootstrap: true, Endpoints: opt.Endpoints}
	var err error
	if id.Peer, err = newPeer(Voter, opt, ""); err != nil {
		return Peer{}, err
	}
	a, err := newCA(id.Cluster)
	if err != nil {
		return Peer{}, err
	}
	c := credentials{ca: a.certPEM()}
	if c.caKey, err = a.keyPEM(); err != nil {
		return Peer{}, err
	}
	var request []byte
	if c.key, request, err = newCSR(id.Name); err != nil {
		return Peer{}, err
	}
	if c.cert, err = a.sign(id.Peer, request); err != nil {
		return Peer{}, err
	}
	st, err := store.Open(store.Options{Dir: data})
	if err != nil {
		return Peer{}, err
	}
	defer st.Close()
	if err := c.write(data); err != nil {
		return Peer{}, err
	}
	_, err = st.Update(ctx, func(tx *store.Tx) error {
		if err := deleteRecords(tx); err != nil { // of a cluster that it was restored from
			return err
		}
		if err := tx.Set([]byte(keyCluster), []byte(id.Cluster)); err != nil {
			return err
		}
		return putRecord(tx, newRecord(id.Peer, c.cert))
	})
	if err != nil {
		return Peer{}, err
	}
	if err := id.write(data); err != nil { // with it, the directory is that of a node, also after a crash
		return Peer{}, err
	}
	return id.Peer, errors.Join(st.SetNode(true), st.Close())
}

// newPeer returns the node that the settings describe. other is the address of a node of the
// cluster, or empty.
func newPeer(role Role, opt Options, other string) (p Peer, err error) {
	p = Peer{Name: opt.Name, Role: role, Address: opt.Listen}
	if p.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return p, err
		}
		p.Name, _, _ = strings.Cut(strings.ToLower(host), ".")
	}
	if err := checkName(p.Name); err != nil {
		return p, fmt.Errorf("%w: set one with --name", err)
	}
	if p.Address == "" {
		if host, _, _ := net.SplitHostPort(other); other != "" && !net.ParseIP(host).IsLoopback() {
			return p, fault.New(fault.Invalid, "--listen is missing: the address at which the other nodes reach this one, such as 10.0.0.2:%d", firstPort)
		}
		if p.Address, err = freeAddress(firstPort); err != nil {
			return p, err
		}
	}
	if err := checkListen(p.Address); err != nil {
		return p, err
	}
	if err := checkPorts(p, len(opt.Endpoints) > 0); err != nil {
		return p, fault.Wrap(err, fault.Invalid, "%v: name another one with --listen", err)
	}
	return p, nil
}

// freeAddress returns an address on this machine with three free ports, from first on.
func freeAddress(first int) (string, error) {
	for port := first; port < firstPort+maxPorts; port += portsPerNode {
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if free(address) {
			return address, nil
		}
	}
	return "", fault.New(fault.Unavailable, "no three free ports from %d on: choose an address with --listen", firstPort)
}

// maxPorts is among how many ports free ones are looked for.
const maxPorts = 3000

// portsPerNode is how many ports a node uses.
const portsPerNode = 3

func free(address string) bool { return checkPorts(Peer{Role: Voter, Address: address}, false) == nil }

// checkPorts returns an error if this machine cannot listen on the ports of a node. Only a voter whose
// cluster has no other etcd listens on all of them.
func checkPorts(p Peer, otherEtcd bool) error {
	ports := portsPerNode
	if p.Role != Voter || otherEtcd {
		ports = 1
	}
	for i := range ports {
		ln, err := net.Listen("tcp", nextPort(p.Address, i))
		if err != nil {
			if op, ok := errors.AsType[*net.OpError](err); ok {
				err = op.Err
			}
			return fmt.Errorf("this machine cannot listen on %s, which is a port of the node at %s: %w", nextPort(p.Address, i), p.Address, err)
		}
		_ = ln.Close()
	}
	return nil
}

// portsOverlap reports whether two nodes would use the same port.
func portsOverlap(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	first, _ := strconv.Atoi(portA)
	second, _ := strconv.Atoi(portB)
	return sameHost(hostA) == sameHost(hostB) && max(first, second)-min(first, second) < portsPerNode
}

// deleteRecords deletes what a cluster has stored about itself.
func deleteRecords(tx *store.Tx) error {
	var keys [][]byte
	for item, err := range tx.Scan([]byte("cluster/"), nil, false) {
		if err != nil {
			return err
		}
		keys = append(keys, append([]byte(nil), item.Key...))
	}
	for _, key := range keys {
		if err := tx.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

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
		return Peer{}, fault.New(fault.Conflict, "the data directory %q is not empty: a node begins with the data of the cluster, so name a new directory with --data", opt.Data)
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
	first := newCaller(joining([32]byte(t.Fingerprint)))
	defer first.close()
	var answer joinAnswer
	for {
		answer, err = call[joinAnswer](ctx, first, t.Address, opJoin, joinRequest{Secret: t.Secret, Peer: self, CSR: request})
		if err == nil {
			break
		}
		// The ports may be those of a node that does not run now.
		if opt.Listen != "" || fault.CodeOf(err) != fault.Conflict || !strings.Contains(fault.Of(err).Detail, self.Address) {
			return Peer{}, err
		}
		_, port, _ := net.SplitHostPort(self.Address)
		used, _ := strconv.Atoi(port)
		if self.Address, err = freeAddress(used + portsPerNode); err != nil {
			return Peer{}, err
		}
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
	peers := newCaller(trusted.client())
	defer peers.close()
	err = receiveSnapshot(ctx, peers, t.Address, opt.Progress, backup.RestoreOptions{
		Dir: opt.Data, Pepper: pepper, KeepPepper: opt.Pepper != "",
		Complete: func(dir string) error {
			return errors.Join(c.write(dir), id.write(dir), datadir.SetNode(dir, true))
		},
	})
	if err != nil {
		return Peer{}, fmt.Errorf("%w (the invitation was used: before the next try, remove the node with runner cluster leave %s, and make another invitation)", err, self.Name)
	}
	return self, nil
}

// joinDir returns the path of the directory in which Join keeps the pepper until there is a data
// directory. After a crash the next Join or Start removes it.
func joinDir(data string) string {
	return filepath.Join(filepath.Dir(data), "."+filepath.Base(data)+"-joining")
}

// receiveSnapshot makes a data directory from a backup of the node at address.
func receiveSnapshot(ctx context.Context, c *caller, address string, progress io.Writer, opt backup.RestoreOptions) error {
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

// Dissolve turns the data directory of a node, which no process uses, back into a standalone one. Its rows, keys and
// releases stay. The other nodes are not asked, and go on without it: so it is for the last one, or
// for a cluster that has lost its majority.
func Dissolve(ctx context.Context, data string) (Peer, error) {
	id, err := readIdentity(data)
	if err != nil {
		return Peer{}, err
	}
	st, err := store.Open(store.Options{Dir: data, Node: true})
	if err != nil {
		return Peer{}, err
	}
	defer st.Close()
	id.Left = true
	if err := id.write(data); err != nil { // no server may follow the log from here on, also after a crash
		return Peer{}, err
	}
	if _, err := st.Update(ctx, deleteRecords); err != nil { // it has no place in a shared log: the next cluster begins with its own
		return Peer{}, err
	}
	if err := st.SetNode(false); err != nil {
		return Peer{}, err
	}
	return id.Peer, errors.Join(os.RemoveAll(files(data)), st.Close())
}
