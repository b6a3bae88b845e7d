package release_test

import (
	"crypto/sha256"
	"testing"

	"runner.example/internal/fault"
	"runner.example/node/release"
	"runner.example/state/store"
)

// withDebug are the files of a release with a module and a debug file.
func withDebug(module, debug string) []release.FileData {
	return append(files(module), release.FileData{Name: "build/app.debug", Data: []byte(debug)})
}

// The same module can be released with another debug file. A handler that fails gets that of the active release.
func TestADebugFileIsThatOfTheActiveRelease(t *testing.T) {
	st := open(t, store.Options{Dir: t.TempDir()})
	r := release.New(st, release.Options{Keep: 10})
	ids := map[string]string{}
	for _, debug := range []string{"first", "second"} {
		staged, err := r.Stage(t.Context(), "shop", withDebug("module", debug), someone)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Update(t.Context(), staged.Add); err != nil {
			t.Fatal(err)
		}
		ids[debug] = staged.ID
	}
	if ids["first"] == ids["second"] {
		t.Fatal("two debug files make one release")
	}
	add(t, st, r, "without")
	for _, debug := range []string{"first", "second", "first"} {
		if err := activate(t, st, release.Activation{ID: ids[debug]}); err != nil {
			t.Fatal(err)
		}
		module, got, err := r.Module(t.Context(), sha256.Sum256([]byte("module")))
		if string(module) != "module" || string(got) != debug || err != nil {
			t.Errorf("got %q, %q, %v; want the debug file %q", module, got, err, debug)
		}
	}
	if module, debug, err := r.Module(t.Context(), sha256.Sum256([]byte("without"))); string(module) != "without" || debug != nil || err != nil {
		t.Errorf("without a debug file: %q, %q, %v", module, debug, err)
	}
	if _, _, err := r.Module(t.Context(), sha256.Sum256([]byte("other"))); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a module of no release: %v", err)
	}
	// A release is served without its debug file, and its failures have no lines.
	if err := st.DeleteBlob(sha256.Sum256([]byte("first"))); err != nil {
		t.Fatal(err)
	}
	if _, got, err := r.Read(t.Context(), ids["first"]); err != nil || len(got) != 2 {
		t.Errorf("read %d files, %v", len(got), err)
	}
	if module, debug, err := r.Module(t.Context(), sha256.Sum256([]byte("module"))); string(module) != "module" || debug != nil || err == nil {
		t.Errorf("with a missing debug file: %q, %q, %v", module, debug, err)
	}
}
