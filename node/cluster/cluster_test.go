package cluster_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/keystore"
	"runner.example/node/cluster"
	"runner.example/node/release"
	"runner.example/state/store"
	"runner.example/state/store/etcdlog"
)

// member is a node of a cluster in this process.
type member struct {
	*cluster.Node
	t     *testing.T
	data  string
	store *store.Store
	stop  func()
	now   *clock
	// removed gets the error with which the server must end.
	removed chan error
	// server gets why the etcd server does not vote, when that changes; nil: it does.
	server chan *fault.Fault
}

// clock is a clock that is set.
type clock struct {
	mu sync.Mutex
	at time.Time // zero: the real time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return time.Now()
	}
	return c.at
}

func (c *clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

// address returns the address of a node on loopback. Its host is as good as a random port, and neither
// other tests nor outbound connections use its ports.
func address() string {
	return fmt.Sprintf("127.%d.%d.%d:9400", 1+rand.IntN(254), rand.IntN(255), 1+rand.IntN(254))
}

// found makes the first node of a cluster, and starts it.
func found(t *testing.T) *member {
	t.Helper()
	if testing.Short() {
		t.Skip("starts etcd servers")
	}
	data := filepath.Join(t.TempDir(), "n1")
	if _, err := cluster.Init(t.Context(), data, cluster.Options{Name: "n1", Listen: address()}); err != nil {
		t.Fatal(err)
	}
	return start(t, data)
}

// start starts a node that was made.
func start(t *testing.T, data string) *member {
	t.Helper()
	m, err := tryStart(t.Context(), t, data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// tryStart returns the error of Serve. It waits for the log until ctx ends.
func tryStart(ctx context.Context, t *testing.T, data string) (*member, error) {
	t.Helper()
	m := &member{t: t, data: data, now: &clock{}, removed: make(chan error, 1), server: make(chan *fault.Fault, 100)}
	logger := slog.New(slog.NewTextHandler(testLog{t, filepath.Base(data)}, nil))
	pepper := keystore.Options{Dir: data}.PepperPath()
	var err error
	m.Node, err = cluster.Start(cluster.StartOptions{Options: cluster.Options{Election: time.Second}, Data: data, Pepper: pepper, Logger: logger, Now: m.now.read})
	if err != nil {
		t.Fatal(err)
	}
	opt := store.Options{Dir: data, Logger: logger, Clock: m.now.read}
	m.StoreOptions(&opt)
	if m.store, err = store.Open(opt); err != nil {
		t.Fatal(err)
	}
	_, revision, _ := m.store.Position()
	if err := m.CheckLog(ctx, revision); err != nil {
		t.Fatal(err)
	}
	keys, err := keystore.Open(t.Context(), m.store, keystore.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	m.stop = sync.OnceFunc(func() {
		m.StopServing()
		if err := keys.Close(); err != nil {
			t.Error(err)
		}
		if err := m.store.Close(); err != nil {
			t.Error(err)
		}
		m.Close()
	})
	t.Cleanup(m.stop)
	return m, m.Serve(m.store, keys, cluster.Hooks{
		App: func() string { return "test" }, Release: func() string { return "" }, NotReady: func() (string, bool) { return "", false },
		Secrets:  func() map[string]string { return map[string]string{"TOKEN": filepath.Base(data)} },
		Vars:     func() map[string]string { return map[string]string{"REGION": filepath.Base(data), "LIMIT": "same"} },
		Prepare:  func(context.Context, string) error { return fault.New(fault.Invalid, "no compiler here") },
		Activate: func(context.Context, release.Activation) error { return nil },
		OnSkew:   agrees, OnMembership: func(int, int) {}, OnBehind: func() {},
		OnUnusable: func(err error) { m.removed <- err },
		OnServer:   func(cause *fault.Fault) { m.server <- cause },
	})
}

// agrees reports whether no more than half of the clocks differ by more than a minute.
func agrees(skews map[string]time.Duration) bool {
	far := 0
	for _, skew := range skews {
		if skew.Abs() > time.Minute {
			far++
		}
	}
	return 2*far <= len(skews)
}

// testLog writes the log of a node to that of the test.
type testLog struct {
	t    *testing.T
	name string
}

func (l testLog) Write(line []byte) (int, error) {
	l.t.Logf("%s: %s", l.name, bytes.TrimSpace(line))
	return len(line), nil
}

func (m *member) invite(role cluster.Role) secret.Text {
	m.t.Helper()
	token, err := m.Invite(m.t.Context(), role)
	if err != nil {
		m.t.Fatal(err)
	}
	return token
}

func join(t *testing.T, token secret.Text, name string) (string, error) {
	t.Helper()
	data := filepath.Join(t.TempDir(), name)
	_, err := cluster.Join(t.Context(), token, cluster.JoinOptions{Options: cluster.Options{Name: name, Listen: address()}, Data: data})
	return data, err
}

// joined returns the data directory of a node that has joined.
func (m *member) joined(role cluster.Role, name string) string {
	m.t.Helper()
	data, err := join(m.t, m.invite(role), name)
	if err != nil {
		m.t.Fatal(err)
	}
	return data
}

// nextPort returns the address of a port of a node: the number of its first one, and more.
func nextPort(t *testing.T, address string, more int) string {
	t.Helper()
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(at.Addr(), at.Port()+uint16(more)).String()
}

// set stores a value.
func (m *member) set(key, value string) store.Seq {
	m.t.Helper()
	seq, err := m.store.Update(m.t.Context(), func(tx *store.Tx) error { return tx.Set([]byte(key), []byte(value)) })
	if err != nil {
		m.t.Fatal(err)
	}
	return seq
}

// get returns a value after all that was acknowledged before.
func (m *member) get(key string) (value string) {
	m.t.Helper()
	if err := m.store.Barrier(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	err := m.store.View(m.t.Context(), func(tx *store.Tx) error {
		v, err := tx.Get([]byte(key))
		value = string(v)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return value
}

func (m *member) status() cluster.Overview {
	m.t.Helper()
	s, err := m.Status(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

// dial returns a client of the etcd server of the node.
func (m *member) dial() *etcdlog.Client {
	m.t.Helper()
	file := func(name string) string { return filepath.Join(m.data, "cluster", name) }
	client, err := etcdlog.Dial([]string{"https://" + nextPort(m.t, m.node(m.Name()).Address, 1)},
		&etcdlog.TLS{CertFile: file("cert.pem"), KeyFile: file("key.pem"), CAFile: file("ca.pem")})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(client.Close)
	return client
}

// A node begins with the data of the cluster, follows it and writes to it; blobs that it lacks are
// fetched; a node that left is a node no more.
func TestNodesShareRowsAndBlobsUntilTheyLeave(t *testing.T) {
	first := found(t)
	first.set("before", "join")
	data, err := join(t, first.invite(cluster.Edge), "edge")
	if err != nil {
		t.Fatal(err)
	}
	edge := start(t, data)
	if got := edge.get("before"); got != "join" {
		t.Errorf("the snapshot has %q", got)
	}
	seq := edge.set("after", "join")
	if got := first.get("after"); got != "join" {
		t.Errorf("the first node has %q", got)
	}
	if a := edge.WaitApplied(t.Context(), seq); a.Nodes != 2 || a.Applied != 2 || len(a.Missing) > 0 {
		t.Errorf("applied: %+v", a)
	}
	digest, err := first.store.PutBlob(t.Context(), strings.NewReader("a module"))
	if err != nil {
		t.Fatal(err)
	}
	blob, err := edge.store.Blob(t.Context(), digest)
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	if text, err := io.ReadAll(blob); err != nil || string(text) != "a module" {
		t.Errorf("the fetched blob is %q, %v", text, err)
	}
	if _, err := edge.store.Blob(t.Context(), store.Digest{1}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a blob that no node has: %v", err)
	}
	if _, err := edge.Invite(t.Context(), cluster.Edge); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("an invitation of an edge node: %v", err)
	}
	for end := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		err := first.PrepareAll(t.Context(), "rel_x")
		if fault.CodeOf(err) == fault.Invalid && fault.Of(err).Detail == "node edge cannot serve the release: no compiler here" {
			break
		}
		if err != nil || time.Now().After(end) { // nil: it has not heard of the edge yet
			t.Fatalf("a node that cannot compile a release: %v", err)
		}
	}
	s := edge.status()
	if !s.Quorum || s.Leader != "n1" || len(s.Nodes) != 2 || s.Nodes[0].Name != "edge" || s.Nodes[1].Name != "n1" {
		t.Errorf("status: %+v", s)
	}
	if !slices.Equal(s.Secrets, []string{"TOKEN"}) || !slices.Equal(s.Vars, []string{"REGION"}) {
		t.Errorf("different secrets %s and variables %s", s.Secrets, s.Vars)
	}
	if _, err := first.Leave(t.Context(), "n1"); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("the last voter leaves: %v", err)
	}
	if self, err := first.Leave(t.Context(), "edge"); err != nil || self {
		t.Fatal(self, err)
	}
	if got := fmt.Sprint(first.WaitApplied(t.Context(), seq)); got != "{1 1 []}" {
		t.Errorf("after the edge has left: %v", got)
	}
	other, err := first.store.PutBlob(t.Context(), strings.NewReader("another module"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := edge.store.Blob(t.Context(), other); err == nil {
		t.Error("a node that has left still gets blobs")
	}
	if _, err := join(t, first.invite(cluster.Edge), "edge"); err != nil {
		t.Fatal(err)
	}
	if _, err := edge.store.Blob(t.Context(), other); err == nil {
		t.Error("a node that has left gets blobs again, when another machine has its name")
	}
	edge.stop()
	if self, err := cluster.Dissolve(t.Context(), data); err != nil || self.Name != "edge" {
		t.Fatal(self, err)
	}
	alone, err := store.Open(store.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAnInvitationWorksOnceAndForAWhile(t *testing.T) {
	first := found(t)
	token := first.invite(cluster.Edge)
	if _, err := join(t, token, "a"); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]struct {
		token secret.Text
		node  string
		code  fault.Code
		says  string
	}{
		"used":       {token, "b", fault.Denied, "was used, or has expired"},
		"a name":     {first.invite(cluster.Edge), "a", fault.Conflict, `a node with the name "a"`},
		"no token":   {secret.New("runner-join-"), "b", fault.Invalid, "the whole line"},
		"cut off":    {secret.New(first.invite(cluster.Edge).Reveal()[:50]), "b", fault.Invalid, "the whole line"},
		"upper case": {first.invite(cluster.Edge), "B", fault.Invalid, "small letters"},
	} {
		if _, err := join(t, try.token, try.node); fault.CodeOf(err) != try.code || !strings.Contains(fmt.Sprint(err), try.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	late := first.invite(cluster.Voter)
	first.now.set(time.Now().Add(cluster.InvitationLife))
	if _, err := join(t, late, "c"); fault.CodeOf(err) != fault.Denied || !strings.Contains(err.Error(), "expired") {
		t.Errorf("after its end: %v", err)
	}
}

// A data directory that cannot be the one of a node is refused before the invitation is used.
func TestAnInvitationIsNotUsedForADirectoryThatCannotBeANode(t *testing.T) {
	first := found(t)
	token := first.invite(cluster.Edge)
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("nothing", link); err != nil {
		t.Fatal(err)
	}
	for data, want := range map[string]string{dir: "is not empty", link: "symlink whose target does not exist"} {
		opt := cluster.JoinOptions{Options: cluster.Options{Name: "a"}, Data: data}
		if _, err := cluster.Join(t.Context(), token, opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("join with %s: %v, want %q", data, err, want)
		}
	}
	if _, err := join(t, token, "a"); err != nil {
		t.Error(err)
	}
}

// Without a certificate of the cluster, a connection can do nothing but join.
func TestOnlyNodesAreAnswered(t *testing.T) {
	first := found(t)
	address := first.status().Nodes[0].Address
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for _, operation := range []string{"state", "applied", "chain", "prepare", "activate", "snapshot", "blob", "join", "", "../state"} {
		answer, err := client.Post("https://"+address+"/"+operation, "application/json", strings.NewReader(`{}`))
		if err != nil {
			t.Errorf("%s: %v", operation, err)
			continue
		}
		var refusal struct{ Code, Detail string }
		err = json.NewDecoder(answer.Body).Decode(&refusal)
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK || err != nil || refusal.Code == "" {
			t.Errorf("%s: status %d, %+v, %v", operation, answer.StatusCode, refusal, err)
		}
	}
}

// A node that is asked for the hash at a commit that it has not applied yet answers when it has. Otherwise the
// node that asks, and one that differs, would be alone with their rows, and both would stop.
func TestANodeAnswersForACommitThatItAppliesLater(t *testing.T) {
	first := found(t)
	edge := first.joined(cluster.Edge, "edge")
	cert, err := tls.LoadX509KeyPair(filepath.Join(edge, "cluster", "cert.pem"), filepath.Join(edge, "cluster", "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{cert}, InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	ask := func(operation, args string) (text string, err error) {
		answer, err := transport.RoundTrip(httptest.NewRequest("POST", "https://"+first.node("n1").Address+"/"+operation, strings.NewReader(args)))
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return string(body), err
	}
	later := first.set("key", "1") + 1
	began := time.Now()
	answered := make(chan string)
	go func() {
		text, err := ask("chain", fmt.Sprintf(`{"seq":%d}`, later))
		if err != nil {
			t.Error(err)
		}
		answered <- text
	}()
	for range 5 { // the answer, if it came at once, would be there
		if text, err := ask("state", `{}`); err != nil || !strings.Contains(text, `"n1"`) {
			t.Fatal(text, err)
		}
	}
	for first.set("key", "2") < later {
	}
	text := <-answered
	if took := time.Since(began); !strings.HasPrefix(text, `{"chain":"`) && took < 2*time.Second { // for which it waits
		t.Errorf("the answer is %s after %s", text, took)
	}
}

func FuzzInvitation(f *testing.F) {
	f.Add("runner-join-eyJhIjoiMTI3LjAuMC4xOjk0MDAiLCJmIjoiIiwicyI6IiIsInIiOiJlZGdlIn0")
	f.Fuzz(func(t *testing.T, text string) {
		if err := cluster.ParseInvitation(text); err != nil && fault.CodeOf(err) != fault.Invalid {
			t.Error(err)
		}
	})
}

// The log may be in an etcd that runs elsewhere.
func TestNodesUseAnEtcdThatRunsElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("starts etcd servers")
	}
	peers, clients := "http://"+address(), "http://"+address()
	server, err := etcdlog.StartServer(t.Context(), etcdlog.ServerOptions{
		Dir: t.TempDir(), Self: etcdlog.Member{Name: "etcd", PeerURL: peers}, Members: []etcdlog.Member{{Name: "etcd", PeerURL: peers}},
		ClientURL: clients, Election: time.Second, ReadyWait: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	data := filepath.Join(t.TempDir(), "n1")
	if _, err := cluster.Init(t.Context(), data, cluster.Options{Name: "n1", Listen: address(), Endpoints: []string{clients}}); err != nil {
		t.Fatal(err)
	}
	first := start(t, data)
	joined, err := join(t, first.invite(cluster.Voter), "n2")
	if err != nil {
		t.Fatal(err)
	}
	second := start(t, joined)
	second.set("key", "value")
	if got := first.get("key"); got != "value" {
		t.Errorf("got %q", got)
	}
	if s := first.status(); !s.Quorum || len(s.Nodes) != 2 {
		t.Errorf("status: %+v", s)
	}
	if _, err := second.Leave(t.Context(), "n1"); err != nil {
		t.Error(err)
	}
}

// What a start without the log could not compare is compared when there is one: a node does not follow a log that
// was replaced.
func TestANodeThatStartedWithoutTheLogEndsWhenThatWasReplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("starts etcd servers")
	}
	peers, clients := "http://"+address(), "http://"+address()
	serve := func() *etcdlog.Server {
		server, err := etcdlog.StartServer(t.Context(), etcdlog.ServerOptions{
			Dir: t.TempDir(), Self: etcdlog.Member{Name: "etcd", PeerURL: peers}, Members: []etcdlog.Member{{Name: "etcd", PeerURL: peers}},
			ClientURL: clients, Election: time.Second, ReadyWait: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		return server
	}
	before := serve()
	data := filepath.Join(t.TempDir(), "n1")
	if _, err := cluster.Init(t.Context(), data, cluster.Options{Name: "n1", Listen: address(), Endpoints: []string{clients}}); err != nil {
		t.Fatal(err)
	}
	first := start(t, data)
	first.set("key", "value")
	first.stop()
	before.Close()

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	again, err := tryStart(ctx, t, data)
	if err != nil {
		t.Fatal(err)
	}
	if h := again.store.Health(); h.Writable || again.status().Quorum {
		t.Errorf("without the log: %+v", h)
	}
	serve()
	select {
	case err := <-again.removed:
		if !errors.Is(err, etcdlog.ErrRewound) || !strings.Contains(err.Error(), "keep its data directory") {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the node uses another log")
	}
}

// A node whose clock differs from those of the others gives up the background work, although it is still the
// owner in the store, and takes it over again only with a right clock.
func TestANodeWithAWrongClockIsNotTheOwner(t *testing.T) {
	first := found(t)
	until := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !done(); <-time.After(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not within a minute: %s", what)
			}
		}
	}
	works := func(m *member) error {
		_, err := m.store.UpdateAsOwner(t.Context(), func(tx *store.Tx) error { return tx.Set([]byte("swept by"), []byte(m.Name())) })
		return err
	}
	until("the only node is the owner", first.store.IsOwner)
	var edges []*member
	for _, name := range []string{"e1", "e2"} {
		data, err := join(t, first.invite(cluster.Edge), name)
		if err != nil {
			t.Fatal(err)
		}
		edges = append(edges, start(t, data))
	}
	until("both know each other", func() bool {
		return len(edges[0].status().Nodes) == 3 && len(edges[1].status().Nodes) == 3
	})
	if err := works(first); err != nil {
		t.Fatal(err)
	}
	first.now.set(time.Now().Add(24 * time.Hour))
	until("the owner gives up", func() bool { return !first.store.IsOwner() })
	if err := works(first); !errors.Is(err, store.ErrNotOwner) {
		t.Errorf("a node with a wrong clock does the work of the owner: %v", err)
	}
	until("another node is the owner", func() bool { return edges[0].store.IsOwner() || edges[1].store.IsOwner() })
	for i, m := range edges {
		if err := works(m); (err == nil) != m.store.IsOwner() {
			t.Errorf("%s: %v", m.Name(), err)
		}
		m.now.set(time.Now().AddDate(0, 0, -1-i)) // now all three differ from each other
	}
	until("no node is the owner", func() bool { return !edges[0].store.IsOwner() && !edges[1].store.IsOwner() })
	for _, m := range append(edges, first) {
		if err := works(m); !errors.Is(err, store.ErrNotOwner) {
			t.Errorf("%s does the work of the owner: %v", m.Name(), err)
		}
		m.now.set(time.Time{})
	}
	until("a node with a right clock is the owner", func() bool {
		return first.store.IsOwner() || edges[0].store.IsOwner() || edges[1].store.IsOwner()
	})
}

// A node whose rows differ from those of the others stops, and they go on.
func TestANodeThatDiffersFromTheOthersStops(t *testing.T) {
	first := found(t)
	var edges []string
	for _, name := range []string{"e1", "e2"} {
		data, err := join(t, first.invite(cluster.Edge), name)
		if err != nil {
			t.Fatal(err)
		}
		edges = append(edges, data)
	}
	other := start(t, edges[0])
	alone, err := store.Open(store.Options{Dir: edges[1], Node: true}) // as no command does
	if err != nil {
		t.Fatal(err)
	}
	_, err = alone.Update(t.Context(), func(tx *store.Tx) error { return tx.Set([]byte("only"), []byte("here")) })
	if err := errors.Join(err, alone.Close()); err != nil {
		t.Fatal(err)
	}
	different := start(t, edges[1])
	limit := time.Now().Add(time.Minute)
	for n := 0; !errors.Is(different.store.Health().Reason, store.ErrDiverged); n++ {
		first.set("key", fmt.Sprint(n)) // so that all have the number of the commit that differs
		if time.Now().After(limit) {
			t.Fatalf("the node goes on: %+v", different.store.Health())
		}
	}
	for _, m := range []*member{first, other} {
		if health := m.store.Health(); !health.Writable {
			t.Errorf("%s: %v", m.Name(), health.Reason)
		}
	}
}

// A node that was away for so long that the log no longer has what it lacks takes the rows of another
// node, and then follows the log again.
func TestANodeThatWasAwayForLongTakesABackup(t *testing.T) {
	first := found(t)
	data, err := join(t, first.invite(cluster.Edge), "edge")
	if err != nil {
		t.Fatal(err)
	}
	away := start(t, data)
	away.set("before", "1")
	away.stop()
	for n := range 10 {
		first.set("while away", fmt.Sprint(n))
	}
	_, revision, _ := first.store.Position()
	client := first.dial()
	log := etcdlog.Open(etcdlog.Options{Client: client, After: revision, Deliver: func(uint64, []byte) error { return nil }})
	defer log.Close()
	for range 2 { // the second one frees the bytes of the first
		if err := log.Truncate(t.Context(), revision); err != nil {
			t.Fatal(err)
		}
	}
	first.set("after", "2")

	pepper := keystore.Options{Dir: data}.PepperPath()
	late, err := cluster.Start(cluster.StartOptions{Data: data, Pepper: pepper, Logger: slog.New(slog.NewTextHandler(testLog{t, "edge"}, nil))})
	if err != nil {
		t.Fatal(err)
	}
	opt := store.Options{Dir: data}
	late.StoreOptions(&opt)
	st, err := store.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	_, applied, _ := st.Position()
	err = late.CheckLog(t.Context(), applied)
	if closed := st.Close(); closed != nil || !errors.Is(err, cluster.ErrBehind) {
		t.Fatalf("the node can follow the log: %v, %v", err, closed)
	}
	if err := late.Resync(t.Context()); err != nil {
		t.Fatal(err)
	}
	late.Close()

	again := start(t, data)
	for key, want := range map[string]string{"before": "1", "while away": "9", "after": "2"} {
		if got := again.get(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	again.set("back", "3")
	if got := first.get("back"); got != "3" {
		t.Errorf("the first node has %q", got)
	}
}
