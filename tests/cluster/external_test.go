package cluster_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runner.example/store/etcdlog"
	"runner.example/tests/harness"
)

// authority signs certificates in a test, all for 127.0.0.1.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, file: filepath.Join(t.TempDir(), "ca.pem")}
	a.cert = &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert, a.key = a.sign(a.cert, a.file, a.file+".key")
	return a
}

// sign writes a certificate and its key.
func (a *authority) sign(template *x509.Certificate, certFile, keyFile string) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// issue writes a certificate and its key to <dir>/<name>.pem and <dir>/<name>.key.
func (a *authority) issue(dir, name string) *etcdlog.TLS {
	a.t.Helper()
	files := &etcdlog.TLS{CertFile: filepath.Join(dir, name+".pem"), KeyFile: filepath.Join(dir, name+".key"), CAFile: a.file}
	a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, files.CertFile, files.KeyFile)
	return files
}

// freePort returns an address of this machine with a free port.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// Nodes use an etcd that runs elsewhere, with TLS and certificates of clients. One with the certificate of
// another authority serves what it has, and commits nothing until it gets a valid one.
func TestNodesUseAnEtcdElsewhereWithTLS(t *testing.T) {
	t.Parallel()
	a, other := newAuthority(t), newAuthority(t)
	peers, clients := "https://"+freePort(t), "https://"+freePort(t)
	server, err := etcdlog.StartServer(t.Context(), etcdlog.ServerOptions{
		Dir: t.TempDir(), Self: etcdlog.Member{Name: "etcd", Peers: peers}, Members: []etcdlog.Member{{Name: "etcd", Peers: peers}},
		Clients: clients, TLS: a.issue(t.TempDir(), "etcd"), Election: time.Second, ReadyWait: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	trusted, err := os.ReadFile(a.file)
	if err != nil {
		t.Fatal(err)
	}
	c := harness.NewCluster(t, nil, func() *harness.App {
		app := newLedger(t)
		a.issue(app.Dir, "client")
		app.Write("etcd-ca.pem", string(trusted))
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
	valid, err := os.ReadFile(n2.Path("client.pem"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(n2.Path("client.key"))
	if err != nil {
		t.Fatal(err)
	}
	other.issue(n2.Dir, "client")
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
	n2.Write("client.pem", string(valid))
	n2.Write("client.key", string(key))
	n2.Server.WaitUntil("n2 writes with a valid certificate, which it reads again", func() bool { return write(n2, "again") == 201 })
}
