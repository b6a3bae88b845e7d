package etcdlog_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"runner.example/state/store/etcdlog"
)

// freeAddresses returns addresses with free ports, also for a server that starts again. Each call has a host
// of loopback to itself: it is as good as a random port, and no outbound connection uses its ports.
func freeAddresses(t *testing.T, scheme string, count int) (all []string) {
	t.Helper()
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(255), 1+rand.IntN(254))
	for i := range count {
		all = append(all, fmt.Sprintf("%s://%s:%d", scheme, host, 2379+i))
	}
	return all
}

// options returns the options of so many servers of a new cluster on free ports.
func options(t *testing.T, dir string, servers int) (all []etcdlog.ServerOptions) {
	t.Helper()
	addresses := freeAddresses(t, "http", 2*servers)
	var members []etcdlog.Member
	for i := range servers {
		members = append(members, etcdlog.Member{Name: fmt.Sprintf("n%d", i+1), PeerURL: addresses[servers+i]})
	}
	for i, m := range members {
		all = append(all, etcdlog.ServerOptions{
			Dir: filepath.Join(dir, m.Name), Self: m, Members: members, ClientURL: addresses[i],
			Election: time.Second, ReadyWait: time.Minute,
		})
	}
	return all
}
