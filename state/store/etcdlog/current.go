package etcdlog

import (
	"context"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/connectivity"

	"runner.example/internal/wait"
)

const (
	// probeEvery is the pause between two questions whether the current server works.
	probeEvery = 500 * time.Millisecond
	// probeTime is how long it may take to answer. After each server has failed once, it is doubled for
	// each failure, up to probesDoubled times: the servers may be slow.
	probeTime     = time.Second
	probesDoubled = 2
	// leaderlessProbes is how many questions a server may leave without an answer while it runs: during
	// an election the others do not know a leader either.
	leaderlessProbes = 3
	// changePause is the pause after another server was chosen, before that one is left too.
	changePause = 100 * time.Millisecond
)

// current is the server that a client uses: one at a time, so that a client which finds that its server
// hangs leaves it with everything. A connection to a server that hangs counts as established for 11 s.
type current struct {
	etcd *clientv3.Client

	mu        sync.Mutex
	addresses []string // of the servers
	preferred string   // is used when it works, and is the first one if it is in addresses
	at        int      // which of addresses is used
	failures  int      // since a server has worked
	left      chan struct{}
}

func newCurrent(etcd *clientv3.Client, addresses []string) *current {
	return &current{etcd: etcd, addresses: addresses, preferred: addresses[0], left: make(chan struct{})}
}

// all returns the addresses of all servers.
func (c *current) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.addresses)
}

// address returns the address that is used, and a channel that is closed when it is not any more.
func (c *current) address() (string, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addresses[c.at], c.left
}

// set sets the addresses. The one that is used stays if it is one of them.
func (c *current) set(addresses []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	addresses = slices.Clone(addresses)
	if i := slices.Index(addresses, c.preferred); i > 0 {
		addresses[0], addresses[i] = addresses[i], addresses[0]
	}
	used := c.addresses[c.at]
	c.addresses = addresses
	if c.at = slices.Index(addresses, used); c.at < 0 {
		c.useLocked(0)
	}
}

func (c *current) useLocked(i int) {
	c.at = i
	c.etcd.SetEndpoints(c.addresses[i])
	close(c.left)
	c.left = make(chan struct{})
}

// leave uses another server than the one with this address.
func (c *current) leave(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.addresses[c.at] != address {
		return // it was left meanwhile
	}
	c.failures++
	if len(c.addresses) > 1 {
		c.useLocked((c.at + 1) % len(c.addresses))
	}
}

// works notes that a server works, and returns the preferred one if that is another.
func (c *current) works(address string) (preferred string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.addresses[c.at] == address {
		c.failures = 0
	}
	if c.at != 0 && c.addresses[0] == c.preferred {
		return c.preferred
	}
	return ""
}

// limit returns how long the server may take to answer.
func (c *current) limit() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return probeTime << max(0, min(c.failures-len(c.addresses), probesDoubled))
}

// probe leaves each server that does not answer, until the client is closed.
func (c *current) probe() {
	ticks := time.NewTicker(probeEvery)
	defer ticks.Stop()
	for leaderless := 0; ; {
		address, left := c.address()
		switch answers, leads := c.ask(); {
		case leads:
			leaderless = 0
			c.works(address)
		case answers && leaderless < leaderlessProbes:
			leaderless++
		default:
			leaderless = 0
			c.leave(address)
		}
		select {
		case <-c.etcd.Ctx().Done():
			return
		case <-left:
			leaderless = 0
		case <-ticks.C:
		}
	}
}

// ask reports whether the server answers, and whether it has a leader.
func (c *current) ask() (answers, leads bool) {
	limit := c.limit()
	get := func(options ...clientv3.OpOption) error {
		ctx, cancel := context.WithTimeout(c.etcd.Ctx(), limit)
		defer cancel()
		_, err := c.etcd.Get(ctx, keyTip, append(options, clientv3.WithCountOnly())...)
		return err
	}
	if get() == nil {
		return true, true
	}
	limit /= 2
	return get(clientv3.WithSerializable()) == nil, false
}

// connect leaves each server that cannot be connected to, until the client is closed.
func (c *current) connect() {
	connection := c.etcd.ActiveConnection()
	for ctx := c.etcd.Ctx(); ctx.Err() == nil; {
		address, _ := c.address()
		state := connection.GetState()
		if state != connectivity.TransientFailure {
			connection.WaitForStateChange(ctx, state)
			continue
		}
		c.leave(address)
		_ = wait.For(ctx, changePause)
	}
}

// returnToPreferred uses the preferred server again if that is a voter that knows a leader.
func (c *current) returnToPreferred(ctx context.Context) {
	used, _ := c.address()
	preferred := c.works(used)
	if preferred == "" {
		return
	}
	status, err := c.etcd.Status(ctx, preferred)
	if err != nil || status.IsLearner || status.Leader == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at != 0 && c.addresses[0] == preferred {
		c.useLocked(0)
	}
}
