package entity_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"runner.example/internal/diag"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
	"runner.example/state/entity/catalog"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// nodes returns fixtures of nodes that share one log. The first one is the owner.
func nodes(t *testing.T, names ...string) (all []*fixture) {
	t.Helper()
	for _, st := range storetest.NewLog().Nodes(t, names...) {
		all = append(all, &fixture{t: t, store: st})
	}
	return all
}

// follow takes over the schema that another node has activated.
func (h *fixture) follow(text string) {
	h.t.Helper()
	storetest.CatchUp(h.t, h.store)
	s, list := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{})
	if s == nil {
		h.t.Fatalf("the schema does not compile: %v", list)
	}
	m, err := entity.Current(h.t.Context(), h.store, s, entity.Options{CursorKey: [32]byte{7}})
	if err != nil || m == nil {
		h.t.Fatalf("the schema is not the active one: %v", err)
	}
	h.model = m
}

// touched returns how many rows the clerk's count of Items of size 7 reads.
func (h *fixture) touched() (n int) {
	h.t.Helper()
	err := h.in(clerk, func(a *entity.Access) error {
		var out entity.Result
		err := a.Do("count", []byte(`{"from":"Item","where":[["size","=",7]]}`), &out)
		n = a.Touched()
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

// build begins to build indexes, and returns a function that waits for the end.
func (h *fixture) build(ctx context.Context, progress func(catalog.Progress)) (end func() error) {
	ended := make(chan error, 1)
	go func() { ended <- h.model.BuildIndexes(ctx, progress) }()
	return func() error { return <-ended }
}

// fill inserts so many Items of size 1, and ten of size 7.
func (h *fixture) fill(n int) {
	h.t.Helper()
	for ; n > 0; n -= 500 {
		h.must(clerk, "insert", `{"into":"Item","values":[`+strings.TrimSuffix(strings.Repeat(`{"size":1},`, 500), ",")+`]}`)
	}
	h.must(clerk, "insert", `{"into":"Item","values":[`+strings.TrimSuffix(strings.Repeat(`{"size":7},`, 10), ",")+`]}`)
}

func TestOnlyTheOwnerActivates(t *testing.T) {
	of := nodes(t, "a", "b")
	a, b := of[0], of[1]
	if err := a.activate(with("size: int")); err != nil {
		t.Fatal(err)
	}
	storetest.CatchUp(t, b.store)
	before := b.store.Health().Applied
	if err := b.activate(with("size: int @index")); !errors.Is(err, store.ErrNotOwner) {
		t.Errorf("of another schema: %v", err)
	}
	if err := b.activate(with("size: int")); !errors.Is(err, store.ErrNotOwner) {
		t.Errorf("of the same schema: %v", err)
	}
	if err := catalog.TakeOver(t.Context(), b.store); !errors.Is(err, store.ErrNotOwner) {
		t.Errorf("taking over: %v", err)
	}
	if seq := b.store.Health().Applied; seq != before {
		t.Errorf("%d entries were written", seq-before)
	}
}

func TestAnotherNodeUsesAnIndexWhenTheOwnerHasBuiltIt(t *testing.T) {
	of := nodes(t, "a", "b")
	a, b := of[0], of[1]
	text := with("size: int @index")
	if err := a.activate(with("size: int")); err != nil {
		t.Fatal(err)
	}
	a.fill(1000)
	if err := a.activate(text); err != nil {
		t.Fatal(err)
	}
	b.follow(text)
	ctx, stop := context.WithCancel(t.Context())
	end := b.build(ctx, func(p catalog.Progress) { t.Errorf("b builds: %+v", p) })
	if got := b.touched(); got != 1010 {
		t.Errorf("before it is built %d rows are touched", got)
	}
	b.insert(clerk, "Item", `{"size":7}`) // which is in the index
	if err := a.model.BuildIndexes(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	storetest.CatchUp(t, b.store)
	stop()
	if err := end(); !errors.Is(err, context.Canceled) {
		t.Errorf("the build of b ended: %v", err)
	}
	// Whether b followed before or after the end of the build, the index is used.
	if got := b.touched(); got != 11 {
		t.Errorf("once it is built %d rows are touched", got)
	}
	a.verify()
	b.verify()
}

func TestANewOwnerContinuesTheBuildOfAnIndex(t *testing.T) {
	of := nodes(t, "a", "b")
	a, b := of[0], of[1]
	text := with("size: int @index")
	if err := a.activate(with("size: int")); err != nil {
		t.Fatal(err)
	}
	a.fill(5000)
	if err := a.activate(text); err != nil {
		t.Fatal(err)
	}
	b.follow(text)
	var ofA, ofB int
	endB := b.build(t.Context(), func(p catalog.Progress) { ofB = p.Rows })
	ctx, stop := context.WithCancel(t.Context())
	endA := a.build(ctx, func(p catalog.Progress) {
		if ofA = p.Rows; ofA > 2000 {
			storetest.Own(t, b.store)
		}
	})
	if err := endB(); err != nil {
		t.Fatal(err)
	}
	storetest.CatchUp(t, a.store)
	if got := a.touched(); got != 10 {
		t.Errorf("on the former owner %d rows are touched", got)
	}
	stop()
	if err := endA(); !errors.Is(err, context.Canceled) {
		t.Errorf("the build of a ended: %v", err)
	}
	if ofA <= 2000 || ofA+ofB != 5010 {
		t.Errorf("a built %d rows, and b %d", ofA, ofB)
	}
	a.verify()
	b.verify()
}

// The activation builds an index ahead and stops writers. Then its node is not the owner any more.
func TestAnActivationEndsWithTheTenureOfItsNode(t *testing.T) {
	for name, again := range map[string]bool{"another owner": false, "the same owner again": true} {
		t.Run(name, func(t *testing.T) {
			of := nodes(t, "a", "b")
			a, b := of[0], of[1]
			old, next := with("name: text"), with("name: text @unique")
			if err := a.activate(old); err != nil {
				t.Fatal(err)
			}
			b.follow(old)
			for _, name := range []string{"x", "y"} {
				a.insert(clerk, "Item", `{"name":"`+name+`"}`)
			}
			runs := 0
			err := a.activateWith(next, entity.Options{Also: func(*store.Tx) error {
				if runs++; runs > 1 {
					return nil
				}
				if _, err := b.do(clerk, "insert", `{"into":"Item","values":{"name":"while stopped"}}`); !errors.Is(err, entity.ErrOutdated) {
					t.Errorf("a writer of the other node is not stopped: %v", err)
				}
				storetest.Own(t, b.store)
				if !again {
					return nil
				}
				err := catalog.TakeOver(t.Context(), b.store)
				b.insert(clerk, "Item", `{"name":"x"}`) // a second one
				storetest.Own(t, a.store)
				return err
			}})
			if !errors.Is(err, store.ErrNotOwner) || runs != 1 {
				t.Errorf("after %d runs: %v", runs, err)
			}
			if err := catalog.TakeOver(t.Context(), map[bool]*fixture{true: a, false: b}[again].store); err != nil {
				t.Error(err)
			}
			for _, h := range of {
				storetest.CatchUp(t, h.store)
				h.insert(clerk, "Item", `{"name":"x"}`) // the schema is the old one
				h.verify()
			}
		})
	}
}
