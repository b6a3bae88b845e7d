package release_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/node/release"
	"runner.example/state/audit"
	"runner.example/state/store"
)

var someone = release.Author{Actor: audit.Actor{Kind: "system", ID: "uid:0"}, RequestID: "01hx"}

func open(t *testing.T, opt store.Options) *store.Store {
	t.Helper()
	st, err := store.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// files are those of a release with a module of that content.
func files(module string) []release.FileData {
	return []release.FileData{{Name: "app.schema", Data: []byte("app shop {}")}, {Name: "build/app.wasm", Data: []byte(module)}}
}

func add(t *testing.T, st *store.Store, r *release.Releases, module string) release.Release {
	t.Helper()
	staged, err := r.Stage(t.Context(), "shop", files(module), someone)
	if err != nil {
		t.Fatal(err)
	}
	var rel release.Release
	_, err = st.Update(t.Context(), func(tx *store.Tx) (err error) {
		if err := staged.Add(tx); err != nil {
			return err
		}
		rel, err = release.Get(tx, staged.ID)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rel
}

func activate(t *testing.T, st *store.Store, a release.Activation) error {
	t.Helper()
	a.By = someone
	if a.Origin == "" {
		a.Origin = release.Deploy
	}
	_, err := st.Update(t.Context(), a.Activate)
	return err
}

func TestAnIDIsMadeFromTheFiles(t *testing.T) {
	m := release.Describe("shop", files("one"))
	id := m.ID()
	if id != "rel_e7cn7q0rqk5hekzxbctng5629c" || release.CheckID(id) != nil {
		t.Errorf("id %s, %v", id, release.CheckID(id))
	}
	turned := m
	turned.Files = []release.File{m.Files[1], m.Files[0]}
	if turned.ID() != id {
		t.Error("the order of the files changes the id")
	}
	renamed := release.Describe("shop", []release.FileData{{Name: "a.schema", Data: []byte("app shop {}")}, {Name: "build/app.wasm", Data: []byte("one")}})
	for name, other := range map[string]release.Manifest{
		"module": release.Describe("shop", files("two")), "app": release.Describe("shop2", files("one")), "name": renamed,
	} {
		if other.ID() == id {
			t.Errorf("another %s has the same id", name)
		}
	}
	for _, bad := range []string{"", "rel_", id[:29], id + "0", strings.ToUpper(id), "rel_" + strings.Repeat("u", 26), "../" + id} {
		if err := release.CheckID(bad); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q is an id: %v", bad, err)
		}
	}
}

func TestAManifestThatIsNotValidIsRefused(t *testing.T) {
	file := func(name string, size int64) release.File { return release.File{Name: name, Size: size} }
	good := file("app.schema", 10)
	for want, m := range map[string]release.Manifest{
		"no schema file":                 {App: "shop", Files: []release.File{file("build/a.wasm", 1)}},
		"the name of the app":            {App: "sh\nop", Files: []release.File{good}},
		`file "../app.schema" cannot`:    {App: "shop", Files: []release.File{good, file("../app.schema", 1)}},
		`file "a.wasm" cannot`:           {App: "shop", Files: []release.File{good, file("a.wasm", 1)}},
		`file "build/x/a.wasm" cannot`:   {App: "shop", Files: []release.File{good, file("build/x/a.wasm", 1)}},
		`file "build/.wasm" cannot`:      {App: "shop", Files: []release.File{good, file("build/.wasm", 1)}},
		`file ".a.schema" cannot`:        {App: "shop", Files: []release.File{good, file(".a.schema", 1)}},
		`file "build/a\x00.wasm" cannot`: {App: "shop", Files: []release.File{good, file("build/a\x00.wasm", 1)}},
		"listed twice":                   {App: "shop", Files: []release.File{good, good}},
		"has 67108865 bytes":             {App: "shop", Files: []release.File{good, file("build/a.wasm", release.MaxFileBytes+1)}},
		"has -1 bytes":                   {App: "shop", Files: []release.File{good, file("build/a.wasm", -1)}},
		"129 files":                      {App: "shop", Files: slices.Repeat([]release.File{good}, 129)},
		`file "a.debug" cannot`:          {App: "shop", Files: []release.File{good, file("a.debug", 1)}},
		`debug file "build/a.debug" has no module in the release: add build/a.wasm, or remove the debug file`: {App: "shop", Files: []release.File{good, file("build/a.debug", 1), file("build/b.wasm", 1)}},
		`file "assets/.tree" cannot`:          {App: "shop", Files: []release.File{good, file("assets/.tree", 1)}},
		`file "assets/../x.tree" cannot`:      {App: "shop", Files: []release.File{good, file("assets/../x.tree", 1)}},
		`file "assets//x.tree" cannot`:        {App: "shop", Files: []release.File{good, file("assets//x.tree", 1)}},
		`file "assets/a\\b.tree" cannot`:      {App: "shop", Files: []release.File{good, file(`assets/a\b.tree`, 1)}},
		`file "assets/a\nb.tree" cannot`:      {App: "shop", Files: []release.File{good, file("assets/a\nb.tree", 1)}},
		`file "assets/public/a.js" cannot be`: {App: "shop", Files: []release.File{good, file("assets/public/a.js", 1)}},
		"bytes together": {App: "shop", Files: slices.Collect(func(yield func(release.File) bool) {
			yield(good)
			for i := range 9 {
				yield(file(fmt.Sprintf("build/%d.wasm", i), release.MaxFileBytes))
			}
		})},
	} {
		if err := m.Check(); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if err := release.Describe("shop", files("one")).Check(); err != nil {
		t.Error(err)
	}
}

func TestAReleaseWithoutItsContentsIsNotAdded(t *testing.T) {
	st := open(t, store.Options{})
	r := release.New(st, release.Options{Keep: 10})
	m := release.Describe("shop", files("one"))
	_, err := r.Add(t.Context(), m, nil, someone)
	if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "app.schema") || !strings.Contains(err.Error(), "build/app.wasm") {
		t.Errorf("without contents: %v", err)
	}
	if _, err := st.PutBlob(t.Context(), strings.NewReader("one")); err != nil {
		t.Fatal(err)
	}
	if missing, err := r.Missing(t.Context(), m); err != nil || len(missing) != 1 || missing[0].Name != "app.schema" {
		t.Errorf("missing %v, %v", missing, err)
	}
	if all, _, err := r.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("a refused release is listed: %v, %v", all, err)
	}
	if _, err := st.PutBlob(t.Context(), strings.NewReader("app shop {}")); err != nil {
		t.Fatal(err)
	}
	rel, err := r.Add(t.Context(), m, nil, someone)
	if err != nil || rel.ID != m.ID() || rel.By != someone.Actor {
		t.Errorf("added %+v, %v", rel, err)
	}
	got, err := r.Contents(t.Context(), rel.Manifest)
	if err != nil || len(got) != 2 || string(got[1].Data) != "one" {
		t.Errorf("contents %v, %v", got, err)
	}
}

// An upload may have the contents of a release, and end without a row after the release was added.
func TestAReleaseKeepsContentsThatAnUploadHasStored(t *testing.T) {
	st := open(t, store.Options{})
	r := release.New(st, release.Options{Keep: 10})
	m := release.Describe("shop", files("one"))
	var uploads []func()
	for _, content := range []string{"one", "app shop {}"} {
		_, end, err := st.PutPinned(t.Context(), strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		uploads = append(uploads, end)
	}
	if _, err := r.Add(t.Context(), m, nil, someone); err != nil {
		t.Fatal(err)
	}
	for _, end := range uploads {
		end()
	}
	if got, err := r.Contents(t.Context(), m); err != nil || len(got) != 2 {
		t.Errorf("contents %v, %v", got, err)
	}
}

func TestThePointerNamesTheActiveRelease(t *testing.T) {
	st := open(t, store.Options{})
	r := release.New(st, release.Options{Keep: 10})
	one, two := add(t, st, r, "one"), add(t, st, r, "two")
	if err := activate(t, st, release.Activation{ID: "rel_" + strings.Repeat("0", 26)}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an unknown release: %v", err)
	}
	steps := []struct {
		a        release.Activation
		conflict bool
		previous string
	}{
		{a: release.Activation{ID: one.ID, Expected: new(two.ID)}, conflict: true},
		{a: release.Activation{ID: one.ID, Expected: new("")}},
		{a: release.Activation{ID: two.ID, Expected: new("")}, conflict: true}, // one that expects no release
		{a: release.Activation{ID: one.ID, Expected: new("")}, conflict: true},
		{a: release.Activation{ID: two.ID, Expected: new(one.ID)}, previous: one.ID},
		{a: release.Activation{ID: one.ID, Expected: new(one.ID)}, conflict: true, previous: one.ID},
		{a: release.Activation{ID: one.ID}, previous: two.ID},
		{a: release.Activation{ID: one.ID}, previous: two.ID}, // again: nothing changes
		{a: release.Activation{ID: one.ID, Origin: release.Folder}, previous: two.ID},
	}
	for i, step := range steps {
		_, before, err := r.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := activate(t, st, step.a); (fault.CodeOf(err) == fault.Conflict) != step.conflict {
			t.Errorf("step %d: %v", i, err)
		}
		_, after, err := r.List(t.Context())
		switch {
		case err != nil:
			t.Fatal(err)
		case step.conflict && after != before:
			t.Errorf("step %d: a refused activation changed %+v to %+v", i, before, after)
		case !step.conflict && (after.ID != step.a.ID || after.Previous != step.previous):
			t.Errorf("step %d: active is %+v", i, after)
		}
	}
	entries, err := audit.List(t.Context(), st, 1, 100)
	var changes []string
	for _, e := range entries {
		changes = append(changes, e.Action)
		if e.Actor != someone.Actor || e.RequestID != someone.RequestID {
			t.Errorf("the record names %+v", e)
		}
	}
	if want := "releases.add releases.add" + strings.Repeat(" releases.activate", 4); err != nil || strings.Join(changes, " ") != want {
		t.Errorf("audit %v, %v", changes, err)
	}
	if _, err := st.Update(t.Context(), release.Deactivate); err != nil {
		t.Fatal(err)
	}
	if _, active, err := r.List(t.Context()); err != nil || active.ID != "" {
		t.Errorf("after Deactivate: %+v, %v", active, err)
	}
	if err := activate(t, st, release.Activation{ID: two.ID, Expected: new(one.ID)}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("no release is active, and another one is expected: %v", err)
	}
	if err := activate(t, st, release.Activation{ID: two.ID, Expected: new("")}); err != nil {
		t.Errorf("no release is active, as expected: %v", err)
	}
}

func TestDamagedAndMissingContentsAreNamed(t *testing.T) {
	dir := t.TempDir()
	st := open(t, store.Options{Dir: dir})
	r := release.New(st, release.Options{Keep: 10})
	rel := add(t, st, r, "one")
	path := filepath.Join(dir, "blobs", rel.Files[1].Digest.String())
	if err := os.WriteFile(path, []byte("onE"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "blobs", rel.Files[0].Digest.String())); err != nil {
		t.Fatal(err)
	}
	_, err := r.Contents(t.Context(), rel.Manifest)
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "app.schema") || !strings.Contains(err.Error(), rel.Files[1].Digest.String()) {
		t.Errorf("damaged contents: %v", err)
	}
	// Sending the contents again repairs the release.
	for _, f := range files("one") {
		if err := st.PutBlobAs(t.Context(), bytes.NewReader(f.Data), sha256.Sum256(f.Data), int64(len(f.Data))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Contents(t.Context(), rel.Manifest); err != nil {
		t.Error(err)
	}
}

func TestAReleaseIsOlderThanOnesThatWereFirstAddedLater(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	st := open(t, store.Options{Clock: func() time.Time { now = now.Add(time.Second); return now }})
	r := release.New(st, release.Options{Keep: 10})
	older := func(id string) (older bool) {
		t.Helper()
		err := st.View(t.Context(), func(tx *store.Tx) (err error) {
			older, err = release.IsOlder(tx, id)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return older
	}
	one := add(t, st, r, "one")
	if older(one.ID) {
		t.Error("older than none")
	}
	two := add(t, st, r, "two")
	again := add(t, st, r, "one") // its place in the order does not change
	if !again.Added.After(two.Added.Time) || !again.First.Equal(one.First.Time) {
		t.Errorf("added %v and first %v, after %v", again.Added, again.First, two.Added)
	}
	for active, want := range map[string][2]bool{one.ID: {false, false}, two.ID: {true, false}} {
		if err := activate(t, st, release.Activation{ID: active}); err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{older(one.ID), older(two.ID)}; got != want {
			t.Errorf("active %s: %v, want %v", active, got, want)
		}
	}
	err := st.View(t.Context(), func(tx *store.Tx) error {
		_, err := release.IsOlder(tx, "rel_00000000000000000000000000")
		return err
	})
	if fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an unknown release: %v", err)
	}
}

// The model: the releases in the order of their last adding and of their last activation, and the
// pointer.
func TestSweepAgainstAModel(t *testing.T) {
	for _, keep := range []int{1, 3} { // with 1, only the pointer keeps the previous release
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		sweepAgainstAModel(t, keep, rand.New(rand.NewPCG(seed, 0)))
	}
}

func sweepAgainstAModel(t *testing.T, keep int, random *rand.Rand) {
	t.Helper()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	st := open(t, store.Options{Clock: func() time.Time { now = now.Add(time.Second); return now }})
	r := release.New(st, release.Options{Keep: keep})
	var order []string     // newest first
	var activated []string // the last one first
	modules := map[string]string{}
	active, previous := "", ""
	for range 200 {
		switch random.IntN(4) {
		case 0, 1:
			module := fmt.Sprint("module ", random.IntN(12))
			rel := add(t, st, r, module)
			if rel.ID == active {
				continue // it is stored already
			}
			order = append([]string{rel.ID}, slices.DeleteFunc(order, func(id string) bool { return id == rel.ID })...)
			modules[rel.ID] = module
		case 2:
			if len(order) == 0 {
				continue
			}
			id := order[random.IntN(len(order))]
			if err := activate(t, st, release.Activation{ID: id}); err != nil {
				t.Fatal(err)
			}
			if id != active {
				active, previous = id, active
				activated = append([]string{id}, slices.DeleteFunc(activated, func(other string) bool { return other == id })...)
			}
		case 3:
			if err := r.Sweep(t.Context(), time.Now().Add(2*time.Hour)); err != nil {
				t.Fatal(err)
			}
			kept, never := []string{}, 0
			for _, id := range order {
				place := slices.Index(activated, id)
				if place < 0 {
					place = never
					never++
				}
				if place < keep || id == active || id == previous {
					kept = append(kept, id)
				}
			}
			order = kept
			activated = slices.DeleteFunc(activated, func(id string) bool { return !slices.Contains(order, id) })
			checkKept(t, st, r, order, modules)
		}
	}
}

func checkKept(t *testing.T, st *store.Store, r *release.Releases, order []string, modules map[string]string) {
	t.Helper()
	all, _, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	named := map[store.Digest]bool{}
	for _, rel := range all {
		listed = append(listed, rel.ID)
		got, err := r.Contents(t.Context(), rel.Manifest)
		if err != nil || string(got[1].Data) != modules[rel.ID] {
			t.Errorf("release %s has %v, %v", rel.ID, got, err)
		}
		for _, f := range rel.Files {
			named[f.Digest] = true
		}
	}
	if !slices.Equal(listed, order) {
		t.Errorf("kept %v, want %v", listed, order)
	}
	if blobs, err := st.Blobs(); err != nil || len(blobs) != len(named) {
		t.Errorf("%d blobs are left, %d are named, %v", len(blobs), len(named), err)
	}
}

// The release is added after a sweep that would have deleted contents of the same bytes.
// Stage relies on the record of a release that is stored already. A sweep may delete that record, and
// then the contents, before Add.
func TestAReleaseThatWasSweptWhileStagedIsNotAdded(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	st := open(t, store.Options{Clock: func() time.Time { now = now.Add(time.Second); return now }})
	r := release.New(st, release.Options{Keep: 1})
	add(t, st, r, "one")
	active := add(t, st, r, "two")
	if err := activate(t, st, release.Activation{ID: active.ID}); err != nil {
		t.Fatal(err)
	}
	staged, err := r.Stage(t.Context(), "shop", files("one"), someone)
	if err != nil {
		t.Fatal(err)
	}
	add(t, st, r, "three")
	if err := r.Sweep(t.Context(), time.Now().Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Update(t.Context(), staged.Add); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "build/app.wasm") {
		t.Errorf("without its contents: %v", err)
	}
	add(t, st, r, "one") // staged again
	if _, _, err := r.Read(t.Context(), staged.ID); err != nil {
		t.Error(err)
	}
}

func TestStagedContentsAreNotSwept(t *testing.T) {
	dir := t.TempDir()
	st := open(t, store.Options{Dir: dir})
	r := release.New(st, release.Options{Keep: 1})
	for _, f := range files("one") {
		d, err := st.PutBlob(t.Context(), bytes.NewReader(f.Data))
		if err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-50 * time.Minute)
		if err := os.Chtimes(filepath.Join(dir, "blobs", d.String()), old, old); err != nil {
			t.Fatal(err)
		}
	}
	staged, err := r.Stage(t.Context(), "shop", files("one"), someone)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Sweep(t.Context(), time.Now().Add(20*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Update(t.Context(), staged.Add); err != nil {
		t.Fatal(err)
	}
	all, _, err := r.List(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("listed %v, %v", all, err)
	}
	if _, err := r.Contents(t.Context(), all[0].Manifest); err != nil {
		t.Error(err)
	}
}

func TestABlobOfAnUploadIsNotSwept(t *testing.T) {
	st := open(t, store.Options{})
	r := release.New(st, release.Options{Keep: 1})
	d, err := st.PutBlob(t.Context(), strings.NewReader("of an upload"))
	if err != nil {
		t.Fatal(err)
	}
	blob, err := st.StatBlob(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Sweep(t.Context(), blob.Stored.Add(time.Hour-1)); err != nil {
		t.Fatal(err)
	}
	if _, err := st.StatBlob(d); err != nil {
		t.Errorf("before an hour has passed: %v", err)
	}
	if err := r.Sweep(t.Context(), blob.Stored.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := st.StatBlob(d); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after an hour: %v", err)
	}
}

func TestAnEndedContextStoresNothing(t *testing.T) {
	st := open(t, store.Options{})
	r := release.New(st, release.Options{Keep: 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Stage(ctx, "shop", files("one"), someone); err == nil {
		t.Error("staged")
	}
	if blobs, err := st.Blobs(); err != nil || len(blobs) != 0 {
		t.Errorf("blobs %v, %v", blobs, err)
	}
}

func TestAModuleIsReadByItsDigest(t *testing.T) {
	st := open(t, store.Options{})
	r := release.New(st, release.Options{Keep: 10})
	add(t, st, r, "one")
	two := add(t, st, r, "two")
	for _, f := range two.Files {
		if !strings.HasSuffix(f.Name, ".wasm") {
			continue
		}
		module, debug, err := r.Module(t.Context(), f.Digest)
		if err != nil || string(module) != "two" || debug != nil {
			t.Errorf("module %q, debug file %q, %v", module, debug, err)
		}
		if _, _, err := r.Module(t.Context(), store.Digest{}); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("an unknown digest: %v", err)
		}
		return
	}
	t.Error("the release has no module")
}
