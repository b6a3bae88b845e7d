package rows_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/state/entity/layout"
	"runner.example/state/store"
	"runner.example/tests/harness"
)

// runner store verify reads rows and indexes of a server and of a stopped one, and ends with status 3 where they
// do not agree.
func TestTheStoreIsVerifiedServingAndStopped(t *testing.T) {
	a := harness.NewApp(t, "app shop\nentity Item { id: id, name: text @unique }\n", "")
	var lines strings.Builder
	for _, name := range []string{"ink", "pen", "cup"} {
		lines.WriteString(`{"name":"` + name + "\"}\n")
	}
	a.Write("items.jsonl", lines.String())
	type report struct {
		Rows, Entries int
		Findings      []string
	}
	verify := func(status int) (r report) {
		t.Helper()
		got := a.Run("store", "verify", "--json")
		if err := json.Unmarshal([]byte(got.Stdout), &r); err != nil || got.Status != status {
			t.Fatalf("status %d, want %d: %v\n%s%s", got.Status, status, err, got.Stdout, got.Stderr)
		}
		return r
	}
	s := a.Serve()
	a.Must("data", "import", "Item", "items.jsonl")
	if r := verify(0); r.Rows != 3 || r.Entries != 3 || len(r.Findings) != 0 {
		t.Errorf("of the server: %+v", r)
	}
	s.Stop()
	if out := a.Must("store", "verify"); !strings.Contains(out, "checked 3 rows and 3 index entries") {
		t.Errorf("of the stopped server: %q", out)
	}

	st, err := store.Open(store.Options{Dir: filepath.Join(a.Dir, "data")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = st.Update(t.Context(), func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte(layout.SpaceEntries), nil, false) {
			if err != nil {
				return err
			}
			return tx.Delete(item.Key)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for _, serves := range []bool{false, true} {
		if serves {
			a.Serve()
		}
		if r := verify(3); len(r.Findings) != 1 || !strings.HasSuffix(r.Findings[0], " of Item has no entry in the unique index Item(name)") {
			t.Errorf("serves: %v: found %q", serves, r.Findings)
		}
	}
}
