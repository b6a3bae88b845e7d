package store_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"runner.example/state/store"
)

// TestRandomTransactionsMatchAMap runs random transactions, one at a time,
// on a store and on a map, and sometimes reopens the store on disk. It continues on forks, and on forks
// of forks; what they are of must not change meanwhile.
func TestRandomTransactionsMatchAMap(t *testing.T) {
	for kind, dir := range map[string]string{"disk": t.TempDir(), "memory": ""} {
		t.Run(kind, func(t *testing.T) {
			p := program{fatal: t.Fatal, options: store.Options{Dir: dir}}
			p.open()
			rapid.Check(t, func(rt *rapid.T) {
				p.t, p.fatal, p.model = rt, rt.Fatal, map[string]string{}
				if _, err := p.store.Update(context.Background(), clearAll); err != nil {
					rt.Fatal(err)
				}
				for range rapid.IntRange(1, 12).Draw(rt, "transactions") {
					p.transaction()
					switch step := rapid.IntRange(0, 99).Draw(rt, "reopen or fork"); {
					case dir != "" && step == 50 && len(p.below) == 0:
						p.close()
						p.open()
					case step > 80:
						p.fork()
					case step < 8 && len(p.below) > 0:
						p.closeFork()
					}
				}
				for len(p.below) > 0 {
					p.closeFork()
				}
			})
			p.fatal = t.Fatal
			p.close()
		})
	}
}

type program struct {
	t       *rapid.T
	fatal   func(...any)
	options store.Options
	store   *store.Store
	model   map[string]string
	below   []held // what store is a fork of, and so on
}

// held is a store, and what it must have.
type held struct {
	store *store.Store
	model map[string]string
}

func (p *program) open() {
	s, err := store.OpenWindow(p.options, 5)
	if err != nil {
		p.fatal(err)
	}
	p.store = s
}

// fork continues on a fork of the store.
func (p *program) fork() {
	f, err := p.store.Fork(store.ForkOptions{})
	if err != nil {
		p.fatal(err)
	}
	p.below = append(p.below, held{p.store, p.model})
	p.store, p.model = f, maps.Clone(p.model)
}

// closeFork closes the fork and continues on the store that it is of, or closes another fork below it.
func (p *program) closeFork() {
	last := len(p.below) - 1
	if at := rapid.IntRange(0, last).Draw(p.t, "close"); at > 0 && at < last {
		if err := p.below[at].store.Close(); err != nil {
			p.fatal(err)
		}
		p.below = slices.Delete(p.below, at, at+1)
		return
	}
	p.close()
	p.store, p.model = p.below[last].store, p.below[last].model
	p.below = p.below[:last]
	if _, err := p.store.Update(context.Background(), func(tx *store.Tx) error {
		p.scanAll(tx)
		return nil
	}); err != nil {
		p.fatal(err)
	}
}

func (p *program) close() {
	if err := p.store.Close(); err != nil {
		p.fatal(err)
	}
}

// Keys of few letters are often equal; those with 0xff and 0x00 are at the ends of
// prefixes.
var (
	keys     = rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00")), 1, 4, -1)
	prefixes = rapid.OneOf(rapid.Just(""), rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00")), 0, 2, -1), rapid.SampledFrom([]string{"a\xff", "\xff", "\xff\xff"}))
	anyKeys  = rapid.OneOf(keys, keys, keys, rapid.SampledFrom([]string{"\xff", "a\xff", "a\xffb", "\xff\xff", "\xff\xffa"}))
	short    = rapid.StringN(0, 8, -1)
	long     = rapid.Map(rapid.IntRange(500<<10, 1600<<10), func(n int) string { return strings.Repeat("x", n) })
	values   = rapid.OneOf(short, short, short, short, short, short, short, short, short, long)
)

// transaction runs one random transaction; some end with an error.
func (p *program) transaction() {
	giveUp := errors.New("given up")
	model := maps.Clone(p.model)
	wrote := false
	before := p.store.Health().Applied
	seq, err := p.store.Update(context.Background(), func(tx *store.Tx) error {
		for range rapid.IntRange(0, 8).Draw(p.t, "operations") {
			wrote = p.operation(tx, model) || wrote
		}
		if rapid.IntRange(0, 4).Draw(p.t, "give up") == 0 {
			return giveUp
		}
		return nil
	})
	switch {
	case err == nil:
		p.model = model
	case err != giveUp:
		p.t.Fatal(err)
	}
	if committed := err == nil && wrote; committed && seq != before+1 || !committed && seq != 0 {
		p.t.Fatalf("commit %d after %d, written %v, error %v", seq, before, wrote, err)
	}
}

func (p *program) operation(tx *store.Tx, model map[string]string) (wrote bool) {
	switch rapid.SampledFrom([]string{"get", "set", "set", "delete", "scan"}).Draw(p.t, "operation") {
	case "get":
		key := anyKeys.Draw(p.t, "key")
		want, ok := model[key]
		if !ok {
			want = "<none>"
		}
		if got := get(tx, key); got != want {
			p.t.Fatalf("%q reads %.20q, want %.20q", key, got, want)
		}
	case "set":
		key, value := anyKeys.Draw(p.t, "key"), values.Draw(p.t, "value")
		if err := tx.Set([]byte(key), []byte(value)); err != nil {
			p.t.Fatal(err)
		}
		model[key] = value
		return true
	case "delete":
		key := anyKeys.Draw(p.t, "key")
		if err := tx.Delete([]byte(key)); err != nil {
			p.t.Fatal(err)
		}
		delete(model, key)
		return true
	case "scan":
		p.scan(tx, model)
	}
	return false
}

func (p *program) scan(tx *store.Tx, model map[string]string) {
	prefix, back := prefixes.Draw(p.t, "prefix"), rapid.Bool().Draw(p.t, "reverse")
	from := rapid.OneOf(rapid.Just(""), anyKeys).Draw(p.t, "from")
	var want []string
	for _, k := range slices.Sorted(maps.Keys(model)) {
		inside := from == "" || !back && k >= from || back && k <= from
		if inside && strings.HasPrefix(k, prefix) {
			want = append(want, k)
		}
	}
	if back {
		slices.Reverse(want)
	}
	got := p.scanned(tx, model, prefix, from, back)
	if !slices.Equal(got, want) {
		p.t.Fatalf("scan(%q, %q, %v) yields %q, want %q", prefix, from, back, got, want)
	}
}

// scanAll compares all keys and values.
func (p *program) scanAll(tx *store.Tx) {
	if got, want := p.scanned(tx, p.model, "", "", false), slices.Sorted(maps.Keys(p.model)); !slices.Equal(got, want) {
		p.t.Fatalf("it has %q, want %q", got, want)
	}
}

// scanned scans, compares the values, and returns the keys.
func (p *program) scanned(tx *store.Tx, model map[string]string, prefix, from string, back bool) (got []string) {
	within := prefix[:rapid.IntRange(0, len(prefix)).Draw(p.t, "within")]
	for item, err := range tx.ScanWithin([]byte(within), []byte(prefix), []byte(from), back) {
		if err != nil {
			p.t.Fatal(err)
		}
		got = append(got, string(item.Key))
		if v := model[string(item.Key)]; string(item.Value) != v {
			p.t.Fatalf("scan: %q is %.20q, want %.20q", item.Key, item.Value, v)
		}
	}
	return got
}
