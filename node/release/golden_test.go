package release_test

import (
	"testing"
	"testing/cryptotest"
	"time"

	"runner.example/node/release"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

func TestRecordsOfReleasesHaveTheFormOfTheLevel(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	st := open(t, store.Options{Dir: t.TempDir(), Clock: func() time.Time { return at }})
	r := release.New(st, release.Options{})
	for _, module := range []string{"one", "two"} {
		rel := add(t, st, r, module)
		if err := activate(t, st, release.Activation{ID: rel.ID}); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Golden(t, st, "releases", "release/")
}
