package webhook_test

import (
	"testing"
	"time"

	"runner.example/state/store"
	"runner.example/state/store/storetest"
	"runner.example/state/webhook"
)

func TestRecordsOfDeliveriesHaveTheFormOfTheLevel(t *testing.T) {
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	d := webhook.Delivery{ID: "msg_1", Until: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	if _, err := st.Update(t.Context(), func(tx *store.Tx) error { return d.Record(tx, "POST /hooks") }); err != nil {
		t.Fatal(err)
	}
	storetest.Golden(t, st, "deliveries", "webhook/")
}
