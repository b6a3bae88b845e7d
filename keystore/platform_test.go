package keystore_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/state/audit"
	"runner.example/state/store"
)

func (w *fixture) changePlatform(fn func(*store.Tx) (keystore.PlatformKey, error)) (key keystore.PlatformKey, err error) {
	_, err = w.store.Update(w.Context(), func(tx *store.Tx) (err error) {
		key, err = fn(tx)
		return err
	})
	return key, err
}

func (w *fixture) createPlatform(a keystore.Authority, req keystore.CreatePlatformKey) (keystore.PlatformKey, error) {
	return w.changePlatform(func(tx *store.Tx) (keystore.PlatformKey, error) { return w.keys.Platform.Create(tx, a, req) })
}

func (w *fixture) revokePlatform(a keystore.Authority, id string) (keystore.PlatformKey, error) {
	return w.changePlatform(func(tx *store.Tx) (keystore.PlatformKey, error) { return w.keys.Platform.Revoke(tx, a, id) })
}

func (w *fixture) rotatePlatform(a keystore.Authority, id string, grace time.Duration) (keystore.PlatformKey, error) {
	return w.changePlatform(func(tx *store.Tx) (keystore.PlatformKey, error) { return w.keys.Platform.Rotate(tx, a, id, grace) })
}

func (w *fixture) listPlatform(a keystore.Authority, all bool) (keys []keystore.PlatformKey, err error) {
	err = w.store.View(w.Context(), func(tx *store.Tx) (err error) {
		keys, err = w.keys.Platform.List(tx, a, all)
		return err
	})
	return keys, err
}

// mustPlatform returns the key of a call that must succeed.
func (w *fixture) mustPlatform(key keystore.PlatformKey, err error) keystore.PlatformKey {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	return key
}

// verifies checks what the token of a platform key gives: its identity, or the reason to refuse it.
func (w *fixture) verifies(key keystore.PlatformKey, reason keystore.Reason) {
	w.Helper()
	got, err := w.keys.Platform.Verify([]byte(key.Token.Reveal()))
	want, wantErr := keystore.PlatformIdentity{ID: key.ID, Role: key.Role}, error(nil)
	if reason != "" {
		want, wantErr = keystore.PlatformIdentity{ID: key.ID, Refused: reason}, keystore.ErrInvalidToken
	}
	if reason == keystore.Unknown || reason == keystore.Malformed {
		want.ID = ""
	}
	if got != want || err != wantErr {
		w.Errorf("the token gives %+v, %v, want %+v", got, err, want)
	}
}

func TestPlatformKeysLiveUntilTheirEnd(t *testing.T) {
	w := onDisk(t)
	op := operator(nil) // a node without a schema has platform keys too
	day30 := 30 * day
	endless := w.mustPlatform(w.createPlatform(op, keystore.CreatePlatformKey{Name: "laptop of Ada", Role: keystore.RoleAdmin}))
	w.clock.advance(time.Millisecond) // ids are in the order of creation
	short := w.mustPlatform(w.createPlatform(op, keystore.CreatePlatformKey{Name: "ci", Role: keystore.RoleDeploy, ExpiresIn: &day30}))
	w.clock.advance(time.Millisecond)
	gone := w.mustPlatform(w.createPlatform(op, keystore.CreatePlatformKey{Name: "dashboard", Role: keystore.RoleRead}))
	if token := short.Token.Reveal(); !strings.HasPrefix(token, "rnp_") || !keystore.ValidToken([]byte(token)) || !strings.HasPrefix(short.ID, "pkey_") {
		t.Errorf("the key %s has the token %s", short.ID, token)
	}
	if !short.ExpiresAt.Equal(noon.Add(time.Millisecond+day30)) || !endless.ExpiresAt.IsZero() || short.Status != keystore.Active || short.Hint != short.Token.Hint() {
		t.Errorf("%+v, %+v", short, endless)
	}
	w.clock.advance(time.Hour)
	for _, key := range []keystore.PlatformKey{endless, short, gone} {
		w.verifies(key, "")
	}
	w.clock.advance(time.Hour)
	revoked := w.mustPlatform(w.revokePlatform(op, gone.ID))
	w.verifies(gone, keystore.KeyRevoked)
	if again := w.mustPlatform(w.revokePlatform(op, gone.ID)); again.Status != keystore.Revoked || !again.RevokedAt.Equal(revoked.RevokedAt) {
		t.Errorf("revoked twice: %+v", again)
	}
	w.clock.advance(day30)
	w.verifies(short, keystore.KeyExpired)

	w.reopen()
	w.verifies(endless, "")
	w.verifies(short, keystore.KeyExpired)
	w.verifies(gone, keystore.KeyRevoked)
	describe := func(all bool) (out []string) {
		keys, err := w.listPlatform(op, all)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if !key.Token.IsZero() || key.LastUsedAt.IsZero() {
				t.Errorf("in a list: %+v", key)
			}
			out = append(out, key.Name+" "+string(key.Role)+" "+string(key.Status))
		}
		return out
	}
	if diff := cmp.Diff([]string{"laptop of Ada admin active"}, describe(false)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"laptop of Ada admin active", "ci deploy expired", "dashboard read revoked"}, describe(true)); diff != "" {
		t.Error(diff)
	}
	entries, err := audit.List(t.Context(), w.store, 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	var records []string
	for _, e := range entries {
		if e.Actor.ID != "uid:1000" || e.Address != "192.0.2.7" || e.RequestID != "01jtest" {
			t.Errorf("%+v", e)
		}
		records = append(records, e.Action+" "+e.Target+" "+e.Reason)
	}
	if diff := cmp.Diff([]string{
		"platformKeys.create " + endless.ID + " role admin", "platformKeys.create " + short.ID + " role deploy",
		"platformKeys.create " + gone.ID + " role read", "platformKeys.revoke " + gone.ID + " role read",
	}, records); diff != "" {
		t.Error(diff)
	}
}

func TestCredentialsOfOneKindAreNotValidAsAnother(t *testing.T) {
	w := inMemory(t)
	sc := compile(t, both)
	op := operator(sc)
	key := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	signed := w.mustSession(w.createSession(op, keystore.CreateSessionRequest{UserID: "ada"}))
	platform := w.mustPlatform(w.createPlatform(op, keystore.CreatePlatformKey{Name: "ci", Role: keystore.RoleAdmin}))
	for _, token := range []string{key.Token.Reveal(), string(valueOf(signed)), keystore.NewToken("rnp").Reveal()} {
		if got, err := w.keys.Platform.Verify([]byte(token)); err != keystore.ErrInvalidToken || got.Refused != keystore.Unknown {
			t.Errorf("%s…: %+v, %v", token[:3], got, err)
		}
	}
	token := []byte(platform.Token.Reveal())
	if got, err := w.keys.Verify(token); err != keystore.ErrInvalidToken || got.Refused != keystore.Unknown {
		t.Errorf("as an API key: %+v, %v", got, err)
	}
	if got, err := w.keys.VerifySession(sc, token); err != keystore.ErrInvalidToken || got.Refused != keystore.Unknown {
		t.Errorf("as a session: %+v, %v", got, err)
	}
	for i := range token { // every single changed character
		changed := []byte(string(token))
		if changed[i]++; changed[i] == token[i] {
			t.Fatal("not changed")
		}
		if _, err := w.keys.Platform.Verify(changed); err != keystore.ErrInvalidToken {
			t.Errorf("character %d changed: %v", i, err)
		}
	}
}

func TestPlatformKeysAreOnlyForOperators(t *testing.T) {
	w := inMemory(t)
	sc := compile(t, typed)
	op := operator(sc)
	key := w.mustPlatform(w.createPlatform(op, keystore.CreatePlatformKey{Name: "ci", Role: keystore.RoleRead}))
	user := session(sc, "acme", "ada", "admin")
	_, err := w.createPlatform(user, keystore.CreatePlatformKey{Name: "x", Role: keystore.RoleAdmin})
	w.refuses(fault.Denied, err)
	_, err = w.revokePlatform(user, key.ID)
	w.refuses(fault.Denied, err)
	_, err = w.listPlatform(user, true)
	w.refuses(fault.Denied, err)
	w.verifies(key, "")

	none := time.Duration(0)
	for _, row := range []struct {
		req  keystore.CreatePlatformKey
		want string
	}{
		{keystore.CreatePlatformKey{Role: keystore.RoleRead}, "name is missing"},
		{keystore.CreatePlatformKey{Name: "x"}, "role must be one of read, deploy, admin"},
		{keystore.CreatePlatformKey{Name: "x", Role: "deplyo"}, `did you mean "deploy"`},
		{keystore.CreatePlatformKey{Name: "x", Role: "read", ExpiresIn: &none}, "expiresIn must be positive"},
		{keystore.CreatePlatformKey{Name: strings.Repeat("x", 121), Role: "read"}, "name is longer than 120 characters"},
		{keystore.CreatePlatformKey{Name: "a\nb", Role: "read"}, "control character"},
		{keystore.CreatePlatformKey{Name: key.Token.Reveal(), Role: "read"}, "name contains a token"},
	} {
		_, err := w.createPlatform(op, row.req)
		w.refuses(fault.Invalid, err)
		if err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %s", row.req, err, row.want)
		}
	}
	for _, id := range []string{"", "pkey_", "../x", "key_01hzzzzzzzzzzzzzzzzzzzzzzz", "pkey_01hzzzzzzzzzzzzzzzzzzzzzzz"} {
		_, err := w.revokePlatform(op, id)
		w.refuses(fault.NotFound, err)
	}
	// A transaction that is not committed leaves nothing.
	var lost keystore.PlatformKey
	_, err = w.store.Update(t.Context(), func(tx *store.Tx) (err error) {
		lost, err = w.keys.Platform.Create(tx, op, keystore.CreatePlatformKey{Name: "x", Role: keystore.RoleAdmin})
		return errors.Join(err, errors.New("stop"))
	})
	if err == nil {
		t.Fatal("committed")
	}
	w.verifies(lost, keystore.Unknown)
}

// An old token is valid until its grace ends, and every older one at once without a grace.
func TestPlatformKeysRotate(t *testing.T) {
	w := onDisk(t)
	op := operator(nil)
	first := w.mustPlatform(w.createPlatform(op, keystore.CreatePlatformKey{Name: "ci", Role: keystore.RoleDeploy, ExpiresIn: lasting(30 * day)}))
	w.clock.advance(time.Minute)
	second := w.mustPlatform(w.rotatePlatform(op, first.ID, time.Hour))
	if second.ID != first.ID || second.Role != first.Role || !second.ExpiresAt.Equal(first.ExpiresAt) || second.Token.Reveal() == first.Token.Reveal() ||
		second.Hint != second.Token.Hint() || second.Status != keystore.Rotating || !second.RotatedAt.Equal(noon.Add(time.Minute)) ||
		!second.PreviousTokenExpiresAt.Equal(noon.Add(time.Hour+time.Minute)) {
		t.Errorf("%+v", second)
	}
	w.verifies(first, "")
	w.verifies(second, "")
	if keys, err := w.listPlatform(op, false); err != nil || len(keys) != 1 || keys[0].Status != keystore.Rotating || keys[0].Hint != second.Hint {
		t.Errorf("%+v, %v", keys, err)
	}
	w.reopen()
	w.verifies(first, "")
	w.clock.advance(time.Hour)
	w.verifies(first, keystore.GraceOver)
	w.verifies(second, "")
	if keys, err := w.listPlatform(op, false); err != nil || len(keys) != 1 || keys[0].Status != keystore.Active || !keys[0].PreviousTokenExpiresAt.IsZero() {
		t.Errorf("after the grace: %+v, %v", keys, err)
	}

	// A rotation does not lengthen the grace of a token, or the life of the key.
	third := w.mustPlatform(w.rotatePlatform(op, first.ID, time.Hour))
	w.clock.advance(time.Minute)
	fourth := w.mustPlatform(w.rotatePlatform(op, first.ID, 29*day+23*time.Hour))
	w.verifies(first, keystore.Unknown)
	w.clock.advance(time.Hour)
	w.verifies(second, keystore.GraceOver)
	w.verifies(third, "")
	last := w.mustPlatform(w.rotatePlatform(op, first.ID, 0))
	for _, old := range []keystore.PlatformKey{second, third, fourth} {
		w.verifies(old, keystore.Unknown)
	}
	w.verifies(last, "")
	w.clock.advance(30 * day)
	w.verifies(last, keystore.KeyExpired)
	_, err := w.rotatePlatform(op, first.ID, 0)
	w.refuses(fault.Conflict, err)

	// The others are not touched, and revoking ends all tokens.
	other := w.mustPlatform(w.createPlatform(op, keystore.CreatePlatformKey{Name: "other", Role: keystore.RoleAdmin}))
	tokens := []keystore.PlatformKey{other}
	for range 4 {
		tokens = append(tokens, w.mustPlatform(w.rotatePlatform(op, other.ID, day)))
	}
	_, err = w.rotatePlatform(op, other.ID, day) // the sixth live token
	w.refuses(fault.Conflict, err)
	for _, one := range tokens {
		w.verifies(one, "")
	}
	w.mustPlatform(w.revokePlatform(op, other.ID))
	for _, one := range tokens {
		w.verifies(one, keystore.KeyRevoked)
	}
	w.reopen()
	for _, one := range tokens {
		w.verifies(one, keystore.KeyRevoked)
	}
	_, err = w.rotatePlatform(op, other.ID, day)
	w.refuses(fault.Conflict, err)

	// Refused rotations.
	live := w.mustPlatform(w.createPlatform(op, keystore.CreatePlatformKey{Name: "live", Role: keystore.RoleRead}))
	for _, grace := range []time.Duration{-1, 30*day + 1} {
		_, err = w.rotatePlatform(op, live.ID, grace)
		w.refuses(fault.Invalid, err)
	}
	for _, id := range []string{"", "key_01hzzzzzzzzzzzzzzzzzzzzzzz", "pkey_01hzzzzzzzzzzzzzzzzzzzzzzz"} {
		_, err = w.rotatePlatform(op, id, 0)
		w.refuses(fault.NotFound, err)
	}
	_, err = w.rotatePlatform(session(compile(t, typed), "acme", "ada", "admin"), live.ID, 0)
	w.refuses(fault.Denied, err)
	w.verifies(live, "")
	entries, err := audit.List(t.Context(), w.store, 2, 1)
	if err != nil || len(entries) != 1 || entries[0].Action != "platformKeys.rotate" || entries[0].Target != first.ID || entries[0].Actor.ID != "uid:1000" {
		t.Errorf("%+v, %v", entries, err)
	}
}

func TestRolesIncludeTheWeakerOnes(t *testing.T) {
	all := keystore.Roles()
	for i, have := range all {
		for j, need := range all {
			if got := have.Allows(need); got != (i >= j) {
				t.Errorf("%s allows what needs %s: %t", have, need, got)
			}
		}
		for _, other := range []keystore.Role{"", "root"} {
			if have.Allows(other) || other.Allows(have) || other.Allows(other) {
				t.Errorf("the role %q is known", other)
			}
		}
	}
}

func TestAPlatformKeyInJSONHasItsTokenOnlyWhenItIsNew(t *testing.T) {
	w := inMemory(t)
	op := operator(nil)
	made := w.mustPlatform(w.createPlatform(op, keystore.CreatePlatformKey{Name: "ci", Role: keystore.RoleDeploy}))
	text, err := json.Marshal(made)
	if err != nil || !strings.Contains(string(text), `"token":"`+made.Token.Reveal()+`"`) {
		t.Errorf("%s, %v", text, err)
	}
	var back keystore.PlatformKey
	if err := json.Unmarshal(text, &back); err != nil || back.Token.Reveal() != made.Token.Reveal() || back.Role != made.Role || !back.CreatedAt.Equal(made.CreatedAt) {
		t.Errorf("%+v, %v", back, err)
	}
	keys, err := w.listPlatform(op, false)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%+v, %v", keys, err)
	}
	if text, err := json.Marshal(keys); err != nil || strings.Contains(string(text), `"token"`) || !strings.Contains(string(text), `"expiresAt":null`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestVerifyingAPlatformKeyDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	w := inMemory(t)
	key := w.mustPlatform(w.createPlatform(operator(nil), keystore.CreatePlatformKey{Name: "ci", Role: keystore.RoleDeploy}))
	token := []byte(key.Token.Reveal())
	w.clock.advance(time.Minute)
	if n := testing.AllocsPerRun(100, func() { _, _ = w.keys.Platform.Verify(token) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestEndedPlatformKeysAreSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newClock()
		st, err := store.Open(store.Options{Clock: clock.now})
		if err != nil {
			t.Fatal(err)
		}
		keys, err := keystore.Open(t.Context(), st, keystore.Options{Machine: clock.machine(), KeepDead: 10 * day})
		if err != nil {
			t.Fatal(err)
		}
		w := &fixture{TB: t, clock: clock, store: st, keys: keys}
		op := operator(nil)
		live := w.mustPlatform(w.createPlatform(op, keystore.CreatePlatformKey{Name: "live", Role: keystore.RoleAdmin}))
		expired := w.mustPlatform(w.createPlatform(op, keystore.CreatePlatformKey{Name: "expired", Role: keystore.RoleAdmin, ExpiresIn: lasting(time.Hour)}))
		revoked := w.mustPlatform(w.createPlatform(op, keystore.CreatePlatformKey{Name: "revoked", Role: keystore.RoleAdmin}))
		w.verifies(expired, "")
		clock.advance(2 * time.Hour)
		w.mustPlatform(w.revokePlatform(op, revoked.ID))
		clock.advance(9 * day)
		time.Sleep(time.Hour + time.Minute)
		w.verifies(expired, keystore.KeyExpired)
		w.verifies(revoked, keystore.KeyRevoked)
		clock.advance(2 * day)
		time.Sleep(time.Hour + time.Minute)
		w.verifies(live, "")
		w.verifies(expired, keystore.Unknown)
		w.verifies(revoked, keystore.Unknown)
		if all, err := w.listPlatform(op, true); err != nil || len(all) != 1 || all[0].ID != live.ID {
			t.Errorf("%+v, %v", all, err)
		}
		entries, err := audit.Newest(t.Context(), st, 1)
		if err != nil || len(entries) != 1 || entries[0].Action != "platformKeys.sweep" || entries[0].Count != 2 {
			t.Errorf("%+v, %v", entries, err)
		}
		if err := errors.Join(keys.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestAcceptingAnEarlierTimeRevokesPlatformKeysCreatedLater(t *testing.T) {
	w := onDisk(t)
	op := operator(nil)
	before := w.mustPlatform(w.createPlatform(op, keystore.CreatePlatformKey{Name: "before", Role: keystore.RoleAdmin}))
	w.clock.step(400 * day)
	_ = w.keys.Ready()
	w.clock.advance(time.Hour) // the clock is trusted again
	during := w.mustPlatform(w.createPlatform(op, keystore.CreatePlatformKey{Name: "during", Role: keystore.RoleAdmin, ExpiresIn: lasting(day)}))
	w.clock.step(-400 * day)
	if change, err := w.keys.AcceptClock(t.Context(), op); err != nil || change.Revoked != 1 {
		t.Errorf("%+v, %v", change, err)
	}
	w.verifies(before, "")
	w.verifies(during, keystore.KeyRevoked)
}
