package operations_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// writePair writes a self-signed certificate for 127.0.0.1 and its key into the app, as
// cert.pem and key.pem, and returns a pool with it.
func writePair(t *testing.T, a *harness.App, serial int64) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	a.Write("cert.pem", string(cert))
	a.Write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}

const pairSettings = "[front]\ntls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\nread_timeout = \"1s\"\n"

// serveTLS starts the server, whose address begins with https.
func serveTLS(t *testing.T, a *harness.App) *harness.Server {
	t.Helper()
	s := a.Serve()
	if !strings.HasPrefix(s.URL, "https://") {
		t.Fatalf("listening on %s", s.URL)
	}
	return s
}

// serial requests /hello and returns the serial number of the server's certificate.
func serial(t *testing.T, s *harness.Server, config *tls.Config) (int64, error) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
	got, err := client.Get(s.URL + "/hello")
	if err != nil {
		return 0, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != 200 || got.ProtoMajor != 1 {
		t.Fatalf("%s %d %s, %v", got.Proto, got.StatusCode, body, err)
	}
	return got.TLS.PeerCertificates[0].SerialNumber.Int64(), nil
}

func TestTheServerSpeaksTLS(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, pairSettings+"[telemetry]\nlevel = \"debug\"\n", "echo", "hostile")
	pool := writePair(t, a, 1)
	s := serveTLS(t, a)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		if n, err := serial(t, s, &tls.Config{RootCAs: pool, MinVersion: version, MaxVersion: version}); n != 1 || err != nil {
			t.Errorf("%s: serial %d, %v", tls.VersionName(version), n, err)
		}
	}
	if _, err := serial(t, s, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	if _, err := serial(t, s, &tls.Config{RootCAs: x509.NewCertPool()}); err == nil {
		t.Error("the client trusts every certificate")
	}
	if reply := s.Raw("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", harness.Timeout); strings.HasPrefix(reply, "HTTP/1.1 200") {
		t.Errorf("plain HTTP is answered: %s", reply)
	}
	s.WaitForOutput(`"TLS handshake failed".*does not look like a TLS handshake`)
	// Several requests on one connection, and a clean end.
	nc, err := tls.Dial("tcp", s.Addr, &tls.Config{RootCAs: pool, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	in := bufio.NewReader(nc)
	for i := range 3 {
		head := "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
		if i == 2 {
			head = "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
		}
		if _, err := io.WriteString(nc, head); err != nil {
			t.Fatal(err)
		}
		got, err := http.ReadResponse(in, nil)
		if err != nil || got.StatusCode != 200 {
			t.Fatalf("request %d: %v, %v", i, got, err)
		}
		if _, err := io.Copy(io.Discard, got.Body); err != nil {
			t.Fatal(err)
		}
	}
	if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil { // without close_notify the error is ErrUnexpectedEOF
		t.Errorf("the end of the connection: %q, %v", rest, err)
	}
}

func TestAHandshakeHasTheTimeLimitOfARequest(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, pairSettings, "echo", "hostile")
	pool := writePair(t, a, 1)
	s := serveTLS(t, a)
	silent, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if err := silent.SetReadDeadline(time.Now().Add(harness.Timeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := silent.Read(make([]byte, 1)); err != io.EOF && !strings.Contains(err.Error(), "reset") {
		t.Errorf("a client that begins no handshake: %v", err)
	}
	if n, err := serial(t, s, &tls.Config{RootCAs: pool}); n != 1 || err != nil {
		t.Errorf("serial %d, %v", n, err)
	}
}

func TestAReloadReadsTheCertificateAgain(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, pairSettings, "echo", "hostile")
	first := writePair(t, a, 1)
	s := serveTLS(t, a)
	sessions := tls.NewLRUClientSessionCache(1)
	if _, err := serial(t, s, &tls.Config{RootCAs: first, ClientSessionCache: sessions}); err != nil {
		t.Fatal(err)
	}
	second := writePair(t, a, 2)
	if done := reload(t, a); !strings.Contains(strings.Join(done.Changed, ", "), "the TLS certificate") {
		t.Errorf("changed: %q", done.Changed)
	}
	if n, err := serial(t, s, &tls.Config{RootCAs: second}); n != 2 || err != nil {
		t.Errorf("after the reload: serial %d, %v", n, err)
	}
	if n, err := serial(t, s, &tls.Config{RootCAs: second, ClientSessionCache: sessions}); n != 2 || err != nil {
		t.Errorf("a session from before the reload: serial %d, %v", n, err)
	}
	if _, err := serial(t, s, &tls.Config{RootCAs: first}); err == nil {
		t.Error("the old certificate is still used")
	}
	a.Write("key.pem", "no key")
	if r := a.Run("reload"); r.Status != 3 || !strings.Contains(r.Stderr, "tls_cert") {
		t.Errorf("a bad pair: %d %s", r.Status, r.Stderr)
	}
	if n, err := serial(t, s, &tls.Config{RootCAs: second}); n != 2 || err != nil {
		t.Errorf("after a failed reload: serial %d, %v", n, err)
	}
	a.Write("runner.toml", "[front]\nread_timeout = \"1s\"\n")
	if r := a.Run("reload"); r.Status != 3 || !strings.Contains(r.Stderr, "need a restart: [front] tls_cert") {
		t.Errorf("turning TLS off: %d %s", r.Status, r.Stderr)
	}
}

func TestAnInvalidCertificatePreventsStartup(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, pairSettings, "echo", "hostile")
	refused := func(want string) {
		t.Helper()
		if r := a.Run("serve", "--listen", "127.0.0.1:0"); r.Status != 3 || !strings.Contains(r.Stderr, want) {
			t.Errorf("%d %s, want %q", r.Status, r.Stderr, want)
		}
	}
	refused("cert.pem: no such file")
	writePair(t, a, 1)
	other, err := os.ReadFile(a.Path("key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	writePair(t, a, 2)
	a.Write("key.pem", string(other))
	refused("private key does not match public key")
	a.Write("runner.toml", "[front]\ntls_cert = \"cert.pem\"\n")
	refused("tls_key is not: set both")
}
