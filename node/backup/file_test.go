package backup_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"runner.example/keystore"
	"runner.example/node/backup"
	"runner.example/state/store"
)

// oneBackup returns the bytes of a backup of a store with one key, and the path of its pepper.
func oneBackup(t *testing.T) (content []byte, pepper string) {
	t.Helper()
	dir := t.TempDir()
	st, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	keys, err := keystore.Open(t.Context(), st, keystore.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	if _, err := st.Update(t.Context(), func(tx *store.Tx) error { return tx.Set([]byte("key"), []byte("value")) }); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := backup.Write(t.Context(), st, keys, "", &out, nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), keystore.Options{Dir: dir}.PepperPath()
}

// Two opens of the partial file behave like two processes, because the lock belongs to the
// open file.
func TestBackupsToOneNameDoNotDamageEachOther(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that package os reads is not replaced there")
	}
	content, _ := oneBackup(t)
	path := filepath.Join(t.TempDir(), "backup")
	var writers sync.WaitGroup
	var written atomic.Int64
	for range 4 {
		writers.Go(func() {
			for written.Load() < 200 {
				_, err := backup.File(t.Context(), path, true, func(w io.Writer) error {
					_, err := w.Write(content)
					return err
				})
				switch {
				case err == nil:
					written.Add(1)
				case !strings.Contains(err.Error(), "another process"):
					t.Error(err)
					return
				}
				first := written.Load() == 0
				if file, err := os.ReadFile(path); !first && !bytes.Equal(file, content) {
					t.Errorf("the file has %d of %d bytes, %v", len(file), len(content), err)
					return
				}
			}
		})
	}
	writers.Wait()
}
