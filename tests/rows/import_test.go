package rows_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"runner.example/tests/harness"
)

const importSchema = `app orders

entity Partner {
  id: id
  code: string(2..16) @unique
}

entity Order {
  id: id
  number: string(1..32) @unique
  partner: Partner
  total: decimal(12,2) @min(0)
  createdAt: time @created
  @@index(partner, createdAt desc)
}

routes("/v1", auth: none) { GET /orders -> listOrders }
`

// importPartners is the number of rows that the imported rows refer to.
const importPartners = 100

func partnerID(i int) string { return fmt.Sprintf("01arz3ndektsv4rrffq69g%04d", i) }

// An import takes a bounded multiple of the time in which Badger alone writes the same keys
// and values in the same batches, measured in the same run. Its memory does not grow with
// the rows: it is that of Badger's memtables and of the limits of the store.
func TestAnImportTakesLittleTimeAndMemory(t *testing.T) {
	rows, mostMemory := 20_000, 150<<20
	if harness.Soak {
		rows, mostMemory = 1_000_000, importMemory
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	a := harness.NewApp(t, importSchema, "")
	var text strings.Builder
	for i := range importPartners {
		fmt.Fprintf(&text, `{"id":%q,"code":"c%d"}`+"\n", partnerID(i), i)
	}
	a.Write("partners.jsonl", text.String())
	text.Reset()
	partner := make([]int, rows)
	for i := range rows {
		partner[i] = random.IntN(importPartners)
		fmt.Fprintf(&text, `{"number":"A-%07d","partner":%q,"total":"%d.50"}`+"\n", i, partnerID(partner[i]), random.IntN(10_000))
	}
	a.Write("orders.jsonl", text.String())
	a.Must("data", "import", "Partner", "partners.jsonl")

	plain := writePlain(t, random, partner)
	text.Reset()
	harness.ForgetPeak(t)
	began := time.Now()
	r := a.Run("data", "import", "Order", "orders.jsonl")
	took := time.Since(began)
	if want := fmt.Sprintf("imported %d rows\n", rows); r.Status != 0 || strings.ReplaceAll(r.Stdout, ",", "") != want {
		t.Fatalf("exit status %d: %s%s, want %s", r.Status, r.Stdout, r.Stderr, want)
	}
	ratio := float64(took) / float64(plain)
	t.Logf("%d rows in %v, Badger alone %v: ratio %.1f; %d MiB", rows, took, plain, ratio, r.PeakBytes>>20)
	if r.PeakBytes > mostMemory {
		t.Errorf("the import took %d MiB of memory, want at most %d", r.PeakBytes>>20, mostMemory>>20)
	}
	if harness.Soak && ratio > importRatio {
		t.Errorf("the import took %.1f times as long as Badger alone, want at most %v", ratio, importRatio)
	}
}

// importMemory: Badger has a memtable that is written to, one that becomes a table and one
// that waits, each of 32 MiB and memory for a large transaction. The new table is in memory
// twice, once as a file. The conflict window takes 32 MiB with its index, and the process
// without data 60 MiB. 215 MiB were measured.
const importMemory = (3*32 + 2*32 + 32 + 60 + 48) << 20

// importRatio is twice what was measured (1.9 and 2.4).
const importRatio = 5.0

// writePlain writes the keys and values of as many rows with Badger alone, 1,000 rows in a
// transaction, and returns how long that took.
func writePlain(t *testing.T, random *rand.Rand, partner []int) time.Duration {
	dir, err := os.MkdirTemp(t.TempDir(), "plain")
	if err != nil {
		t.Fatal(err)
	}
	o := badger.DefaultOptions(dir).WithLogger(nil).WithSyncWrites(true).WithDetectConflicts(false).WithCompression(options.None)
	db, err := badger.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	began := time.Now()
	for i := 0; i < len(partner); {
		err := db.Update(func(txn *badger.Txn) error {
			for end := min(i+1000, len(partner)); i < end; i++ {
				id := fmt.Appendf(nil, "01arz3ndektsv4rrff%08x", i)
				value := binary.BigEndian.AppendUint64(fmt.Appendf(nil, "A-%07d %s", i, partnerID(partner[i])), random.Uint64())
				if err := txn.Set(append([]byte("entity/r1"), id...), value); err != nil {
					return err
				}
				if err := txn.Set(fmt.Appendf(nil, "entity/i1A-%07d", i), id); err != nil {
					return err
				}
				if err := txn.Set(append(fmt.Appendf(nil, "entity/i2%s12345678", partnerID(partner[i])), id...), id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(began)
}
