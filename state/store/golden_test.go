package store_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"runner.example/internal/level/leveltest"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// The chain has the bytes of all entries and the verdicts about them: the rules that decide commits are part
// of the level.
func TestTheRulesThatDecideCommitsAreThoseOfTheLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window, entries = 20, 600
		log := store.NewSimLog(nil)
		c := startNodes(t, log, 1, window)
		f := &feed{random: rand.New(rand.NewPCG(1, 2)), window: window}
		for seq := range store.Seq(entries) {
			log.Put(f.next(seq + 1))
		}
		if err := c.stores[0].WaitFor(t.Context(), entries); err != nil {
			t.Fatal(err)
		}
		record, limits := store.SharedForms()
		var text strings.Builder
		fmt.Fprintf(&text, "chain of %d entries %s\nrecord of the log %x\nlimits %s\n", entries, c.stores[0].Chain(), record, limits)
		leveltest.Golden(t, "rules", text.String())
	})
}

func TestRecordsOfTheStoreHaveTheFormOfTheLevel(t *testing.T) {
	s := storetest.NewLog().Nodes(t, "n1")[0]
	storetest.Golden(t, s, "owner", "cluster/")
	leveltest.Golden(t, "level", fmt.Sprintf("%s\n", store.LevelForm(7, "v1.2.3")))
}
