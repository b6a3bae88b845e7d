package storetest

import (
	"fmt"
	"strings"
	"testing"

	"runner.example/internal/level/leveltest"
	"runner.example/state/store"
)

// Golden compares the records of s whose keys begin with prefix with those of the level in testdata of the
// test's package; see leveltest.Golden. Random bytes must be the same each time: see testing/cryptotest.
func Golden(t testing.TB, s *store.Store, name, prefix string) {
	t.Helper()
	var text strings.Builder
	err := s.View(t.Context(), func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte(prefix), nil, false) {
			if err != nil {
				return err
			}
			fmt.Fprintf(&text, "%+q\n    %+q\n", item.Key, item.Value)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if text.Len() == 0 {
		t.Fatalf("the store has no record whose key begins with %q", prefix)
	}
	leveltest.Golden(t, name, text.String())
}
