package node_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/internal/telemetry"
	"runner.example/keystore"
	"runner.example/node"
	"runner.example/node/admin/server"
	"runner.example/node/app"
	"runner.example/node/config"
	"runner.example/node/release"
	"runner.example/runtime"
	"runner.example/state/audit"
	"runner.example/state/entity/layout"
	"runner.example/state/jobs"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
	"runner.example/tests/guest"
)

// cluster is a number of nodes in this process whose stores share a log.
type cluster struct {
	*testing.T
	log    *storetest.Log
	pepper string
	nodes  []*clusterNode
	stores sync.Map // of the nodes, by index
	now    atomic.Int64
	// apart are the nodes that are not asked to prepare, by index.
	apart map[int]bool
}

// clusterNode is one of them. It has no app directory, and waits for a release.
type clusterNode struct {
	*cluster
	*node.Activator
	index    int
	store    *store.Store
	runtime  *runtime.Runtime
	releases *release.Releases
	keys     *keystore.Keystore
	dir      string // of the app
	// secrets says whether the secrets of a schema have values here.
	secrets atomic.Bool
	// cut: this node cannot fetch files from others.
	cut atomic.Bool
}

func newCluster(t *testing.T, n int) *cluster {
	t.Helper()
	c := &cluster{T: t, log: storetest.NewLog(), pepper: filepath.Join(t.TempDir(), "pepper"), apart: map[int]bool{}}
	for range n {
		c.add()
	}
	storetest.Own(t, c.nodes[0].store)
	for _, n := range c.nodes {
		n.begin()
	}
	return c
}

func (c *cluster) add() *clusterNode {
	c.Helper()
	n := &clusterNode{cluster: c, index: len(c.nodes), dir: c.TempDir()}
	n.secrets.Store(true)
	must := func(err error) {
		c.Helper()
		if err != nil {
			c.Fatal(err)
		}
	}
	closes := func(close func() error) {
		c.Cleanup(func() {
			if err := close(); err != nil {
				c.Error(err)
			}
		})
	}
	var err error
	n.store = c.log.Open(c.T, store.Options{Name: fmt.Sprint("node", n.index), FetchBlob: n.fetch, Clock: c.clock})
	c.stores.Store(n.index, n.store)
	storetest.CatchUp(c, n.store)
	n.keys, err = keystore.Open(c.Context(), n.store, keystore.Options{PepperFile: c.pepper})
	must(err)
	closes(n.keys.Close)
	logger := slog.New(slog.NewTextHandler(testLog{c.T, n.index}, nil))
	n.runtime, err = runtime.New(runtime.Options{Store: n.store, Keystore: n.keys, Logger: logger})
	must(err)
	closes(n.runtime.Close)
	n.releases = release.New(n.store, release.Options{Keep: 100})
	here := &node.Node{Runtime: n.runtime, Logger: logger, Local: server.NewLocal(n.store, n.keys, n.releases, jobs.Keep{}),
		Expiry: node.NewExpiry(logger, clock.System, nil)}
	a := &app.App{Dir: n.dir, Config: config.Default(), Secrets: func(names []string) (secret.Values, error) {
		if len(names) > 0 && !n.secrets.Load() {
			return secret.Values{}, fault.New(fault.Invalid, "secret %s has no value", names[0])
		}
		return secret.Values{}, nil
	}}
	n.Activator = here.NewActivator(node.Sources{
		App: a, MayWait: true, Read: func() (*app.App, error) { return a, nil }, Configure: func(telemetry.Options) {},
		PreparePeers: n.prepareOthers,
	})
	c.nodes = append(c.nodes, n)
	return n
}

// begin starts the activator.
func (n *clusterNode) begin() {
	n.Helper()
	if err := n.Start(n.Context()); err != nil {
		n.Fatal(err)
	}
	n.Cleanup(n.Begin(context.Background()))
}

// clock is a clock that is never the same, so that of two releases one is older.
func (c *cluster) clock() time.Time { return time.UnixMilli(1e12 + c.now.Add(1)) }

// fetch gets a blob from another node.
func (n *clusterNode) fetch(ctx context.Context, d store.Digest) (found io.ReadCloser, err error) {
	err = store.ErrNotFound
	if n.cut.Load() {
		return nil, err
	}
	n.stores.Range(func(index, other any) bool {
		if index != n.index {
			found, err = other.(*store.Store).LocalBlob(ctx, d)
		}
		return err != nil
	})
	return found, err
}

// testLog shows the log of a node with a failed test.
type testLog struct {
	*testing.T
	index int
}

func (l testLog) Write(line []byte) (int, error) {
	l.Logf("node %d: %s", l.index, bytes.TrimSpace(line))
	return len(line), nil
}

func (n *clusterNode) prepareOthers(ctx context.Context, id string) error {
	var failed []string
	for i, other := range n.nodes {
		if i == n.index || n.apart[i] {
			continue
		}
		if err := other.Prepare(ctx, id); err != nil {
			failed = append(failed, fmt.Sprintf("node %d: %s", i, fault.Of(err).Detail))
		}
	}
	if len(failed) > 0 {
		return fault.New(fault.Invalid, "these nodes cannot load the release: %s", strings.Join(failed, "; "))
	}
	return nil
}

var operator = release.Author{Actor: audit.ActorOf(caller.Caller{Kind: caller.System, UserID: "uid:0"}), RequestID: "01arz3ndektsv4rrffq69g5fav"}

// shop is a release whose function of that name counts the rows of Item, which has these fields.
func shop(function, fields, more string) []release.FileData {
	module := guest.Module{
		function: {guest.Operation("count", `{"from":"Item"}`), guest.RespondWithResult()},
		"add":    {guest.Operation("insert", `{"into":"Item","values":{"name":"a"}}`), guest.Respond(200, `{}`)},
	}
	text := fmt.Sprintf("app shop\n%s\nentity Item { id: id  name: string  %s }\nfunctions(auth: none, rateLimit: none) { %s()\n add() }\n", more, fields, function)
	return []release.FileData{{Name: "shop.schema", Data: []byte(text)}, {Name: "build/shop.wasm", Data: module.Wasm()}}
}

// send stores a release on a node. Others fetch its files.
func (n *clusterNode) send(files []release.FileData) (id string) {
	c := n.cluster
	c.Helper()
	for _, f := range files {
		if _, err := n.store.PutBlob(c.Context(), bytes.NewReader(f.Data)); err != nil {
			c.Fatal(err)
		}
	}
	rel, err := n.releases.Add(c.Context(), release.Describe("shop", files), nil, operator)
	if err != nil {
		c.Fatal(err)
	}
	return rel.ID
}

// activate activates a release on a node.
func (n *clusterNode) activate(id string) error {
	storetest.CatchUp(n, n.store)
	return n.Activate(n.Context(), release.Activation{ID: id, Origin: release.Deploy, By: operator})
}

func (n *clusterNode) mustActivate(id string) {
	n.Helper()
	if err := n.activate(id); err != nil {
		n.Fatal(err)
	}
}

// active returns the pointer to the active release.
func (n *clusterNode) active() (active release.Pointer) {
	n.Helper()
	err := n.store.View(context.Background(), func(tx *store.Tx) (err error) {
		active, err = release.Active(tx)
		return err
	})
	if err != nil {
		n.Fatal(err)
	}
	return active
}

// call calls a function and returns its answer, or the code of the error.
func (n *clusterNode) call(name string) string {
	answer, err := n.runtime.Call(n.Context(), runtime.FunctionCall{Name: name, Caller: operatorCaller, RequestID: operator.RequestID})
	if err != nil {
		return string(fault.CodeOf(err))
	}
	return fmt.Sprint(answer.Status, " ", answer.Code, string(answer.Body))
}

var operatorCaller = caller.Caller{Kind: caller.System, UserID: "uid:0"}

// await waits until done is true.
func (c *cluster) await(what string, done func() bool) {
	c.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.After(time.Minute); !done(); {
		select {
		case <-tick.C:
		case <-limit:
			c.Fatalf("%s: not within a minute", what)
		}
	}
}

// awaitCall waits until a call has an answer.
func (n *clusterNode) awaitCall(name, want string) {
	n.Helper()
	n.await(fmt.Sprintf("node %d: %s answers %q", n.index, name, want), func() bool { return n.call(name) == want })
}

// ready returns why the node is not ready, empty if it is.
func (n *clusterNode) notReady() string {
	if err := n.runtime.NotReady(); err != nil {
		return err.Error()
	}
	return ""
}

func TestAllNodesLoadWhatOneActivates(t *testing.T) {
	c := newCluster(t, 3)
	first, second := c.nodes[0].send(shop("one", "", "")), c.nodes[0].send(shop("two", "note: string?", ""))
	for _, n := range c.nodes {
		if got := n.notReady(); got != "no release is active" {
			t.Errorf("node %d: %q", n.index, got)
		}
		if _, err := n.Reload(t.Context()); err != nil { // it still waits
			t.Error(err)
		}
	}
	c.nodes[0].mustActivate(first)
	for _, n := range c.nodes {
		n.awaitCall("one", `200 {"count":0}`)
	}
	if got := c.nodes[1].call("add"); got != "200 {}" {
		t.Error(got)
	}
	storetest.Own(t, c.nodes[2].store)
	c.nodes[2].mustActivate(second)
	for _, n := range c.nodes {
		n.awaitCall("two", `200 {"count":1}`)
		n.awaitCall("one", "not_found")
		if got := n.notReady(); got != "" {
			t.Errorf("node %d is not ready: %s", n.index, got)
		}
	}
	// A rollback keeps the field that only the later release declares.
	c.nodes[2].mustActivate(first)
	for _, n := range c.nodes {
		n.awaitCall("one", `200 {"count":1}`)
	}
	// A node that starts later serves it at once.
	late := c.add()
	late.begin()
	late.awaitCall("one", `200 {"count":1}`)
}

func TestOfManyActivationsTheNewestIsServed(t *testing.T) {
	c := newCluster(t, 2)
	var ids []string
	for i := range 12 {
		ids = append(ids, c.nodes[0].send(shop(fmt.Sprint("f", i), fmt.Sprintf("n%d: string?", i%2), "")))
	}
	for _, id := range ids {
		c.nodes[0].mustActivate(id)
	}
	for _, n := range c.nodes {
		n.awaitCall("f11", `200 {"count":0}`)
	}
}

// The owner changes while both nodes activate: each of them may be refused, but what is active is one
// release, and both load it.
func TestTwoNodesThatActivateAtOnceServeTheSame(t *testing.T) {
	c := newCluster(t, 2)
	ids := []string{c.nodes[0].send(shop("one", "", "")), c.nodes[0].send(shop("two", "note: string?", ""))}
	c.nodes[0].mustActivate(ids[0])
	for round := range 10 {
		var all sync.WaitGroup
		for i, n := range c.nodes {
			all.Go(func() {
				if err := n.activate(ids[(round+i)%2]); err != nil && !errors.Is(err, store.ErrNotOwner) {
					t.Errorf("round %d: node %d: %v", round, i, err)
				}
			})
		}
		all.Go(func() {
			if err := c.nodes[(round+1)%2].store.BecomeOwner(t.Context()); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		storetest.CatchUp(t, c.nodes[0].store, c.nodes[1].store)
		active := c.nodes[0].active()
		if other := c.nodes[1].active(); other != active {
			t.Fatalf("round %d: the pointers are %v and %v", round, active, other)
		}
		for _, n := range c.nodes {
			if active.ID == ids[0] {
				n.awaitCall("one", `200 {"count":0}`)
			} else {
				n.awaitCall("two", `200 {"count":0}`)
			}
		}
	}
}

func TestANodeThatCannotLoadAReleaseRefusesItBeforeTheCommit(t *testing.T) {
	c := newCluster(t, 3)
	first, second := c.nodes[0].send(shop("one", "", "")), c.nodes[0].send(shop("two", "note: string?", "secret TOKEN"))
	c.nodes[0].mustActivate(first)
	c.nodes[2].secrets.Store(false)
	before := c.nodes[0].active()
	err := c.nodes[0].activate(second)
	if fault.CodeOf(err) != fault.Invalid || !strings.Contains(fmt.Sprint(err), "node 2: secret TOKEN has no value") || strings.Contains(fmt.Sprint(err), "node 1") {
		t.Errorf("the activation: %v", err)
	}
	for _, n := range c.nodes {
		if got := n.active(); got != before {
			t.Errorf("node %d: the pointer is %+v, was %+v", n.index, got, before)
		}
		n.awaitCall("one", `200 {"count":0}`)
	}
	if got := c.nodes[2].notReady(); got != "" {
		t.Error("not ready:", got)
	}
	c.nodes[2].secrets.Store(true)
	c.nodes[0].mustActivate(second)
	c.nodes[2].awaitCall("two", `200 {"count":0}`)
}

func TestANodeThatCannotLoadTheActiveReleaseIsNotReady(t *testing.T) {
	c := newCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	first, third := c.nodes[0].send(shop("one", "", "")), c.nodes[0].send(shop("three", "", ""))
	a.mustActivate(first)
	b.awaitCall("one", `200 {"count":0}`)

	c.apart[1] = true // it could not be asked
	b.cut.Store(true)
	a.mustActivate(c.nodes[0].send(shop("two", "note: string?", "")))
	c.await("node 1 is not ready", func() bool { return b.notReady() == "the active release cannot be read: the log says why" })
	if got := b.call("one"); !strings.HasPrefix(got, "503 unavailable") {
		t.Errorf("the old release answers on changed rows: %s", got)
	}
	if got := a.notReady(); got != "" {
		t.Error("the other node is not ready:", got)
	}
	b.cut.Store(false) // it tries again by itself
	b.awaitCall("two", `200 {"count":0}`)
	c.await("node 1 is ready", func() bool { return b.notReady() == "" })

	if err := b.Prepare(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	b.cut.Store(true)
	a.mustActivate(c.nodes[0].send(shop("four", "note: string?", "")))
	c.await("node 1 is not ready", func() bool { return b.notReady() != "" })
	a.mustActivate(third) // another one ends it too
	b.awaitCall("three", `200 {"count":0}`)
	if got := b.notReady(); got != "" {
		t.Error("not ready:", got)
	}
}

func TestAReloadOfAFollowerChangesNothingInTheStore(t *testing.T) {
	c := newCluster(t, 2)
	c.nodes[0].mustActivate(c.nodes[0].send(shop("one", "", "")))
	b := c.nodes[1]
	b.awaitCall("one", `200 {"count":0}`)
	before := b.store.Health().Applied
	done, err := b.Reload(t.Context())
	if err != nil || done.Release != b.active().ID {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := b.store.Health().Applied; got != before {
		t.Errorf("%d commits of a reload", got-before)
	}
	b.awaitCall("one", `200 {"count":0}`)
}

func TestTheNextOwnerEndsAnActivationThatDidNotEnd(t *testing.T) {
	c := newCluster(t, 2)
	c.nodes[0].mustActivate(c.nodes[0].send(shop("one", "", "")))
	b := c.nodes[1]
	b.awaitCall("one", `200 {"count":0}`)
	// The owner stops writers for the last moment of an activation, and dies.
	_, err := c.nodes[0].store.Update(t.Context(), func(tx *store.Tx) error {
		raw, err := tx.Get([]byte(layout.KeyGeneration))
		if err != nil {
			return err
		}
		return tx.Set([]byte(layout.KeyGeneration), binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(raw)|1<<63))
	})
	if err != nil {
		t.Fatal(err)
	}
	storetest.CatchUp(b, b.store)
	if got := b.call("add"); !strings.HasPrefix(got, "503 unavailable") {
		t.Fatalf("while writers are stopped: %s", got)
	}
	storetest.Own(t, b.store)
	for _, n := range c.nodes {
		n.awaitCall("add", "200 {}")
	}
}

func TestPrepareNamesWhatIsMissing(t *testing.T) {
	c := newCluster(t, 2)
	id := c.nodes[0].send(shop("one", "", ""))
	c.nodes[1].cut.Store(true)
	if err := c.nodes[1].Prepare(t.Context(), id); err == nil {
		t.Error("a release without its files is prepared")
	} else if fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.Of(err).Detail, "build/shop.wasm") {
		t.Error(err)
	}
	c.nodes[1].cut.Store(false)
	if err := c.nodes[1].Prepare(t.Context(), id); err != nil {
		t.Error(err)
	}
	if err := c.nodes[1].Prepare(t.Context(), strings.Repeat("0", 64)); fault.CodeOf(err) != fault.NotFound {
		t.Error(err)
	}
}

// write writes the files of a release to the app directory of the node.
func (n *clusterNode) write(files []release.FileData) {
	n.Helper()
	for _, f := range files {
		path := filepath.Join(n.dir, f.Name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, f.Data, 0o600)
		}
		if err != nil {
			n.Fatal(err)
		}
	}
}

func TestOnlyTheOwnerServesItsAppDirectory(t *testing.T) {
	c := &cluster{T: t, log: storetest.NewLog(), pepper: filepath.Join(t.TempDir(), "pepper"), apart: map[int]bool{}}
	a, b := c.add(), c.add()
	a.write(shop("one", "", ""))
	b.write(shop("two", "note: string?", ""))
	b.begin() // nobody owns the cluster yet
	if got := b.notReady(); got != "no release is active" {
		t.Errorf("without an owner: %q", got)
	}
	a.begin()
	storetest.Own(t, a.store)
	for _, n := range c.nodes {
		n.awaitCall("one", `200 {"count":0}`)
	}
	// Another owner keeps what is active.
	storetest.Own(t, b.store)
	if _, err := b.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.nodes {
		n.awaitCall("two", `200 {"count":0}`)
	}
}

func TestANodeThatStartsWithoutTheActiveReleaseIsNotReady(t *testing.T) {
	c := newCluster(t, 1)
	c.nodes[0].mustActivate(c.nodes[0].send(shop("one", "", "secret TOKEN")))
	late := c.add()
	late.secrets.Store(false)
	late.cut.Store(true)
	late.begin()
	if got := late.notReady(); got != "the active release cannot be read: the log says why" {
		t.Errorf("without the files: %q", got)
	}
	late.cut.Store(false)
	c.await("another reason", func() bool { return late.notReady() == "the active release cannot be loaded: the log says why" })
	late.secrets.Store(true)
	if _, err := late.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	late.awaitCall("one", `200 {"count":0}`)
	if got := late.notReady(); got != "" {
		t.Error("not ready:", got)
	}
}

// A release that an older version has activated has an origin that a new release cannot have.
func TestAReleaseThatAnOlderVersionAcceptedIsServedAfterAnUpgrade(t *testing.T) {
	c := newCluster(t, 1)
	n := c.nodes[0]
	old := n.send(shop("one", "", `outbound { allow: ["https://api.example.com:99999"] }`))
	n.mustActivate(n.send(shop("other", "", "")))
	if err := n.activate(old); err == nil || !strings.Contains(err.Error(), "the schema is invalid") {
		t.Fatalf("a new release is not refused: %v", err)
	}
	if _, err := n.store.Update(t.Context(), func(tx *store.Tx) error { // as the older version did
		return release.Activation{ID: old, Origin: release.Deploy, By: operator}.Activate(tx)
	}); err != nil {
		t.Fatal(err)
	}
	n.awaitCall("one", `200 {"count":0}`)
	late := c.add()
	late.begin()
	late.awaitCall("one", `200 {"count":0}`)
	if got := late.notReady(); got != "" {
		t.Error(got)
	}
	// A rollback to it works, too.
	n.mustActivate(n.send(shop("two", "", "")))
	n.awaitCall("two", `200 {"count":0}`)
	n.mustActivate(old)
	n.awaitCall("one", `200 {"count":0}`)
}
