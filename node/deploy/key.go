package deploy

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"

	"runner.example/internal/console"
)

// maxKeyFile limits the file of a private key, in bytes: an Ed25519 key has about 120.
const maxKeyFile = 64 << 10

// ReadKey reads the private key that signs releases, which --sign names: Ed25519, PKCS #8 in PEM
// form. For an empty path the key is nil. The file may be a pipe; a regular file must not be accessible to
// other users. The error is a *console.Failure. It contains nothing of the file.
func ReadKey(path string) (ed25519.PrivateKey, error) {
	if path == "" {
		return nil, nil
	}
	text, err := readKeyFile(path)
	if err != nil {
		return nil, console.Invalid("--sign: %w", err)
	}
	key, err := parseKey(text)
	if err != nil {
		return nil, console.Invalid("--sign %s: %w", path, err)
	}
	return key, nil
}

func readKeyFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode(); mode.IsRegular() && mode&0o077 != 0 {
		return nil, fmt.Errorf("the file %q is accessible to users other than its owner (mode %04o): run chmod 600 on it", path, mode.Perm())
	}
	return io.ReadAll(io.LimitReader(file, maxKeyFile))
}

func parseKey(text []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, otherKey("the file does not contain a private key in PEM form")
	}
	switch block.Type {
	case "PRIVATE KEY":
	case "ENCRYPTED PRIVATE KEY":
		return nil, errors.New("the key is encrypted: decrypt it into a pipe, such as --sign <(openssl pkey -in release.pem)")
	case "PUBLIC KEY":
		return nil, errors.New("the file contains a public key: name the file of its private key")
	default:
		return nil, otherKey("the file begins with %.40q, and not with PRIVATE KEY", block.Type)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, otherKey("the key is damaged, or of an unknown kind")
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, otherKey("the key is not an Ed25519 key")
	}
	return key, nil
}

// otherKey returns an error that says how to create another key.
func otherKey(format string, args ...any) error {
	return fmt.Errorf(format+": create a key with openssl genpkey -algorithm ed25519", args...)
}
