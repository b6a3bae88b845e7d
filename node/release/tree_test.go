package release_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/tree"
	"runner.example/node/release"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// treeOf returns a tree with these contents.
func treeOf(t *testing.T, contents map[string]string) *tree.Tree {
	t.Helper()
	var files []tree.File
	for path, content := range contents {
		files = append(files, tree.File{Path: path, Size: int64(len(content)), SHA256: sha256.Sum256([]byte(content))})
	}
	made, err := tree.New(files, func(f tree.File) ([]byte, error) { return []byte(contents[f.Path]), nil })
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func withTree(module string, made *tree.Tree) []release.FileData {
	return append(files(module), release.FileData{Name: "build/app.tree", Data: made.Listing(), Tree: made})
}

// addFiles adds a release from an app directory.
func addFiles(t *testing.T, st *store.Store, r *release.Releases, files []release.FileData) (rel release.Release) {
	t.Helper()
	staged, err := r.Stage(t.Context(), "shop", files, someone)
	if err != nil {
		t.Fatal(err)
	}
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

// contentsOf reads the tree of a stored release.
func contentsOf(t *testing.T, r *release.Releases, id string) map[string]string {
	t.Helper()
	_, got, err := r.Read(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range got {
		if f.Tree == nil {
			continue
		}
		for _, listed := range f.Tree.List() {
			content, err := f.Tree.ReadFile(listed.Path)
			if err != nil {
				t.Fatal(err)
			}
			all[listed.Path] = string(content)
		}
	}
	return all
}

func TestAReleaseHasTheTreeOfItsModule(t *testing.T) {
	st := open(t, store.Options{})
	r := release.New(st, release.Options{Keep: 10})
	contents := map[string]string{"a.py": "a", "sub/__init__.py": "", "sub/x/__init__.py": "", "\xff": "odd", "copy": "one"}
	rel := addFiles(t, st, r, withTree("one", treeOf(t, contents)))
	if want := []release.TreeInfo{{Name: "build/app.tree", Files: 5, Bytes: 7}}; !slices.Equal(rel.Trees, want) {
		t.Errorf("the trees are %+v, want %+v", rel.Trees, want)
	}
	if got := contentsOf(t, r, rel.ID); !maps.Equal(got, contents) {
		t.Errorf("read %q, want %q", got, contents)
	}
	if blobs, err := st.Blobs(); err != nil || len(blobs) != 6 { // schema, module (as copy), listing; a.py, "", odd
		t.Errorf("%d blobs, %v", len(blobs), err)
	}
	contents["a.py"] = "b"
	if again := addFiles(t, st, r, withTree("one", treeOf(t, contents))); again.ID == rel.ID {
		t.Error("another content, and the same release")
	}
	if plain := addFiles(t, st, r, files("one")); plain.ID == rel.ID || plain.Trees != nil {
		t.Errorf("without a tree: %+v", plain)
	}
}

func TestAReleaseHasTheTreesOfItsAssets(t *testing.T) {
	st := open(t, store.Options{})
	r := release.New(st, release.Options{Keep: 10})
	name := release.AssetsOf("web/dist")
	with := func(contents map[string]string) []release.FileData {
		made := treeOf(t, contents)
		return append(files("one"), release.FileData{Name: name, Data: made.Listing(), Tree: made})
	}
	contents := map[string]string{"index.html": "<p>", "a/b.js": "b()"}
	rel := addFiles(t, st, r, with(contents))
	if want := []release.TreeInfo{{Name: "assets/web/dist.tree", Files: 2, Bytes: 6}}; !slices.Equal(rel.Trees, want) {
		t.Errorf("the trees are %+v, want %+v", rel.Trees, want)
	}
	if got := contentsOf(t, r, rel.ID); !maps.Equal(got, contents) {
		t.Errorf("read %q, want %q", got, contents)
	}
	changed := addFiles(t, st, r, with(map[string]string{"index.html": "<p>", "a/b.js": "c()"}))
	if changed.ID == rel.ID {
		t.Error("another content, and the same release")
	}
	if dir, ok := release.AssetsDir(name); !ok || dir != "web/dist" || !release.IsTree(name) {
		t.Errorf("%s is the listing of %q, %v", name, dir, ok)
	}
	if _, ok := release.AssetsDir("build/app.tree"); ok {
		t.Error("the listing of a module is one of assets")
	}
	if module, ok := release.ModuleOf(name); ok {
		t.Errorf("assets are files of the module %s", module)
	}
	// A client that has one content sends the other.
	missing, err := r.Missing(t.Context(), release.Describe("shop", with(contents)))
	if err != nil || len(missing) != 0 {
		t.Errorf("missing %v, %v", missing, err)
	}
}

// A client sends the listing first. Then the node says which contents it lacks.
func TestAReleaseWithATreeIsAddedWhenAllContentsAreThere(t *testing.T) {
	st := open(t, store.Options{})
	r := release.New(st, release.Options{Keep: 10})
	if err := st.PutBlobs(t.Context(), [][]byte{[]byte("known")}); err != nil {
		t.Fatal(err)
	}
	sent := withTree("one", treeOf(t, map[string]string{"a": "new", "b": "known", "c": "new"}))
	m := release.Describe("shop", sent)
	missing := func() string {
		t.Helper()
		files, err := r.Missing(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Add(t.Context(), m, nil, someone)
		if fault.CodeOf(err) != fault.Conflict && len(files) > 0 || err != nil && len(files) == 0 {
			t.Fatalf("lacks %v, added: %v", files, err)
		}
		var names []string
		for _, f := range files {
			names = append(names, f.Name)
			if !strings.Contains(err.Error(), f.Name) {
				t.Errorf("%v does not name %s", err, f.Name)
			}
		}
		return strings.Join(names, ", ")
	}
	for _, step := range []struct {
		want string
		put  []byte
	}{
		{"app.schema, build/app.tree, build/app.wasm", sent[0].Data},
		{"build/app.tree, build/app.wasm", sent[2].Data},
		{"build/app.wasm, a of build/app.tree", sent[1].Data},
		{"a of build/app.tree", []byte("new")},
	} {
		if got := missing(); got != step.want {
			t.Errorf("missing %s, want %s", got, step.want)
		}
		if err := st.PutBlobs(t.Context(), [][]byte{step.put}); err != nil {
			t.Fatal(err)
		}
	}
	if got := missing(); got != "" {
		t.Errorf("missing %s", got)
	}
	if got := contentsOf(t, r, m.ID()); len(got) != 3 || got["a"] != "new" {
		t.Errorf("read %q", got)
	}
	asked := []release.File{release.ContentOf("x", tree.File{SHA256: sha256.Sum256([]byte("other")), Size: 5}), m.Files[0]}
	if absent, err := r.MissingBlobs(t.Context(), asked); err != nil || !slices.Equal(absent, asked[:1]) {
		t.Errorf("missing %v, %v", absent, err)
	}
}

func TestAnInvalidListingIsRefused(t *testing.T) {
	st := open(t, store.Options{})
	r := release.New(st, release.Options{Keep: 10})
	for listing, want := range map[string]string{
		"{}":                             "build/app.tree cannot be used: not a listing of files",
		"runner tree\n":                  "build/app.tree cannot be used: there are no files",
		"runner tree\n" + "0 1 ../x\x00": "build/app.tree cannot be used: entry 1 of the listing is invalid",
	} {
		sent := append(files("one"), release.FileData{Name: "build/app.tree", Data: []byte(listing)})
		for _, f := range sent {
			if err := st.PutBlobs(t.Context(), [][]byte{f.Data}); err != nil {
				t.Fatal(err)
			}
		}
		m := release.Describe("shop", sent)
		_, missing := r.Missing(t.Context(), m)
		_, added := r.Add(t.Context(), m, nil, someone)
		for _, err := range []error{missing, added} {
			if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", listing, err, want)
			}
		}
	}
}

func TestTreesAreLimitedTogether(t *testing.T) {
	st := open(t, store.Options{})
	r := release.New(st, release.Options{Keep: 10})
	many := func(prefix string) release.FileData {
		contents := map[string]string{}
		for i := range 12_000 {
			contents[fmt.Sprint(prefix, i)] = ""
		}
		made := treeOf(t, contents)
		return release.FileData{Name: "build/" + prefix + ".tree", Data: made.Listing(), Tree: made}
	}
	first, second := many("a"), many("b")
	equal := first
	equal.Name = second.Name
	sent := func(listings ...release.FileData) []release.FileData {
		return append([]release.FileData{{Name: "app.schema", Data: []byte("app shop")}, {Name: "build/a.wasm"}, {Name: "build/b.wasm"}}, listings...)
	}
	if _, err := r.Stage(t.Context(), "shop", sent(first, equal), someone); err != nil {
		t.Error(err)
	}
	const want = "24000 files together, and the limit is 20000"
	if _, err := r.Stage(t.Context(), "shop", sent(first, second), someone); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
		t.Errorf("staged: %v", err)
	}
	// Assets have limits of their own.
	assets := release.FileData{Name: release.AssetsOf("public"), Data: second.Data, Tree: second.Tree}
	if _, err := r.Stage(t.Context(), "shop", sent(first, assets), someone); err != nil {
		t.Error(err)
	}
	more := release.FileData{Name: release.AssetsOf("docs"), Data: first.Data, Tree: first.Tree}
	if _, err := r.Stage(t.Context(), "shop", sent(assets, more), someone); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "of assets have "+want) {
		t.Errorf("staged: %v", err)
	}
	for _, f := range sent(first, second) {
		if err := st.PutBlobs(t.Context(), [][]byte{f.Data}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := r.Add(t.Context(), release.Describe("shop", sent(first, second)), nil, someone)
	if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
		t.Errorf("added: %v", err)
	}
}

func TestContentsOfATreeAreKeptWhileAReleaseIs(t *testing.T) {
	dir := t.TempDir()
	st := open(t, store.Options{Dir: dir})
	r := release.New(st, release.Options{Keep: 1})
	contents := map[string]string{"a": "of all", "b": "of the first"}
	first := addFiles(t, st, r, withTree("one", treeOf(t, contents)))
	old := []byte(contents["b"])
	later := func() time.Time { return time.Now().Add(2 * time.Hour) }
	if err := r.Sweep(t.Context(), later()); err != nil {
		t.Fatal(err)
	}
	if got := contentsOf(t, r, first.ID); !maps.Equal(got, contents) {
		t.Errorf("after a sweep it has %q", got)
	}

	// With a damaged listing it is not known which contents are needed.
	contents["b"] = "of the second"
	second := addFiles(t, st, r, withTree("two", treeOf(t, contents)))
	listing := second.Files[1]
	path := filepath.Join(dir, "blobs", listing.Digest.String())
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ToUpper(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Sweep(t.Context(), later()); err == nil || !strings.Contains(err.Error(), "read build/app.tree of release "+second.ID) {
		t.Errorf("with a damaged listing: %v", err)
	}
	if _, err := st.StatBlob(sha256.Sum256(old)); err != nil {
		t.Errorf("a content was deleted: %v", err)
	}
	if _, _, err := r.Read(t.Context(), second.ID); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a release with a damaged listing is read: %v", err)
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}

	if err := r.Sweep(t.Context(), later()); err != nil {
		t.Fatal(err)
	}
	if _, err := st.StatBlob(sha256.Sum256(old)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a content of a deleted release: %v", err)
	}
	if got := contentsOf(t, r, second.ID); !maps.Equal(got, contents) {
		t.Errorf("the other release has %q", got)
	}
	if err := st.DeleteBlob(sha256.Sum256([]byte("of all"))); err != nil {
		t.Fatal(err)
	}
	_, _, err = r.Read(t.Context(), second.ID)
	if unreadable, ok := errors.AsType[*release.UnreadableError](err); !ok || !strings.Contains(unreadable.Error(), "a of build/app.tree") {
		t.Errorf("a content is missing: %v", err)
	}
}

// A node gets the listing, then the contents, before it serves the release.
func TestATreeOfAnotherNodeIsRead(t *testing.T) {
	a, b, cut := pair(t)
	onA, onB := release.New(a, release.Options{Keep: 1}), release.New(b, release.Options{Keep: 1})
	contents := map[string]string{}
	for i := range 50 {
		contents[fmt.Sprint("f", i)] = fmt.Sprint(i)
	}
	rel := addFiles(t, a, onA, withTree("one", treeOf(t, contents)))
	storetest.CatchUp(t, b)
	if got := contentsOf(t, onB, rel.ID); !maps.Equal(got, contents) {
		t.Errorf("read %q", got)
	}
	contents["f7"] = "seven"
	rel = addFiles(t, a, onA, withTree("one", treeOf(t, contents)))
	storetest.CatchUp(t, b)
	if err := onB.Sweep(t.Context(), time.Now().Add(2*time.Hour)); err != nil { // which fetches
		t.Fatal(err)
	}
	cut.Store(true)
	if got := contentsOf(t, onB, rel.ID); !maps.Equal(got, contents) {
		t.Errorf("read %q", got)
	}
}
