package salvage_test

import (
	"testing"

	"runner.example/salvage"
)

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
