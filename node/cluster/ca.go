package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"runner.example/internal/atomicio"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
)

// ca signs the certificates of the nodes: ECDSA P-256, X.509 (RFC 5280).
type ca struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// clockSkew is how far the clock of a node may be behind that of the node that signs its certificate.
const clockSkew = 24 * time.Hour

// forever is the end of a certificate that has none (RFC 5280, 4.1.2.5).
var forever = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// newCA makes the CA of a cluster.
func newCA(cluster string) (*ca, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "runner cluster " + cluster},
		NotBefore: clock.System().Add(-clockSkew), NotAfter: forever,
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	a := &ca{cert: template, key: key}
	der, err := a.signTemplate(template, &key.PublicKey)
	if err != nil {
		return nil, err
	}
	a.cert, err = x509.ParseCertificate(der)
	return a, err
}

// signTemplate signs a certificate.
func (a *ca) signTemplate(template *x509.Certificate, public any) (der []byte, err error) {
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, err
	}
	return x509.CreateCertificate(rand.Reader, template, a.cert, public, a.key)
}

// sign returns the certificate of a node in PEM form, for the key that signed the request.
func (a *ca) sign(node Peer, request []byte) ([]byte, error) {
	csr, err := x509.ParseCertificateRequest(request)
	if err == nil {
		err = csr.CheckSignature()
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "the request for a certificate is not valid: %v", err)
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: node.Name},
		NotBefore: clock.System().Add(-clockSkew), NotAfter: forever,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	host, _, err := net.SplitHostPort(node.Address)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the address %q of the node is not valid", node.Address)
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := a.signTemplate(template, csr.PublicKey)
	if err != nil {
		return nil, err
	}
	return pemOf("CERTIFICATE", der), nil
}

// fingerprint identifies a CA: the SHA-256 of its certificate.
func (a *ca) fingerprint() [32]byte { return sha256.Sum256(a.cert.Raw) }

// certPEM returns the certificate of the CA.
func (a *ca) certPEM() []byte { return pemOf("CERTIFICATE", a.cert.Raw) }

// keyPEM returns the key of the CA.
func (a *ca) keyPEM() ([]byte, error) { return keyPEM(a.key) }

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pemOf("PRIVATE KEY", der), nil
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// readCA reads the CA with its key, which only voters have.
func readCA(data string) (*ca, error) {
	pair, err := tls.LoadX509KeyPair(files(data, caFile), files(data, caKeyFile))
	if err != nil {
		return nil, fmt.Errorf("read the CA of the cluster: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fault.New(fault.Invalid, "the key of the cluster's CA is not an ECDSA key")
	}
	return &ca{pair.Leaf, key}, nil
}

// newCSR makes a key for a node, and the request to sign a certificate for it.
func newCSR(name string) (keyText, request []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	request, err = x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err == nil {
		keyText, err = keyPEM(key)
	}
	return keyText, request, err
}

// credentials are the files of a node in PEM form; caKey is nil for an edge node.
type credentials struct{ ca, caKey, cert, key []byte }

func (c credentials) write(data string) error {
	if err := os.MkdirAll(files(data), 0o700); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{caFile, c.ca}, {caKeyFile, c.caKey}, {certFile, c.cert}, {keyFile, c.key}} {
		if f.text == nil {
			continue
		}
		if err := atomicio.WriteFile(files(data, f.name), f.text); err != nil {
			return err
		}
	}
	return nil
}

// nodeTLS is what a node needs for TLS with the others.
type nodeTLS struct {
	pair  tls.Certificate
	roots *x509.CertPool
}

// readNodeTLS reads the files of a node.
func readNodeTLS(data string) (*nodeTLS, error) {
	c := credentials{}
	unusable := func(err error) error {
		return fault.Wrap(err, fault.Invalid,
			"the certificates of the node in %q cannot be used (%v): restore them from a copy, or remove the node with runner cluster leave on another one and join again with a new data directory",
			files(data), err)
	}
	for _, f := range []struct {
		name string
		text *[]byte
	}{{caFile, &c.ca}, {certFile, &c.cert}, {keyFile, &c.key}} {
		var err error
		if *f.text, err = os.ReadFile(files(data, f.name)); err != nil {
			return nil, unusable(err)
		}
	}
	t, err := newNodeTLS(c)
	if err != nil {
		return nil, unusable(err)
	}
	return t, nil
}

func newNodeTLS(c credentials) (*nodeTLS, error) {
	pair, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(c.ca)
	if block == nil {
		return nil, errors.New("the certificate of the CA is not in PEM form")
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	t := &nodeTLS{pair: pair, roots: x509.NewCertPool()}
	t.roots.AddCert(ca)
	t.pair.Certificate = append(t.pair.Certificate, ca.Raw) // for machines that only know its fingerprint
	return t, nil
}

// server returns the settings of the listener for other nodes. Machines that join have no
// certificate: each operation but the joining checks that there is one.
func (t *nodeTLS) server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{t.pair}, ClientCAs: t.roots,
		ClientAuth: tls.VerifyClientCertIfGiven, NextProtos: []string{"http/1.1"},
	}
}

// client returns the settings of connections to other nodes.
func (t *nodeTLS) client() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{t.pair}, RootCAs: t.roots}
}

// joining returns the settings of a connection by a machine that only knows the fingerprint of the CA.
func joining(want [32]byte) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, // VerifyConnection does it
		VerifyConnection: func(state tls.ConnectionState) error {
			if n := len(state.PeerCertificates); n == 2 {
				leaf, ca := state.PeerCertificates[0], state.PeerCertificates[1]
				sum := sha256.Sum256(ca.Raw)
				if sum == want && leaf.CheckSignatureFrom(ca) == nil {
					return nil
				}
			}
			return fault.New(fault.Invalid,
				"the server does not have a certificate of the cluster that sent the invitation (its CA has the fingerprint %s)",
				hex.EncodeToString(want[:]))
		},
	}
}
