package harness

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Network is a network of machines, each a network namespace with an address of its own. A bridge in
// one more namespace connects them.
type Network struct {
	t        testing.TB
	prefix   string
	machines int
}

// NewNetwork makes a network until the test ends. It skips the test if it may not.
func NewNetwork(t testing.TB, machines int) *Network {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make the network of this test")
	}
	n := &Network{t: t, prefix: fmt.Sprintf("runner%d", os.Getpid()), machines: machines}
	if out, err := exec.Command("ip", "netns", "add", n.bridge()).CombinedOutput(); err != nil {
		t.Skipf("cannot make a network namespace: %v: %s", err, out)
	}
	t.Cleanup(func() { n.run("ip", "netns", "del", n.bridge()) })
	n.in(n.bridge(), "ip", "link", "add", "bridge", "type", "bridge")
	n.in(n.bridge(), "ip", "link", "set", "bridge", "up")
	for i := range machines {
		ns := n.Namespace(i)
		n.run("ip", "netns", "add", ns)
		t.Cleanup(func() { n.run("ip", "netns", "del", ns) })
		n.run("ip", "link", "add", "net", "netns", ns, "type", "veth", "peer", "name", port(i), "netns", n.bridge())
		n.in(n.bridge(), "ip", "link", "set", port(i), "master", "bridge", "up")
		n.in(ns, "ip", "address", "add", n.Address(i)+"/24", "dev", "net")
		n.in(ns, "ip", "link", "set", "lo", "up")
		n.in(ns, "ip", "link", "set", "net", "up")
	}
	return n
}

func (n *Network) bridge() string { return n.prefix + "-bridge" }

func port(i int) string { return fmt.Sprint("port", i) }

// Namespace is the name of the namespace of a machine.
func (n *Network) Namespace(i int) string { return fmt.Sprint(n.prefix, "-", i) }

// Address is the IP address of a machine.
func (n *Network) Address(i int) string { return fmt.Sprint("10.77.0.", i+1) }

// PublicService is an HTTP service on the port 80 of a machine's address that does not leave the machine. It may be a
// public one.
func (n *Network) PublicService(i int, address string, handler http.HandlerFunc) {
	n.t.Helper()
	n.in(n.Namespace(i), "ip", "address", "add", address+"/32", "dev", "lo")
	service := httptest.NewUnstartedServer(handler)
	_ = service.Listener.Close()
	var err error
	inNamespace(n.Namespace(i), func() { service.Listener, err = net.Listen("tcp", net.JoinHostPort(address, "80")) })
	if err != nil {
		n.t.Fatal(err)
	}
	service.Start()
	n.t.Cleanup(service.Close)
}

// Cut drops all that other machines and this one send to each other, without an error. Connect ends
// that.
func (n *Network) Cut(i int) { n.in(n.bridge(), "bridge", "link", "set", "dev", port(i), "state", "0") }

// Connect ends Cut and CutSending.
func (n *Network) Connect(i int) {
	n.in(n.bridge(), "bridge", "link", "set", "dev", port(i), "state", "3")
	n.in(n.Namespace(i), "ip", "route", "flush", "type", "blackhole")
}

// CutSending drops what a machine sends to the others. What they send arrives.
func (n *Network) CutSending(i int) {
	for other := range n.machines {
		if other != i {
			n.in(n.Namespace(i), "ip", "route", "add", "blackhole", n.Address(other)+"/32")
		}
	}
}

func (n *Network) in(namespace string, command ...string) {
	n.t.Helper()
	n.run("ip", append([]string{"netns", "exec", namespace}, command...)...)
}

func (n *Network) run(command string, args ...string) {
	n.t.Helper()
	if out, err := exec.Command(command, args...).CombinedOutput(); err != nil {
		n.t.Errorf("%s %s: %v: %s", command, strings.Join(args, " "), err, out)
	}
}

// clientIn is Client in a network namespace.
func clientIn(namespace string) *http.Client {
	transport := Client.Transport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		inNamespace(namespace, func() { conn, err = (&net.Dialer{}).DialContext(ctx, network, address) })
		return conn, err
	}
	c := *Client
	c.Transport = transport
	return &c
}

// inNamespace runs do on a thread in a network namespace. A socket stays in the namespace in which it
// was made.
func inNamespace(namespace string, do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // until the goroutine ends, and the thread with it
		file, err := os.Open("/run/netns/" + namespace)
		if err != nil {
			panic(err)
		}
		defer file.Close()
		if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
			panic(err)
		}
		do()
	}()
	<-done
}
