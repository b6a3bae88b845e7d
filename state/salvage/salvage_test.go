package salvage_test

import (
	"os"
	"path/filepath"
	"testing"

	"runner.example/state/salvage"
	"runner.example/state/store"
)

// A salvage that fails leaves no archive, which would look like a complete one, and no other file. One that was
// there is not touched.
func TestASalvageThatFailsLeavesNothing(t *testing.T) {
	parent := t.TempDir()
	data := filepath.Join(parent, "data")
	st, err := store.Open(store.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close() // it has the lock meanwhile
	kept := filepath.Join(parent, "kept.tar")
	if err := os.WriteFile(kept, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(parent, "new.tar"), kept, filepath.Join(data, "inside.tar"), filepath.Join(data, "badger", "inside.tar")} {
		if _, err := salvage.Run(t.Context(), data, path, nil, func(int64, int64) {}); err == nil {
			t.Errorf("salvaged to %s", path)
		}
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 2 {
		t.Errorf("beside the data there are %v, %v", entries, err)
	}
	if text, err := os.ReadFile(kept); err != nil || string(text) != "mine" {
		t.Errorf("the file that was there has %q, %v", text, err)
	}
	if found, err := filepath.Glob(filepath.Join(data, "*", "inside.tar")); err != nil || len(found) > 0 {
		t.Errorf("in the data there is %q, %v", found, err)
	}
}

// A report is whole only if nothing at all is missing or doubtful: else the command fails, and a script that
// salvages a store learns of it.
func TestAReportIsWholeOnlyWithoutAnyLoss(t *testing.T) {
	row := &salvage.Entity{Name: "Order", Rows: 3}
	for name, r := range map[string]salvage.Report{
		"an unreadable row":           {Entities: []*salvage.Entity{row, {Name: "Item", Unreadable: 1}}},
		"a doubtful row":              {Entities: []*salvage.Entity{{Name: "Item", Doubtful: 1}, row}},
		"a part of a file":            {Losses: []salvage.Loss{{File: "000001.sst", From: 1, To: 2, Cause: "checksum mismatch"}}},
		"an entity without a schema":  {Entities: []*salvage.Entity{row}, NotDeclared: []string{"Item"}},
		"no rows could be written":    {RowsError: "the schema has another generation"},
		"an unreadable and a missing": {Entities: []*salvage.Entity{{Unreadable: 1}}, Losses: []salvage.Loss{{File: "x"}}},
	} {
		if r.Whole() {
			t.Errorf("%s: the report is whole", name)
		}
	}
	for name, r := range map[string]salvage.Report{
		"empty": {}, "with rows": {Entities: []*salvage.Entity{row}}, "with an empty entity": {Entities: []*salvage.Entity{{Name: "Item"}}, Losses: []salvage.Loss{}},
	} {
		if !r.Whole() {
			t.Errorf("%s: the report is not whole", name)
		}
	}
}
