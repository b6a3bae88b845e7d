package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"runner.example/internal/atomicio"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
)

// The names of the files in the data directory.
const (
	certificateFile = "admin-cert.pem"
	keyFile         = "admin-key.pem"
)

// OwnCertificate returns the self-signed certificate of the data directory dir, which clients
// verify by its fingerprint. If there is none, it is created: ECDSA P-256, two files with mode
// 0600. One process at a time may call it for a directory.
func OwnCertificate(dir string) (*tls.Certificate, error) {
	certPath, keyPath := filepath.Join(dir, certificateFile), filepath.Join(dir, keyFile)
	if _, err := os.Stat(certPath); errors.Is(err, fs.ErrNotExist) {
		if err := createCertificate(certPath, keyPath); err != nil {
			return nil, fmt.Errorf("create the certificate of the admin listener: %w", err)
		}
	}
	pair, err := tls.LoadX509KeyPair(certPath, keyPath)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "the certificate %s with the key %s cannot be used: restore them, or remove both for new ones with another fingerprint", certPath, keyPath)
	}
	return &pair, nil
}

// createCertificate writes the key first: a key without a certificate was never used, because no
// client can know its fingerprint.
func createCertificate(certPath, keyPath string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "runner"},
		NotBefore: clock.System().Add(-24 * time.Hour),              // the clock of a client may be behind
		NotAfter:  time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // it has no end (RFC 5280, 4.1.2.5)
		KeyUsage:  x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	if err := writePEM(keyPath, "PRIVATE KEY", keyDER); err != nil {
		return err
	}
	return writePEM(certPath, "CERTIFICATE", der)
}

func writePEM(path, kind string, der []byte) error {
	return atomicio.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
