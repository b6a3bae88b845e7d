package operations_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
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
// cert.pem and key.pem, and returns a pool with it. It is valid for 100 days.
func writePair(t *testing.T, a *harness.App, serial int64) *x509.CertPool {
	t.Helper()
	return writePairValid(t, a, serial, time.Now().Add(-time.Hour), time.Now().Add(100*24*time.Hour))
}

// writePairValid is writePair with the time in which the certificate is valid.
func writePairValid(t *testing.T, a *harness.App, serial int64, from, to time.Time) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: from, NotAfter: to,
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
	if r := a.Run("reload"); r.Stdout != "the TLS certificate of [front]\n" || strings.Contains(r.Stderr, "nothing has changed") {
		t.Errorf("changed: %q, %s", r.Stdout, r.Stderr)
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

// Certificates of both listeners are checked in the same way, at startup and by a reload.
func TestACertificateThatIsNotValidIsRefused(t *testing.T) {
	for section, toml := range map[string]string{"front": pairSettings, "admin": adminListen + "tls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\n"} {
		t.Run(section, func(t *testing.T) {
			a := harness.NewApp(t, harness.HostileSchema, toml, "echo", "hostile")
			hour := func(n int) time.Time { return time.Now().Add(time.Duration(n) * time.Hour) }
			rows := []struct {
				write func()
				want  string
			}{
				{func() { writePairValid(t, a, 2, hour(-48), hour(-1)) }, "the certificate expired at " + hour(-1).UTC().Format("2006-01-02")},
				{func() { writePairValid(t, a, 2, hour(1), hour(48)) }, "the certificate is not valid before " + hour(1).UTC().Format("2006-01-02")},
				{func() {
					writePair(t, a, 2)
					other := harness.MustRead(t, a.Path("key.pem"))
					writePair(t, a, 3)
					a.Write("key.pem", other)
				}, "private key does not match public key"},
				{func() { a.Write("cert.pem", "no certificate") }, "failed to find any PEM data"},
				{func() {
					if err := os.Remove(a.Path("key.pem")); err != nil {
						t.Fatal(err)
					}
				}, "key.pem: no such file"},
			}
			refused := func(command []string, want string) {
				t.Helper()
				if r := a.Run(command...); r.Status != 3 || !strings.Contains(r.Stderr, want) || !strings.Contains(r.Stderr, "["+section+"] tls_cert \"cert.pem\"") {
					t.Errorf("%s: %d %s, want %q", command[0], r.Status, r.Stderr, want)
				}
			}
			for _, row := range rows {
				row.write()
				refused([]string{"serve", "--listen", "127.0.0.1:0"}, row.want)
			}
			writePair(t, a, 1)
			s := a.Serve()
			defer s.Stop()
			for _, row := range rows {
				row.write()
				refused([]string{"reload"}, row.want)
			}
			writePair(t, a, 4)
			if got := reload(t, a).Changed; len(got) != 1 || !strings.HasPrefix(got[0], "the TLS certificate of ["+section+"]") {
				t.Errorf("changed: %q", got)
			}
			if got := reload(t, a).Changed; len(got) != 0 {
				t.Errorf("changed, though it is the same: %q", got)
			}
		})
	}
}

func TestTheExpiryOfCertificatesIsLoggedAndMeasured(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, pairSettings+"[metrics]\nlisten = \"127.0.0.1:0\"\n"+adminListen, "echo", "hostile")
	writePairValid(t, a, 1, time.Now().Add(-time.Hour), time.Now().Add(13*24*time.Hour+time.Hour))
	s := serveTLS(t, a)
	s.WaitForOutput(`"level":"WARN","msg":"certificate expires soon".*"listener":"front".*"days":13`)
	expiresIn := func(listener string) time.Duration {
		t.Helper()
		seconds, there := a.Metrics()[`runner_certificate_expiry_seconds{listener="`+listener+`"}`]
		if !there {
			t.Fatalf("there is no expiry of %s", listener)
		}
		return time.Duration(seconds) * time.Second
	}
	const day = 24 * time.Hour
	if got := expiresIn("front"); got <= 13*day || got > 13*day+time.Hour {
		t.Errorf("the certificate of [front] expires in %s", got)
	}
	if got := expiresIn("admin"); got < 1000*day {
		t.Errorf("the own certificate expires in %s", got)
	}
	writePairValid(t, a, 2, time.Now().Add(-time.Hour), time.Now().Add(3*day+time.Hour))
	reload(t, a)
	s.WaitForOutput(`"msg":"certificate expires soon".*"listener":"front".*"days":3`)
	writePair(t, a, 3)
	reload(t, a)
	if got := expiresIn("front"); got < 99*day {
		t.Errorf("the new certificate expires in %s", got)
	}
	if n := strings.Count(s.Stderr.String(), "certificate expires soon"); n != 2 {
		t.Errorf("%d lines of certificates that expire soon", n)
	}
}

// A rotation of the certificate breaks no client that names the fingerprints of both.
func TestClientsNameTheFingerprintsOfBothCertificates(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, adminListen+"tls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\n", "echo", "hostile")
	fingerprint := func() string { // as openssl x509 -fingerprint -sha256 prints it
		t.Helper()
		block, _ := pem.Decode([]byte(harness.MustRead(t, a.Path("cert.pem"))))
		sum := sha256.Sum256(block.Bytes)
		return strings.ToUpper(strings.ReplaceAll(fmt.Sprintf("% x", sum[:]), " ", ":"))
	}
	writePair(t, a, 2)
	next := []string{harness.MustRead(t, a.Path("cert.pem")), harness.MustRead(t, a.Path("key.pem")), fingerprint()}
	writePair(t, a, 1)
	first := fingerprint()
	a.Serve()
	there := statusOf(t, a)
	_, read := writeKey(t, a, "read")
	away := &harness.App{T: t, Dir: t.TempDir()}
	releases := func(flags ...string) harness.Result {
		return away.Run(append([]string{"releases", "--to", there.Admin, "--key-file", read}, flags...)...)
	}
	both := []string{"--fingerprint", first, "--fingerprint", next[2]}
	if r := releases(both...); r.Status != 0 {
		t.Errorf("before the rotation: %d %s", r.Status, r.Stderr)
	}
	a.Write("cert.pem", next[0])
	a.Write("key.pem", next[1])
	if got := reload(t, a).Changed; len(got) != 1 || got[0] != "the TLS certificate of [admin]: its fingerprint is "+statusOf(t, a).AdminFingerprint {
		t.Errorf("changed: %q", got)
	}
	if r := releases(both...); r.Status != 0 {
		t.Errorf("after the rotation: %d %s", r.Status, r.Stderr)
	}
	if r := releases("--fingerprint", first+","+next[2]); r.Status != 0 {
		t.Errorf("separated by a comma: %d %s", r.Status, r.Stderr)
	}
	if r := releases("--fingerprint", first); r.Status != 3 || !strings.Contains(r.Stderr, "and not ") {
		t.Errorf("with the old one alone: %d %s", r.Status, r.Stderr)
	}
	if r := releases("--fingerprint", first, "--fingerprint", "00"); r.Status != 3 || !strings.Contains(r.Stderr, "must be 64 hexadecimal digits") {
		t.Errorf("with a wrong one: %d %s", r.Status, r.Stderr)
	}
}
