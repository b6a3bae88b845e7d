package app

import (
	"os"

	"runner.example/internal/console"
)

// SecretFile is a new file for a secret, with mode 0600.
type SecretFile struct {
	Path string
	file *os.File
}

// NewSecretFile creates the file that the flag --out names; nil if path is empty. It never
// replaces a file.
func NewSecretFile(path string) (*SecretFile, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if os.IsExist(err) {
		f := console.Invalid("--out %s: the file exists", path)
		f.Hint = "name a new file: a secret never replaces a file"
		return nil, f
	}
	if err != nil {
		return nil, console.Invalid("--out: %w", err)
	}
	return &SecretFile{path, file}, nil
}

// Write writes the secret and a newline, and syncs the file.
func (t *SecretFile) Write(secret string) error {
	_, err := t.file.WriteString(secret + "\n")
	if err == nil {
		err = t.file.Sync()
	}
	return err
}

// Close closes the file, and removes it unless keep is set. t may be nil.
func (t *SecretFile) Close(keep bool) {
	if t == nil {
		return
	}
	_ = t.file.Close() // written to disk by Write
	if !keep {
		_ = os.Remove(t.Path)
	}
}
