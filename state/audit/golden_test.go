package audit_test

import (
	"testing"
	"testing/cryptotest"
	"time"

	"runner.example/state/audit"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

func TestRecordsOfTheAuditHaveTheFormOfTheLevel(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	audit.CountFromStart()
	st := openStore(t, "")
	log := openLog(t, st)
	refuse(t, st, noon.Add(-48*time.Hour))
	add(t, st, "key_1")
	update(t, st, func(tx *store.Tx) error {
		return audit.Append(tx, audit.Record{
			Time: audit.Timestamp{Time: noon}, RequestID: "r", Actor: audit.Actor{Kind: "apiKey", ID: "key_2"}, Action: "data.delete",
			Target: "Order", Result: "denied", Reason: "why", Address: "192.0.2.7", Count: 3,
		})
	})
	seal(t, log)
	expireAt(t, log, noon.Add(-24*time.Hour))
	seal(t, log)
	add(t, st, "key_3") // not sealed
	storetest.Golden(t, st, "audit", "audit")
}
