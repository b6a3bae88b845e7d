package deploy_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/internal/console"
	"runner.example/node/deploy"
)

// pemOf returns a PEM block of a kind.
func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// pkcs8 returns a private key in DER form.
func pkcs8(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestAPrivateKeyIsReadFromItsFile(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := pemOf("PRIVATE KEY", pkcs8(t, private))
	path := filepath.Join(t.TempDir(), "release.pem")
	for _, mode := range []os.FileMode{0o600, 0o400} {
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte("a comment\n"+good), mode); err != nil {
			t.Fatal(err)
		}
		if key, err := deploy.ReadKey(path); err != nil || !key.Equal(private) {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
	if key, err := deploy.ReadKey(""); key != nil || err != nil {
		t.Errorf("without a path: %v", err)
	}
	// A pipe has no mode of its own.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString(good); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	if key, err := deploy.ReadKey("/proc/self/fd/" + fmt.Sprint(r.Fd())); err != nil || !key.Equal(private) {
		t.Errorf("a pipe: %v", err)
	}
}

func TestAFileWithoutAnEd25519KeyIsRefused(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der := pkcs8(t, private)
	for want, text := range map[string]string{
		"does not contain a private key in PEM form": "rnp_0000\n",
		"the key is not an Ed25519 key":              pemOf("PRIVATE KEY", pkcs8(t, other)),
		"the key is damaged, or of an unknown kind":  pemOf("PRIVATE KEY", der[:len(der)-1]),
		"the key is encrypted":                       pemOf("ENCRYPTED PRIVATE KEY", der),
		`begins with "OPENSSH PRIVATE KEY"`:          pemOf("OPENSSH PRIVATE KEY", der),
		"name the file of its private key":           pemOf("PUBLIC KEY", der),
		`begins with "CERTIFICATE"`:                  pemOf("CERTIFICATE", der),
	} {
		path := filepath.Join(t.TempDir(), "release.pem")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := deploy.ReadKey(path)
		f, ok := errors.AsType[*console.Failure](err)
		if !ok || f.Status != console.StatusInvalid || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("want %q, got %v", want, err)
		}
		if line := strings.SplitN(text, "\n", 3)[1]; line != "" && strings.Contains(err.Error(), line) {
			t.Errorf("the error shows the key: %v", err)
		}
	}
}
