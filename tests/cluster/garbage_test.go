package cluster_test

import (
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// garbage is clients that send what no node sends.
type garbage struct {
	t      *testing.T
	ports  []string // addresses: of requests of other nodes, of etcd clients, of etcd servers
	other  tls.Certificate
	random *rand.Rand
	held   []net.Conn
}

// dial opens a connection that ends by itself after some time. It returns nil if the node refuses it.
func (g *garbage) dial(address string) net.Conn {
	conn, err := net.DialTimeout("tcp", address, harness.Timeout)
	if err != nil {
		return nil
	}
	_ = conn.SetDeadline(time.Now().Add(harness.Timeout))
	return conn
}

// bytes returns so many random bytes.
func (g *garbage) bytes(count int) []byte {
	all := make([]byte, count)
	for i := range all {
		all[i] = byte(g.random.Uint32())
	}
	return all
}

// frame returns the begin of HTTP/2, and the head of a frame with the maximum length.
func (g *garbage) frame() []byte {
	head := binary.BigEndian.AppendUint32(nil, 0xffffff00|uint32(g.random.IntN(12))) // length and type
	return append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), append(head, 0, 0, 0, 0, 1)...)
}

// hello returns the begin of a handshake.
func (g *garbage) hello() []byte {
	return append([]byte{22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}, g.bytes(g.random.IntN(400))...)
}

// speak sends bytes, in several parts, and closes the connection.
func (g *garbage) speak(conn net.Conn, text []byte) {
	if conn == nil {
		return
	}
	defer conn.Close()
	for len(text) > 0 {
		n := 1 + g.random.IntN(len(text))
		if _, err := conn.Write(text[:n]); err != nil {
			return // the node has closed it
		}
		text = text[n:]
	}
}

// hold opens connections that send the begin of a handshake, or nothing, and stay open.
func (g *garbage) hold(address string, count int) {
	for range count {
		conn := g.dial(address)
		if conn == nil {
			continue
		}
		if g.random.IntN(2) == 0 {
			_, _ = conn.Write(g.hello())
		}
		g.held = append(g.held, conn)
	}
}

// talk sends bytes on a connection with TLS, without a certificate or with that of another authority, and
// returns what the node answers.
func (g *garbage) talk(address, protocol string, text []byte) string {
	if g.random.IntN(2) == 0 {
		return g.talkAs(g.other, address, protocol, text)
	}
	return g.talkAs(tls.Certificate{}, address, protocol, text)
}

// talkAs is talk with a certificate; the zero value: without one.
func (g *garbage) talkAs(certificate tls.Certificate, address, protocol string, text []byte) string {
	conn := g.dial(address)
	if conn == nil {
		return ""
	}
	defer conn.Close()
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
	if certificate.Certificate != nil {
		config.Certificates = []tls.Certificate{certificate}
	}
	encrypted := tls.Client(conn, config)
	if _, err := encrypted.Write(text); err != nil {
		return ""
	}
	answer, _ := io.ReadAll(io.LimitReader(encrypted, 64<<10)) // the node ends it
	return string(answer)
}

// Bytes that are not valid, certificates that are not of the cluster, handshakes that do not end and many
// connections on the three ports of a node change nothing: it stays ready and commits, takes little
// memory, and logs no kind in a flood: etcd's once a minute, and that connections were closed once a second.
func TestANodeEnduresGarbageOnItsPorts(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rounds, connections := 15, 100
	if harness.Soak {
		rounds, connections = 2000, 400
	}
	l := loadedCluster(t, nil, 1, 0)
	n := l.cluster.Nodes[0]
	host, _, err := net.SplitHostPort(n.Address)
	if err != nil {
		t.Fatal(err)
	}
	files := certificates(t, harness.LoopbackHost())
	other, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	g := &garbage{t: t, other: other, random: rand.New(rand.NewPCG(seed, 0))}
	for _, port := range []string{"9400", "9401", "9402"} {
		g.ports = append(g.ports, net.JoinHostPort(host, port))
	}
	t.Cleanup(func() {
		for _, conn := range g.held {
			conn.Close()
		}
	})
	written := 0
	works := func() {
		t.Helper()
		written++
		done := l.transact(l.nodes[0], 0, 0, order{Name: fmt.Sprint("during-", written), Write: []string{"c1"}})
		if !done.acknowledged {
			t.Errorf("a write: %+v", done)
		}
		n.Server.Want(200, nil, "GET", "/_health/ready", "")
	}
	own, err := tls.LoadX509KeyPair(n.Path("data/cluster/cert.pem"), n.Path("data/cluster/key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	requests := []string{"POST /state", "GET /version", "GET /members"} // by port
	request := func(i int) []byte {
		return []byte(requests[i] + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
	}
	for i, address := range g.ports {
		if answer := g.talkAs(own, address, "http/1.1", request(i)); !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
			t.Errorf("%s %s of a node is answered with %q", address, requests[i], answer)
		}
	}
	before := n.Server.Resources()
	works()
	began := time.Now()
	for range rounds {
		for i, address := range g.ports {
			g.speak(g.dial(address), g.bytes(g.random.IntN(64<<10)))
			g.speak(g.dial(address), g.frame())
			g.speak(g.dial(address), g.hello())
			g.talk(address, "h2", append(g.frame(), g.bytes(g.random.IntN(1<<20))...))
			g.talk(address, "http/1.1", g.bytes(g.random.IntN(1<<20)))
			if answer := g.talk(address, "http/1.1", request(i)); strings.HasPrefix(answer, "HTTP/1.1 200 ") {
				t.Errorf("%s %s of another client is answered with %q", address, requests[i], answer)
			}
		}
		works()
	}
	big := fmt.Sprintf("POST /join HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1073741824\r\n\r\n{\"secret\":\"%s", strings.Repeat("x", 4<<20))
	if answer := g.talk(g.ports[0], "http/1.1", []byte(big)); strings.HasPrefix(answer, "HTTP/1.1 200 ") {
		t.Errorf("a join without end is answered with %q", answer)
	}
	for _, address := range g.ports {
		g.hold(address, connections)
	}
	works()
	if s := n.Status(); !s.Quorum || s.Leader != n.Name {
		t.Errorf("status: %+v", s)
	}
	now := n.Server.Resources()
	t.Logf("%d rounds and %d held connections in %s: the node took up to %d MiB more than %d MiB, and has %d files open",
		rounds, len(g.held), time.Since(began).Round(time.Millisecond), (now.PeakBytes-before.PeakBytes)>>20, before.PeakBytes>>20, now.Files)
	if grown := now.PeakBytes - before.PeakBytes; grown > 256<<20 {
		t.Errorf("the node took %d MiB more than before", grown>>20)
	}
	for kind, lines := range kinds(t, n.Server.Stderr.String()) {
		t.Logf("%d of %s", len(lines), lines[0])
		most := 1 + int(time.Since(l.started)/time.Minute)
		if !strings.HasPrefix(kind, "etcd warning") { // once a second
			most = 1 + int(time.Since(l.started)/time.Second)
		}
		if len(lines) > most {
			t.Errorf("%d lines of %q, such as %s", len(lines), kind, lines[0])
		}
	}
}

// kinds returns the warnings and errors of a log by what they are about.
func kinds(t *testing.T, log string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for line := range strings.Lines(log) {
		var r struct{ Level, Msg, Text string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Errorf("read the log line %q: %v", line, err)
		}
		if r.Level == "WARN" || r.Level == "ERROR" {
			text, _, _ := strings.Cut(r.Text, ",")
			kind := strings.TrimSpace(r.Msg + " " + text)
			all[kind] = append(all[kind], line)
		}
	}
	return all
}
