package cluster_test

import (
	"testing"

	"runner.example/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const ledgerSchema = `
app ledger
entity Counter {
  id: id
  name: string(1..40) @unique
  n: int = 0
}
entity Operation {
  id: id
  name: string(1..80) @unique
  read: text
  written: text
}
apiKeys {
  scopes: {
    worker: @system("worker") { @grant read, write on Counter  @grant read, write on Operation }
  }
}
routes("/", auth: apiKey(worker), rateLimit: none) {
  POST /transact -> transact
  GET /counters/:name -> look
}
`

// newLedger is an app whose transactions write down what they have done.
func newLedger(t testing.TB) *harness.App {
	a := harness.NewApp(t, ledgerSchema, "")
	a.Write("build/ledger.wasm", harness.GoModule(t, harness.Testdata("handlers/ledger")))
	return a
}
