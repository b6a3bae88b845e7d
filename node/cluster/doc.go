// Package cluster makes this machine a node of a cluster: several runners that share one log of
// commits, and so have the same rows, keys and releases.
//
// # What a node has
//
//	<data>/cluster/node.json      its name, its role, and where the other nodes are
//	<data>/cluster/ca.pem         the certificate of the cluster's own CA
//	<data>/cluster/ca-key.pem     its key; voters have it, edge nodes do not
//	<data>/cluster/cert.pem       the certificate of the node, and key.pem its key
//	<data>/cluster/etcd/          the log; voters have it, if etcd runs in the process
//	<data>/cluster/snapshot/      a received backup that is about to replace the store
//
// A voter runs an etcd server, and a majority of the voters decides each commit. An edge node is
// a client of their servers. Both do all else.
//
// The store has the members under keys that begin with "cluster/": the nodes, the invitations
// that were not used, and the owner of the background work.
//
// # What nodes say to each other
//
// A node listens on three ports: [cluster] listen for requests of other nodes (listener.go, wire.go), the next
// port for etcd clients, and the one after it for etcd servers. All of it is TLS with
// certificates of the cluster's CA on both sides. A machine that joins has none yet: it
// proves that it was invited by a secret, and knows the CA by the fingerprint in the
// invitation.
//
// # Goroutines
//
// Start runs the etcd server of a voter in the background. Serve starts the goroutines that poll the other
// nodes and campaign for ownership; StopServing ends them and waits. Order: Start, StoreOptions,
// store.Open, CheckLog, Serve; at shutdown StopServing, Store.Close, Close. Any goroutine may call the other
// methods after Serve.
package cluster
