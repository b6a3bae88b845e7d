package server_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"runner.example/internal/diag"
	"runner.example/node/admin"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
)

const importSchema = `
app orders
entity Partner {
  id: id
  code: string(1..16) @unique
}
entity Order {
  id: id
  number: string(1..32) @unique
  partner: Partner
  total: decimal(12,2) @min(0)
  createdAt: time @created
  @@index(partner, createdAt desc)
}
`

// importer returns a client of a node with rows of importSchema.
func importer(t *testing.T) *admin.Client {
	t.Helper()
	local := node(t, t.TempDir())
	sources := []diag.Source{{Name: "app.schema", Text: []byte(importSchema)}}
	s, found := compiler.Compile(sources, compiler.Options{})
	if found.HasErrors() {
		t.Fatal(found)
	}
	m, err := entity.Activate(t.Context(), local.Store, s, sources, entity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	local.Model = func() (*entity.Model, error) { return m, nil }
	return local.Client()
}

// importBatch imports n rows, and returns how many bytes and objects that allocates.
func importBatch(t *testing.T, node *admin.Client, entity string, n int, row func(i int) string) (bytes, objects uint64) {
	t.Helper()
	request := admin.ImportRows{Entity: entity}
	for i := range n {
		request.Rows = append(request.Rows, json.RawMessage(row(i)))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	done, err := node.ImportRows(t.Context(), request)
	runtime.ReadMemStats(&after)
	if err != nil || done.Inserted != n {
		t.Fatalf("%d of %d rows of %s were inserted, refused: %v, error: %v", done.Inserted, n, entity, done.Refused, err)
	}
	return after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs
}

// The bounds are a tenth above what was measured.
const (
	maxBytesPerRow   = 8700
	maxObjectsPerRow = 118
)

// What a row allocates does not depend on the machine, unlike the time that it takes.
func TestAnImportAllocatesLittlePerRow(t *testing.T) {
	const partners, batches = 100, 10
	node := importer(t)
	partner := func(i int) string { return fmt.Sprintf("01arz3ndektsv4rrffq69g%04d", i) }
	importBatch(t, node, "Partner", partners, func(i int) string { return fmt.Sprintf(`{"id":%q,"code":"c%d"}`, partner(i), i) })
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var bytes, objects uint64
	for b := range batches + 1 {
		n, m := importBatch(t, node, "Order", admin.MaxImport, func(i int) string {
			return fmt.Sprintf(`{"number":"A-%d-%d","partner":%q,"total":"%d.50"}`, b, i, partner(random.IntN(partners)), i)
		})
		if b > 0 { // the first one fills buffers and caches
			bytes, objects = bytes+n, objects+m
		}
	}
	bytes, objects = bytes/(batches*admin.MaxImport), objects/(batches*admin.MaxImport)
	t.Logf("%d bytes and %d objects per row", bytes, objects)
	if bytes > maxBytesPerRow || objects > maxObjectsPerRow {
		t.Errorf("an imported row with a relation and two indexes allocates %d bytes and %d objects, want at most %d and %d", bytes, objects, maxBytesPerRow, maxObjectsPerRow)
	}
}
