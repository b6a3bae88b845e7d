// Package etcdlog is the log of a cluster: all nodes append entries to it, and each node gets all
// of them in the same order. It is kept by etcd, in servers that run inside of some nodes or that
// an operator runs.
//
//	log/<proposer>/<batch>   an entry, 16 hexadecimal digits each
//	tip                      written with each entry
//	cluster                  the id of the cluster that the log belongs to
//	owner/<lease>            the candidates for the background work; the oldest is its owner
//
// An entry is put only if its key does not exist, so it may be appended again when it is not known
// whether it was. The revision of the put is the place of the entry in the log. etcd answers when a
// majority of its servers has synced the entry to its disk. Truncate deletes old entries.
package etcdlog
