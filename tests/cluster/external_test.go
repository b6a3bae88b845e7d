package cluster_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"runner.example/state/store/etcdlog"
	"runner.example/tests/harness"
)

// certificates returns a certificate for a host with its key, and the authority that has signed it: those
// of the first node of another cluster.
func certificates(t *testing.T, host string) *etcdlog.TLS {
	t.Helper()
	a := newLedger(t)
	a.Must("cluster", "init", "--name", "other", "--listen", host+":9400")
	file := func(name string) string { return a.Path("data/cluster/" + name) }
	return &etcdlog.TLS{CertFile: file("cert.pem"), KeyFile: file("key.pem"), CAFile: file("ca.pem")}
}

// Nodes use an etcd that runs elsewhere, with TLS and certificates of clients. One with the certificate of
// another authority serves what it has, and commits nothing until it gets a valid one.
func TestNodesUseAnEtcdElsewhereWithTLS(t *testing.T) {
	t.Parallel()
	host := harness.LoopbackHost()
	trusted, other := certificates(t, host), certificates(t, host)
	peers, clients := "https://"+host+":2380", "https://"+host+":2379"
	server, err := etcdlog.StartServer(t.Context(), etcdlog.ServerOptions{
		Dir: t.TempDir(), Self: etcdlog.Member{Name: "etcd", PeerURL: peers}, Members: []etcdlog.Member{{Name: "etcd", PeerURL: peers}},
		ClientURL: clients, TLS: trusted, Election: time.Second, ReadyWait: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	read := func(file string) string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	c := harness.NewCluster(t, nil, func() *harness.App {
		app := newLedger(t)
		app.Write("etcd-ca.pem", read(trusted.CAFile))
		app.Write("client.pem", read(trusted.CertFile))
		app.Write("client.key", read(trusted.KeyFile))
		app.Write("runner.toml", fmt.Sprintf("[cluster]\nendpoints = [%q]\ntls_ca = \"etcd-ca.pem\"\ntls_cert = \"client.pem\"\ntls_key = \"client.key\"\n", clients))
		return app
	})
	n1 := c.Nodes[0]
	n1.Serve()
	n2 := c.Add()
	n2.Serve()
	for _, n := range c.Nodes {
		n.Server.WaitUntil(n.Name+" is ready", func() bool {
			got, err := n.Server.Try("GET", "/_health/ready", "")
			return err == nil && got.Status == 200
		})
	}
	token := n2.Key("create", "--scope", "worker", "--name", "of n2").Token
	write := func(n *harness.Node, name string) int {
		got, err := n.Server.Try("POST", "/transact", fmt.Sprintf(`{"name":%q,"write":["c1"]}`, name), "X-API-Key: "+token)
		if err != nil {
			t.Fatal(err)
		}
		return got.Status
	}
	n2.Write("counters.jsonl", `{"name":"c1"}`)
	n2.Must("data", "import", "Counter", "counters.jsonl")
	for _, n := range c.Nodes {
		n.Server.WaitUntil(n.Name+" writes", func() bool { return write(n, "by "+n.Name) == 201 })
	}

	n2.Server.Stop()
	n2.Write("client.pem", read(other.CertFile))
	n2.Write("client.key", read(other.KeyFile))
	n2.Serve()
	if got := n2.Server.Do("GET", "/counters/c1", "", "X-API-Key: "+token).Status; got != 200 && got != 503 {
		t.Errorf("a read without the log: %d", got)
	}
	if got := write(n2, "refused"); got != 503 {
		t.Errorf("a write with a certificate of another authority: %d", got)
	}
	if log := n2.Server.Stderr.String(); !strings.Contains(log, "log of the cluster not reached") {
		t.Errorf("the log does not say that etcd is not reached:\n%s", log)
	}
	n2.Write("client.pem", read(trusted.CertFile))
	n2.Write("client.key", read(trusted.KeyFile))
	n2.Server.WaitUntil("n2 writes with a valid certificate, which it reads again", func() bool { return write(n2, "again") == 201 })
}
