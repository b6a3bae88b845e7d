package etcdlog_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"runner.example/state/store/commitlog"
	"runner.example/state/store/etcdlog"
)

const memberEnv = "RUNNER_TEST_LOG_SERVER"

// TestMain runs an etcd server if the environment says so.
func TestMain(m *testing.M) {
	if text := os.Getenv(memberEnv); text != "" {
		var o etcdlog.ServerOptions
		err := json.Unmarshal([]byte(text), &o)
		if err == nil {
			var s *etcdlog.Server
			if s, err = etcdlog.StartServer(context.Background(), o); err == nil {
				fmt.Println("ready")
				<-s.Stopped()
			}
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// cluster is three servers in processes of their own.
type cluster struct {
	t       *testing.T
	options []etcdlog.ServerOptions
	servers []*exec.Cmd
}

// faults are what the tests do with servers, each several times in the long form.
func faults() (all []string) {
	if os.Getenv("RUNNER_SOAK") == "" {
		return []string{"kill the leader", "kill a follower", "pause the leader"}
	}
	for range 5 {
		all = append(all, "kill the leader", "kill a follower", "pause the leader", "pause a follower", "kill the leader and a follower", "kill all")
	}
	return all
}

// fail does something with the servers, and calls meanwhile while a majority of them works.
func (c *cluster) fail(fault string, meanwhile func()) {
	c.t.Helper()
	leader := c.leader()
	follower := (leader + 1) % 3
	switch fault {
	case "kill the leader":
		c.kill(leader)
		meanwhile()
		c.start(leader)
	case "kill a follower":
		c.kill(follower)
		meanwhile()
		c.start(follower)
	case "pause the leader":
		c.signal(leader, syscall.SIGSTOP)
		meanwhile()
		c.signal(leader, syscall.SIGCONT)
	case "pause a follower":
		c.signal(follower, syscall.SIGSTOP)
		meanwhile()
		c.signal(follower, syscall.SIGCONT)
	case "kill the leader and a follower":
		c.kill(leader)
		c.kill(follower)
		c.start(leader, follower)
	case "kill all":
		for i := range c.servers {
			c.kill(i)
		}
		c.start(0, 1, 2)
	default:
		c.t.Fatalf("there is no fault %q", fault)
	}
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, options: options(t, t.TempDir(), 3), servers: make([]*exec.Cmd, 3)}
	t.Cleanup(func() {
		for i := range c.servers {
			c.kill(i)
		}
	})
	c.start(0, 1, 2)
	return c
}

// addresses returns the addresses of all servers, that of server i first.
func (c *cluster) addresses(i int) (all []string) {
	for k := range c.options {
		all = append(all, c.options[(i+k)%len(c.options)].ClientURL)
	}
	return all
}

// start starts servers, and waits until they are ready.
func (c *cluster) start(servers ...int) {
	c.t.Helper()
	var ready []*bufio.Reader
	for _, i := range servers {
		text, err := json.Marshal(c.options[i])
		if err != nil {
			c.t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), memberEnv+"="+string(text))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			c.t.Fatal(err)
		}
		c.servers[i] = cmd
		ready = append(ready, bufio.NewReader(out))
	}
	for i, r := range ready {
		if line, err := r.ReadString('\n'); line != "ready\n" {
			c.t.Fatalf("server %d: %q, %v", servers[i], line, err)
		}
	}
}

func (c *cluster) signal(i int, s syscall.Signal) {
	if err := c.servers[i].Process.Signal(s); err != nil {
		c.t.Error(err)
	}
}

func (c *cluster) kill(i int) {
	if c.servers[i] != nil {
		_ = c.servers[i].Process.Kill()
		_ = c.servers[i].Wait()
		c.servers[i] = nil
	}
}

// leader returns the server that leads the others.
func (c *cluster) leader() int {
	c.t.Helper()
	client, err := etcdlog.Dial(c.addresses(0), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	for range 100 {
		for i, o := range c.options {
			ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
			status, err := client.Etcd().Status(ctx, o.ClientURL)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				return i
			}
		}
	}
	c.t.Fatal("no server leads")
	return 0
}

// progress counts what writers have done.
type progress struct {
	done  *atomic.Int64
	moved chan struct{} // has an element when done has changed
}

func newProgress() progress { return progress{new(atomic.Int64), make(chan struct{}, 1)} }

func (p progress) add() {
	p.done.Add(1)
	select {
	case p.moved <- struct{}{}:
	default:
	}
}

// more waits until so many more are done.
func (p progress) more(t *testing.T, count int64) {
	t.Helper()
	late := time.After(2 * time.Minute)
	for want := p.done.Load() + count; p.done.Load() < want; {
		select {
		case <-p.moved:
		case <-late:
			t.Fatalf("%d of %d are done after two minutes", p.done.Load(), want)
		}
	}
}

// writers append entries on all nodes until stop is called. Each appends the next one when it got
// the one before.
type writers struct {
	nodes []*node
	stop  context.CancelFunc
	ended sync.WaitGroup
	progress
	seen    sync.Mutex
	last    time.Time     // when an entry of any writer arrived
	longest time.Duration // without one
	batches []uint64      // that each writer got
}

func (c *cluster) write(seed uint64) *writers {
	ctx, stop := context.WithCancel(context.Background())
	w := &writers{stop: stop, progress: newProgress(), last: time.Now(), batches: make([]uint64, len(c.servers))}
	for i := range c.servers {
		n := open(c.t, c.addresses(i), 0)
		w.nodes = append(w.nodes, n)
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		proposer := random.Uint64()
		w.ended.Go(func() { n.askTip(ctx) })
		w.ended.Go(func() {
			at := 0
			for batch := uint64(1); ctx.Err() == nil; batch++ {
				entry := make([]byte, 16, 16<<10)
				binary.BigEndian.PutUint64(entry, uint64(i))
				binary.BigEndian.PutUint64(entry[8:], batch)
				entry = entry[:16+random.IntN(cap(entry)-16)]
				for !n.append(ctx, commitlog.ID{Proposer: proposer, Batch: batch}, entry, &at) {
					if ctx.Err() != nil {
						return
					}
				}
				w.batches[i] = batch
				w.arrived()
			}
		})
	}
	return w
}

// askTip asks for the tip again and again, as a store does.
func (n *node) askTip(ctx context.Context) {
	ticks := time.NewTicker(500 * time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		asked, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, _ = n.Tip(asked) // a server may not answer
		cancel()
	}
}

// append appends an entry, and reports whether it arrived within a second. at is where the node's
// entries were not searched yet.
func (n *node) append(ctx context.Context, id commitlog.ID, entry []byte, at *int) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = n.Append(ctx, id, entry) // after an error it may have been appended
	for {
		n.mu.Lock()
		got, grown := n.got[*at:], n.grown
		n.mu.Unlock()
		for _, d := range got {
			*at++
			if d.entry[:16] == string(entry[:16]) {
				return true
			}
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return false
		}
	}
}

func (w *writers) arrived() {
	w.add()
	w.seen.Lock()
	defer w.seen.Unlock()
	w.longest = max(w.longest, time.Since(w.last))
	w.last = time.Now()
}

// gap returns the longest time without an entry since the last call.
func (w *writers) gap() time.Duration {
	w.seen.Lock()
	defer w.seen.Unlock()
	longest := max(w.longest, time.Since(w.last))
	w.longest = 0
	return longest
}

// check stops the writers and compares what the nodes got.
func (w *writers) check(t *testing.T) {
	t.Helper()
	w.stop()
	w.ended.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tip, err := w.nodes[0].Tip(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]delivered
	for _, n := range w.nodes {
		got := n.wait(t, func(got []delivered) bool { return len(got) > 0 && got[len(got)-1].revision >= tip })
		// What was under way when the writers stopped may be appended later.
		all = append(all, slices.DeleteFunc(slices.Clone(got), func(d delivered) bool { return d.revision > tip }))
	}
	next := make([]uint64, len(w.nodes))
	revision := uint64(0)
	for _, d := range all[0] {
		if d.revision <= revision {
			t.Fatalf("revision %d comes after %d", d.revision, revision)
		}
		revision = d.revision
		writer, batch := binary.BigEndian.Uint64([]byte(d.entry)), binary.BigEndian.Uint64([]byte(d.entry[8:]))
		if next[writer]++; batch != next[writer] {
			t.Fatalf("batch %d of writer %d is in the place of %d", batch, writer, next[writer])
		}
	}
	for i := range all {
		if !slices.Equal(all[i], all[0]) {
			t.Errorf("node %d got %d entries, node 0 got %d, and they differ", i, len(all[i]), len(all[0]))
		}
		if next[i] < w.batches[i] {
			t.Errorf("%d batches of writer %d had arrived, and %d are in the log", w.batches[i], i, next[i])
		}
	}
	t.Logf("%d entries", len(all[0]))
}

// No entry that arrived is lost, doubled or moved by faults of the servers.
func TestFaultsOfServersLoseNoEntry(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := startCluster(t)
	w := c.write(seed)
	w.more(t, 100)
	for _, fault := range faults() {
		w.gap()
		c.fail(fault, func() { w.more(t, 20) })
		w.more(t, 100)
		t.Logf("%s: %s without an entry, %d entries in all", fault, w.gap().Round(10*time.Millisecond), w.done.Load())
	}
	w.check(t)
}
