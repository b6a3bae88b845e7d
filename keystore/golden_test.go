package keystore_test

import (
	"encoding/json"
	"testing"
	"testing/cryptotest"
	"time"

	"runner.example/keystore"
	"runner.example/state/store/storetest"
)

func TestRecordsOfKeysAndSessionsHaveTheFormOfTheLevel(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	w := inMemory(t)
	s := compile(t, typed)
	admin := operator(s)
	key := w.must(w.create(admin, keystore.CreateRequest{
		Scope: "orders_read", Name: "a", Tenant: "", Metadata: json.RawMessage(`{"plan":"gold"}`), ExpiresIn: lasting(30 * day),
	}))
	w.must(w.rotate(admin, key.ID, day))
	w.must(w.disable(admin, key.ID))
	w.must(w.create(session(s, "", "u1", "admin"), keystore.CreateRequest{Scope: "orders_write", Name: "of a user", ExpiresIn: lasting(day)}))
	revoked := w.must(w.create(admin, keystore.CreateRequest{Scope: "orders_read", Name: "revoked"}))
	w.must(w.revoke(admin, revoked.ID))
	w.mustPlatform(w.createPlatform(admin, keystore.CreatePlatformKey{Name: "ci", Role: keystore.RoleDeploy, ExpiresIn: lasting(day)}))
	gone := w.mustPlatform(w.createPlatform(admin, keystore.CreatePlatformKey{Name: "old", Role: keystore.RoleRead}))
	w.mustPlatform(w.revokePlatform(admin, gone.ID))
	w.accepts(w.must(w.create(admin, keystore.CreateRequest{Scope: "minted", Name: "used"})))
	user := operator(compile(t, cookies))
	if _, err := w.createSession(user, keystore.CreateSessionRequest{UserID: "u1", Tenant: "acme", Roles: []string{"admin"}, TTL: lasting(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	ended, err := w.createSession(user, keystore.CreateSessionRequest{UserID: "u2"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.revokeSession(user, ended.ID); err != nil {
		t.Fatal(err)
	}
	if err := w.keys.Close(); err != nil { // writes the last use
		t.Fatal(err)
	}
	storetest.Golden(t, w.store, "keys", "keystore/")
}
