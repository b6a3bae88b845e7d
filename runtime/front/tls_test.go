package front_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	"runner.example/hostabi/abi"
	"runner.example/runtime/front"
)

// certificate returns a self-signed certificate for 127.0.0.1, and a pool with it.
func certificate(t *testing.T) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(crand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// Large answers are written by the connection itself, and wait outside the heap.
func TestBodiesAndAnswersOfEverySizeAreEncrypted(t *testing.T) {
	pair, pool := certificate(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	startOn(t, ln, front.Options{Certificate: pair}, func(x *front.Exchange) {
		if err := x.ReadBody(64 << 20); err != nil {
			x.Refuse(err, front.Extra{})
			return
		}
		if x.BuildHeaders(); !x.Request.Secure {
			t.Error("a request over TLS is not secure")
		}
		x.Send(&abi.Response{Status: 200, Body: bytes.Clone(x.Request.Body)})
	})
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	for _, size := range []int{0, 1, 16 << 10, 64 << 10, 1 << 20, 9 << 20} {
		body := make([]byte, size)
		for i := range body {
			body[i] = byte(i * 7)
		}
		got, err := client.Post("https://"+ln.Addr().String()+"/", "application/octet-stream", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(got.Body)
		if err != nil || got.StatusCode != 200 || !bytes.Equal(answer, body) {
			t.Errorf("%d bytes: status %d, %d bytes, %v", size, got.StatusCode, len(answer), err)
		}
		_ = got.Body.Close()
	}
	client.CloseIdleConnections()
}
