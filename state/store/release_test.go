package store_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/state/store"
)

// mappedBytes returns how many bytes of the files in dir with that extension are mapped in
// memory.
func mappedBytes(t *testing.T, dir, ext string) (total int) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip("the system does not tell which pages are mapped: ", err)
	}
	defer f.Close()
	counts := false
	for in := bufio.NewScanner(f); in.Scan(); {
		line := in.Text()
		var kib int
		if strings.Contains(line, dir) {
			counts = strings.HasSuffix(line, ext)
		} else if n, _ := fmt.Sscanf(line, "Rss: %d kB", &kib); n == 1 {
			if counts {
				total += kib << 10
			}
			counts = false
		}
	}
	return total
}

// Synced pages of a log are not read again, so they must not stay mapped.
func TestTheLogIsNotKeptMapped(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	random := rand.NewChaCha8([32]byte{})
	value := make([]byte, 64<<10)
	const commits, perCommit = 10, 16
	for i := range commits {
		if _, err := s.Update(context.Background(), func(tx *store.Tx) error {
			for j := range perCommit {
				_, _ = random.Read(value)
				if err := tx.Set(binary.BigEndian.AppendUint32(nil, uint32(i*perCommit+j)), value); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	written := commits * perCommit * len(value)
	if got := mappedBytes(t, filepath.Join(dir, "badger"), ".mem"); got > written/4 {
		t.Errorf("%d bytes of the log are mapped after %d were written", got, written)
	}
}
