package backup_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"runner.example/keystore"
	"runner.example/node/backup"
	"runner.example/state/store"
	"runner.example/tests/harness"
)

// A backup, and a data directory that was restored, are on disk when the call returns.
func TestAPowerCutLosesNoBackupAndNoRestore(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the file system of the test")
	}
	content, pepper := oneBackup(t)
	disk := harness.NewForgetfulDisk(t)
	path := filepath.Join(disk.Dir, "backup")
	for _, force := range []bool{false, true} {
		info, err := backup.File(t.Context(), path, force, func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		disk.Cut()
		disk.Mount(0)
		if text, err := os.ReadFile(path); err != nil || !bytes.Equal(text, content) {
			t.Fatalf("after a power cut, forced: %v: %d of %d bytes, %v", force, len(text), len(content), err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		again, err := backup.Check(t.Context(), file)
		file.Close()
		if err != nil || again != info {
			t.Errorf("forced: %v: %+v, %v; want %+v", force, again, err, info)
		}
	}

	data := filepath.Join(disk.Dir, "data")
	if _, err := backup.Restore(t.Context(), bytes.NewReader(content), backup.RestoreOptions{Dir: data, Pepper: pepper}); err != nil {
		t.Fatal(err)
	}
	disk.Cut()
	disk.Mount(0)
	st, err := store.Open(store.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	err = st.View(t.Context(), func(tx *store.Tx) error {
		if value, err := tx.Get([]byte("key")); err != nil || string(value) != "value" {
			t.Errorf("after a power cut the restored store has %q, %v", value, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(pepper)
	if err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(keystore.Options{Dir: data}.PepperPath()); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the pepper after a power cut: %d bytes, %v", len(after), err)
	}
}
