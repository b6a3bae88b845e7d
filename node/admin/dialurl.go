package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/internal/system/socket"
)

// dialTimeout limits the time until a connection to a server on the network is encrypted.
const dialTimeout = 30 * time.Second

// DialURL returns a client of the server with that URL, such as https://edge-1.example.com:9443,
// once it has shown its certificate. Its SHA-256, 64 hexadecimal digits, must be one of fingerprints; if
// there are none, the certificate must be valid for the host by the roots of this machine. token is
// that of a platform key. It is only sent over connections with that certificate. Faults: Invalid
// (an argument, or the certificate), Unavailable (the server cannot be reached).
func DialURL(ctx context.Context, address string, fingerprints []string, token secret.Token) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.New(fault.Invalid, "%q is not the URL of a node: write https://host:port", address)
	}
	d := &tlsDialer{host: u.Hostname(), port: u.Port(), url: "https://" + u.Host}
	if d.port == "" {
		d.port = "443"
	}
	for _, text := range fingerprints {
		fingerprint, err := parseFingerprint(text)
		if err != nil {
			return nil, err
		}
		d.fingerprints = append(d.fingerprints, fingerprint)
	}
	first, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	_ = first.Close() // it has shown who the server is
	return NewClient(&peer{
		transport: &http.Transport{
			DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.dial(ctx) },
			// As on the socket: an operation is sent at most once.
			DisableKeepAlives:     true,
			ExpectContinueTimeout: continueTimeout,
		},
		base: d.url + RemotePath, token: token, answerTimeout: AnswerTimeout,
	}), nil
}

// tlsDialer connects to one server.
type tlsDialer struct {
	host, port, url string
	fingerprints    []string // none: the certificate is verified by the roots of this machine
}

// dial returns an encrypted connection to the server that has the right certificate. The error is
// a fault.
func (d *tlsDialer) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var plain net.Dialer
	conn, err := plain.DialContext(ctx, "tcp", net.JoinHostPort(d.host, d.port))
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "connect to %s", d.url)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: d.host, NextProtos: []string{"http/1.1"}}
	if len(d.fingerprints) > 0 {
		config.InsecureSkipVerify = true // checkFingerprint verifies the certificate
		config.VerifyConnection = d.checkFingerprint
	}
	encrypted := tls.Client(answeredConn{conn}, config)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, d.explain(err)
	}
	return encrypted, nil
}

// checkFingerprint refuses a certificate with another fingerprint. That the server has its key, the
// handshake has verified.
func (d *tlsDialer) checkFingerprint(state tls.ConnectionState) error {
	if got := Fingerprint(state.PeerCertificates[0].Raw); !slices.Contains(d.fingerprints, got) {
		return fault.New(fault.Invalid, "the certificate of %s has the fingerprint %s, and not %s: another server answers there, or its certificate was replaced", d.url, got, strings.Join(d.fingerprints, " or ")).
			WithHint("runner status on the node shows the fingerprint in force; name it with --fingerprint if it is this one")
	}
	return nil
}

// explain returns the fault for a handshake that failed.
func (d *tlsDialer) explain(err error) error {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f
	}
	if invalid, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		shown := ""
		if c := invalid.UnverifiedCertificates[0]; bytes.Equal(c.RawIssuer, c.RawSubject) { // it is self-signed
			shown = fmt.Sprintf(". If runner status on the node shows the fingerprint %s, name it with --fingerprint", Fingerprint(c.Raw))
		}
		return fault.New(fault.Invalid, "this machine does not trust the certificate of %s: %v%s", d.url, invalid.Err, shown)
	}
	if errors.Is(err, io.EOF) || socket.Broken(err) {
		return fault.Wrap(err, fault.Unavailable, "%s closed the connection: it may have too many from this address", d.url)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.Wrap(err, fault.Unavailable, "%s has accepted the connection and has not answered: the node may hang, or the address is not its admin listener", d.url)
	}
	return fault.Wrap(err, fault.Unavailable, "begin an encrypted connection to %s", d.url)
}

// Fingerprint returns the SHA-256 of a certificate in DER form, as 64 hexadecimal digits.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// parseFingerprint returns a fingerprint in the form of Fingerprint. Upper case and colons between
// the bytes are accepted, as openssl prints them.
func parseFingerprint(text string) (string, error) {
	plain := strings.ToLower(strings.ReplaceAll(text, ":", ""))
	if b, err := hex.DecodeString(plain); err != nil || len(b) != sha256.Size {
		return "", fault.New(fault.Invalid, "fingerprint %q is not valid: it must be 64 hexadecimal digits, as runner status shows it", text)
	}
	return plain, nil
}
