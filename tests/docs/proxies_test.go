package docs_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const proxiedSchema = `
auth { session cookie { } }
apiKeys { scopes: { reader: @system("reader") { @grant read on Thing } } }
routes("/v1", auth: none, rateLimit: none) {
  GET /dump -> dump
  GET /evil -> empty
  POST /upload -> hello (body: 64mb)
  GET /limited -> hello (rateLimit: 2/day by ip)
  GET /key -> dump (auth: apiKey(reader))
  POST /session -> dump (auth: session)
}
`

// The name of the host in docs/proxy.md, and the file of its certificate and key.
const (
	proxiedHost     = "api.example.com"
	certificateFile = "/etc/ssl/private/api.example.com.pem"
)

const proxyPort = "8443"

// proxies are those of docs/proxy.md. command returns the program with its arguments for
// a configuration that listens on proxyPort of the host; pem is a file with the certificate and its key.
var proxies = []struct {
	language string // of the block with the configuration
	command  func(t *testing.T, dir, configuration, host, pem string) (program string, args []string)
}{
	{"nginx", func(t *testing.T, dir, configuration, host, pem string) (string, []string) {
		site := replaceOnce(t, configuration, "listen 443 ", "listen "+host+":"+proxyPort+" ")
		whole := "daemon off; master_process off; pid nginx.pid; error_log stderr; events {}\n" +
			"http { access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n" +
			strings.ReplaceAll(site, certificateFile, pem) + "}\n"
		return "usr/sbin/nginx", []string{"-p", dir, "-e", "stderr", "-c", write(t, dir, "nginx.conf", whole)}
	}},
	{"haproxy", func(t *testing.T, dir, configuration, host, pem string) (string, []string) {
		whole := replaceOnce(t, replaceOnce(t, configuration, "bind :443 ", "bind "+host+":"+proxyPort+" "), certificateFile, pem)
		return "usr/sbin/haproxy", []string{"-db", "-f", write(t, dir, "haproxy.cfg", whole)}
	}},
	{"caddyfile", func(t *testing.T, dir, configuration, host, pem string) (string, []string) {
		whole := "{\n admin off\n auto_https disable_redirects\n default_bind " + host + "\n https_port " + proxyPort + "\n}\n" +
			replaceOnce(t, configuration, proxiedHost+" {\n", proxiedHost+" {\n tls "+pem+" "+pem+"\n")
		return "usr/bin/caddy", []string{"run", "--adapter", "caddyfile", "--config", write(t, dir, "Caddyfile", whole)}
	}},
}

func replaceOnce(t *testing.T, text, from, to string) string {
	t.Helper()
	if strings.Count(text, from) != 1 {
		t.Fatalf("%q is not once in:\n%s", from, text)
	}
	return strings.Replace(text, from, to, 1)
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheDocumentedProxyConfigurationsWork(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until the proxies close idle connections")
	}
	behindProxies(t, "", func(s *harness.Server, p *proxied) {
		key, session := s.App.Token("reader"), s.App.Session("ann").Cookie
		p.passesRequestsOn(key, session)
		p.namesTheClient()
		p.acceptsAbsoluteTargets()
		p.keepsConnections()
		p.relay.wantIdleEndedBy(s, "the proxy")
	})
}

// behindProxies runs a test for a server behind each proxy of docs/proxy.md, with the
// configuration that is there and more settings.
func behindProxies(t *testing.T, settings string, test func(s *harness.Server, p *proxied)) {
	t.Helper()
	out, err := exec.Command(harness.RepoFile("tools/fetch-proxies.sh")).Output()
	if err != nil {
		t.Fatalf("get the proxies: %v", err)
	}
	root := strings.TrimSpace(string(out))
	blocks := map[string]string{}
	for _, f := range fencesOf(t, harness.RepoFile("docs/proxy.md")) {
		if f.info != "toml" || strings.Contains(f.text, "trusted_proxies") {
			blocks[f.info] += f.text
		}
	}
	for _, proxy := range proxies {
		t.Run(proxy.language, func(t *testing.T) {
			t.Parallel()
			s := harness.NewApp(t, proxiedSchema, blocks["toml"]+settings, "echo").Serve()
			pem, roots := certificate(t)
			host := harness.LoopbackHost()
			p := &proxied{t: t, address: host + ":" + proxyPort, roots: roots, relay: newRelay(t, s.Addr)}
			program, args := proxy.command(t, t.TempDir(), replaceOnce(t, blocks[proxy.language], "127.0.0.1:8080", p.relay.address), host, pem)
			p.start(filepath.Join(root, program), args...)
			s.WaitUntil(proxy.language+" listens", func() bool {
				conn, err := net.Dial("tcp", p.address)
				return err == nil && conn.Close() == nil
			})
			test(s, p)
		})
	}
}

// proxied is a proxy in front of a runner.
type proxied struct {
	t       *testing.T
	address string
	roots   *x509.CertPool
	relay   *relay // between the proxy and the runner
}

// start starts the proxy's program, which ends with the test.
func (p *proxied) start(program string, args ...string) {
	p.t.Helper()
	var output harness.LockedBuffer
	cmd := exec.Command(program, args...)
	home := p.t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if p.t.Failed() {
			p.t.Logf("the proxy's output:\n%s", output.String())
		}
	})
}

// dial connects to the proxy from an address of loopback.
func (p *proxied) dial(from string) (net.Conn, error) {
	return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", p.address)
}

// dialTLS connects from an address for HTTP/1.1.
func (p *proxied) dialTLS(from string) *tls.Conn {
	p.t.Helper()
	plain, err := p.dial(from)
	if err != nil {
		p.t.Fatal(err)
	}
	conn := tls.Client(plain, &tls.Config{RootCAs: p.roots, ServerName: proxiedHost})
	if err := conn.SetDeadline(time.Now().Add(harness.Timeout)); err != nil {
		p.t.Fatal(err)
	}
	return conn
}

// client is a client at an address, with connections of its own.
func (p *proxied) client(from string) *http.Client {
	transport := &http.Transport{
		DialContext:         func(context.Context, string, string) (net.Conn, error) { return p.dial(from) },
		TLSClientConfig:     &tls.Config{RootCAs: p.roots},
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 100,
	}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: harness.Timeout}
}

// do sends a request. Headers have the form "name: value".
func (p *proxied) do(c *http.Client, method, path, body string, headers ...string) harness.Answer {
	p.t.Helper()
	request, err := http.NewRequest(method, "https://"+proxiedHost+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Add(name, value)
	}
	answer, err := c.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return harness.Answer{Status: answer.StatusCode, Header: answer.Header, Body: string(text)}
}

func (p *proxied) passesRequestsOn(key, session string) {
	p.t.Helper()
	c := p.client("127.0.0.2")
	d := harness.ReadDump(p.t, p.do(c, "GET", "/v1/dump?a=%2F&b=%C3%BC", "", "X-Forwarded-Proto: http"))
	if d.Header("host") != proxiedHost || d.Context.Scheme != "https" || d.Path != "/v1/dump" || len(d.Query) != 2 || d.Query[0] != [2]string{"a", "/"} || d.Query[1] != [2]string{"b", "ü"} {
		p.t.Errorf("the handler got %+v", d)
	}
	for _, credential := range []string{"Authorization: Bearer " + key, "X-API-Key: " + key} {
		if got := p.do(c, "GET", "/v1/key", "", credential); got.Status != 200 {
			p.t.Errorf("a request with %.9s…: %d %s", credential, got.Status, got.Body)
		}
	}
	for origin, want := range map[string]int{"https://" + proxiedHost: 200, "https://evil.example": 403} {
		if got := p.do(c, "POST", "/v1/session", "{}", "Cookie: "+session, "Origin: "+origin); got.Status != want {
			p.t.Errorf("a session's request of a page of %s: %d %s, want %d", origin, got.Status, got.Body, want)
		}
	}
	if got := p.do(c, "POST", "/v1/upload", strings.Repeat("a", 20<<20)); got.Status != 200 {
		p.t.Errorf("a body of 20 MiB: %d %s", got.Status, got.Body)
	}
}

// namesTheClient checks that a limit by address counts the client, whatever address it sends
// itself.
func (p *proxied) namesTheClient() {
	p.t.Helper()
	for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
		c := p.client(from)
		for i, want := range []int{200, 200, 429} {
			if got := p.do(c, "GET", "/v1/limited", "", fmt.Sprint("X-Forwarded-For: 192.0.2.", i)); got.Status != want {
				p.t.Errorf("request %d of %s: %d %s, want %d", i+1, from, got.Status, got.Body, want)
			}
		}
	}
}

func (p *proxied) acceptsAbsoluteTargets() {
	p.t.Helper()
	conn := p.dialTLS("127.0.0.2")
	defer conn.Close()
	fmt.Fprintf(conn, "GET https://%s/v1/dump HTTP/1.1\r\nHost: %[1]s\r\nConnection: close\r\n\r\n", proxiedHost)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 {
		p.t.Errorf("a target in absolute form: %s", answer.Status)
	}
}

// keepsConnections checks that requests of one client share connections to the runner.
func (p *proxied) keepsConnections() {
	p.t.Helper()
	c := p.client("127.0.0.2")
	before := p.relay.begun()
	for range 20 {
		if got := p.do(c, "GET", "/v1/dump", ""); got.Status != 200 {
			p.t.Fatalf("%d %s", got.Status, got.Body)
		}
	}
	if n := p.relay.begun() - before; n > 2 {
		p.t.Errorf("20 requests used %d new connections to the runner", n)
	}
	var requests sync.WaitGroup
	for range 100 {
		requests.Go(func() {
			answer, err := c.Get("https://" + proxiedHost + "/v1/dump")
			if err != nil {
				p.t.Error(err)
				return
			}
			answer.Body.Close()
		})
	}
	requests.Wait()
	c.CloseIdleConnections()
}

// relay copies bytes between the proxy and the runner, and records which of them ends each
// connection.
type relay struct {
	address string

	mu    sync.Mutex
	open  int
	ended []string
}

func newRelay(t *testing.T, runner string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	r := &relay{address: listener.Addr().String()}
	go func() {
		for {
			proxy, err := listener.Accept()
			if err != nil {
				return
			}
			go r.serve(proxy, runner)
		}
	}()
	return r
}

func (r *relay) serve(proxy net.Conn, address string) {
	defer proxy.Close()
	r.mu.Lock()
	r.open++
	r.mu.Unlock()
	runner, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer runner.Close()
	ends := make(chan string, 2)
	pass := func(to, from net.Conn, name string) {
		_, _ = io.Copy(to, from) // ends with either connection
		ends <- name
	}
	go pass(runner, proxy, "the proxy")
	go pass(proxy, runner, "the runner")
	first := <-ends
	r.mu.Lock()
	r.open--
	r.ended = append(r.ended, first)
	r.mu.Unlock()
}

// begun returns the number of connections so far.
func (r *relay) begun() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open + len(r.ended)
}

// wantIdleEndedBy waits until every connection has ended, and checks who ended them. Those
// that ended before may have been closed with an answer.
func (r *relay) wantIdleEndedBy(s *harness.Server, who string) {
	s.T.Helper()
	r.mu.Lock()
	r.ended = nil
	r.mu.Unlock()
	s.WaitUntil("the connections end", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.open == 0
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ended) == 0 || slices.ContainsFunc(r.ended, func(got string) bool { return got != who }) {
		s.T.Errorf("idle connections were ended by %q, want %s", r.ended, who)
	}
}

// certificate returns a file with a certificate of the host and its key, and the pool that
// trusts it.
func certificate(t *testing.T) (file string, roots *x509.CertPool) {
	t.Helper()
	service := httptest.NewTLSServer(nil)
	defer service.Close()
	own := service.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	roots = x509.NewCertPool()
	roots.AddCert(service.Certificate())
	return write(t, t.TempDir(), "host.pem", text), roots
}
