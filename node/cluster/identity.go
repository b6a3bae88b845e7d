package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"runner.example/internal/atomicio"
	"runner.example/internal/fault"
	"runner.example/state/store/etcdlog"
)

// The files below <data>/cluster.
const (
	dirName      = "cluster"
	nodeFile     = "node.json"
	caFile       = "ca.pem"
	caKeyFile    = "ca-key.pem"
	certFile     = "cert.pem"
	keyFile      = "key.pem"
	etcdDir      = "etcd"
	snapshotName = "snapshot"
)

// Role says whether a node takes part in decisions.
type Role string

const (
	// Voter nodes decide commits: a majority of them must be reachable.
	Voter Role = "voter"
	// Edge nodes follow, and commit through the voters.
	Edge Role = "edge"
)

// Peer is a node as the others know it.
type Peer struct {
	Name string `json:"name"`
	Role Role   `json:"role"`
	// Address is where it listens for other nodes, host:port.
	Address string `json:"address"`
}

// identity is what a node knows of itself without the others. It is stored in nodeFile.
type identity struct {
	// Cluster is the id of the cluster.
	Cluster string `json:"cluster"`
	Peer
	// Bootstrap: the node was made by Init, and its server has not begun a log yet.
	Bootstrap bool `json:"founded,omitempty"`
	// Endpoints are those of an etcd that runs elsewhere.
	Endpoints []string `json:"endpoints,omitempty"`
	// Left: the node has left its cluster.
	Left bool `json:"left,omitempty"`
	// Peers are the other nodes when the file was written.
	Peers []Peer `json:"peers"`
}

// files returns the paths of the files of a node's data directory.
func files(data string, name ...string) string {
	return filepath.Join(append([]string{data, dirName}, name...)...)
}

// IsNode reports whether a data directory belongs to a node.
func IsNode(data string) (bool, error) {
	_, err := os.Stat(files(data, nodeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// readIdentity reads what Init or Join has written.
func readIdentity(data string) (*identity, error) {
	path := files(data, nodeFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "%q is not the data directory of a node", data).
			WithHint("name the data directory of the node with --data")
	}
	if err != nil {
		return nil, fmt.Errorf("read what the node is: %w", err)
	}
	id := &identity{}
	if err = json.Unmarshal(text, id); err == nil {
		err = id.check()
	}
	if err != nil {
		return nil, fault.New(fault.Invalid,
			"the file %q is damaged (%v): restore it from a copy, or remove the data directory and join again", path, err)
	}
	return id, nil
}

// check returns what is not valid in an identity.
func (id *identity) check() error {
	switch {
	case id.Cluster == "":
		return errors.New("the id of the cluster is missing")
	case id.Role != Voter && id.Role != Edge:
		return fmt.Errorf("the role %q is not valid", id.Role)
	}
	return cmp.Or(checkName(id.Name), checkListen(id.Address))
}

// write stores the identity durably.
func (id *identity) write(data string) error {
	if err := os.MkdirAll(files(data), 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return err
	}
	return atomicio.WriteFile(files(data, nodeFile), append(text, '\n'))
}

// tlsFiles names the certificate files that the etcd server and client of a node use.
func tlsFiles(data string) *etcdlog.TLS {
	return &etcdlog.TLS{CertFile: files(data, certFile), KeyFile: files(data, keyFile), CAFile: files(data, caFile)}
}
