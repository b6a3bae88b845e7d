package store_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runner.example/state/store"
)

func TestAStoreWhoseDirectoryWasRemovedCloses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(context.Background(), func(tx *store.Tx) error { return tx.Set([]byte("k"), []byte("v")) }); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "its content is lost") {
		t.Errorf("closed with %v", err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}
