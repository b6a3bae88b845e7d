package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/internal/level"
	"runner.example/state/store"
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
		return Peer{}, fault.New(fault.Conflict,
			"the data directory %q belongs to a node already: run runner cluster dissolve first", data)
	}
	if err := opt.checkEndpoints(); err != nil {
		return Peer{}, err
	}
	id := &identity{Cluster: ids.New(clock.System()), Bootstrap: true, Endpoints: opt.Endpoints}
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
		return putRecord(tx, newRecord(id.Peer, c.cert, level.Known()))
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
			return p, fault.New(fault.Invalid,
				"--listen is missing: the address at which the other nodes reach this one, such as 10.0.0.2:%d", firstPort)
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
			return fmt.Errorf("this machine cannot listen on %s, which is a port of the node at %s: %w",
				nextPort(p.Address, i), p.Address, err)
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
	// It has no place in a shared log: the next cluster begins with its own.
	if _, err := st.Update(ctx, deleteRecords); err != nil {
		return Peer{}, err
	}
	if err := st.SetNode(false); err != nil {
		return Peer{}, err
	}
	return id.Peer, errors.Join(os.RemoveAll(files(data)), st.Close())
}
