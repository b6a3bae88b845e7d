package audit_test

import (
	"testing"

	"runner.example/state/audit"
	"runner.example/state/store"
)

// writtenBefore are records of an earlier version, which did not seal records, and the
// head that it computed.
var writtenBefore = struct {
	records [][2]string
	head    string
}{
	records: [][2]string{
		{"audit/01JTDG3J0B000000000001A6BC", `{"time":"2025-05-04T12:00:00.123Z","requestId":"01j9","actor":{"kind":"system","id":"uid:1000"},"action":"apiKeys.create","target":"key_1","result":"ok","reason":"","address":""}`},
		{"audit/01JTDG3J0B000000000002D7EF", `{"time":"2025-05-04T12:00:00.000Z","requestId":"","actor":{"kind":"anonymous","id":""},"action":"credentials.refuse","target":"","result":"invalid_token","reason":"unknown","address":"192.0.2.1","count":30}`},
		{"audit/01JTDG3J0B000000000003G8HJ", `{"time":"2025-05-04T12:00:01.000Z","requestId":"01ja","actor":{"kind":"session","id":"u1"},"action":"apiKeys.revoke","target":"key_1","result":"ok","reason":"left","address":"2001:db8::1"}`},
	},
	head: "3:dd8852c518f0e9e50e747e61d8ebcaf8f632af7f3cb44e142de7e0a7df558d5f",
}

func TestAnAuditLogOfAnEarlierVersionVerifies(t *testing.T) {
	st := openStore(t, t.TempDir())
	update(t, st, func(tx *store.Tx) error {
		for _, r := range writtenBefore.records {
			if err := tx.Set([]byte(r[0]), []byte(r[1])); err != nil {
				return err
			}
		}
		return nil
	})
	head, err := audit.ParseHead(writtenBefore.head)
	if err != nil {
		t.Fatal(err)
	}
	log := openLog(t, st)
	for _, step := range []func(){
		func() {},
		func() { seal(t, log) },
		func() { add(t, st, "now"); seal(t, log) },
	} {
		step()
		verify(t, st, head)
	}
	if n := expireAt(t, log, noon.Add(-30*day)); n != 1 {
		t.Errorf("%d counts expired, want 1", n)
	}
	verify(t, st, log.Head())
}
