package keystore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/state/audit"
	"runner.example/state/store"
)

func TestANewKeyHasTheRequestedFields(t *testing.T) {
	w := inMemory(t)
	key := w.must(w.create(operator(compile(t, typed)), keystore.CreateRequest{
		Scope: "orders_read", Name: "Büro – 1", ExpiresIn: lasting(90 * day), Metadata: []byte(`{ "a" : [1, 2.50] }`), Tenant: "acme",
	}))
	w.accepts(key)
	token := key.Token.Reveal()
	want := fmt.Sprintf(`{"id":"%s","scope":"orders_read","capability":"orders.read","name":"Büro – 1","status":"active",`+
		`"hint":"ord_…%s","tenant":"acme","owner":null,"ownerKind":null,"metadata":{"a":[1,2.50]},"createdAt":"2026-05-01T12:00:00.000Z",`+
		`"expiresAt":"2026-07-30T12:00:00.000Z","rotatedAt":null,"previousTokenExpiresAt":null,"revokedAt":null,"lastUsedAt":null,"token":"%s"}`,
		key.ID, token[len(token)-4:], token)
	got, err := json.Marshal(key)
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	var back keystore.Key
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatal(err)
	}
	if again, _ := json.Marshal(back); string(again) != want {
		t.Errorf("read back and written again\n%s\nwant\n%s", again, want)
	}
	if len(key.ID) != 30 || !strings.HasPrefix(key.ID, "key_") || key.ID != strings.ToLower(key.ID) {
		t.Errorf("id %q", key.ID)
	}
}

func TestTheTokenIsShownOnlyByCreateAndRotate(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	key := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", Name: "n"}))
	rotated := w.must(w.rotate(op, key.ID, 0))
	if key.Token.IsZero() || rotated.Token.IsZero() || key.Token.Reveal() == rotated.Token.Reveal() {
		t.Fatal("create and rotate do not give two tokens")
	}
	page, err := w.list(op, keystore.Filter{})
	if err != nil || len(page.Keys) != 1 {
		t.Fatalf("%v, %v", page, err)
	}
	for name, k := range map[string]keystore.Key{
		"get": w.must(w.get(op, key.ID)), "list": page.Keys[0], "disable": w.must(w.disable(op, key.ID)),
		"enable": w.must(w.enable(op, key.ID)), "revoke": w.must(w.revoke(op, key.ID)),
	} {
		text, err := json.Marshal(k)
		if err != nil || !k.Token.IsZero() || strings.Contains(string(text), `"token"`) {
			t.Errorf("%s shows a token: %s", name, text)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v", rotated, rotated, rotated); strings.Contains(text, rotated.Token.Reveal()) {
		t.Errorf("printing a key shows its token: %s", text)
	}
}

func TestTheEndOfAKeyFollowsFromTheSchema(t *testing.T) {
	const form = `apiKeys { %s scopes: { s: @system("s") { @grant read on Order } } } routes("/", auth: apiKey(s)) { GET /o -> o }`
	for _, c := range []struct {
		settings string
		asked    *time.Duration
		want     time.Duration // 0: no end
	}{
		{"", nil, 0},
		{"", lasting(time.Second), time.Second},
		{"defaultLifetime: 90d,", nil, 90 * day},
		{"maxLifetime: 365d,", nil, 365 * day},
		{"defaultLifetime: 90d, maxLifetime: 365d,", nil, 90 * day},
		{"defaultLifetime: 90d, maxLifetime: 365d,", lasting(365 * day), 365 * day},
		{"defaultLifetime: 90d,", lasting(3000 * day), 3000 * day},
	} {
		w := inMemory(t)
		key := w.must(w.create(operator(compile(t, fmt.Sprintf(form, c.settings))), keystore.CreateRequest{Scope: "s", ExpiresIn: c.asked}))
		want := time.Time{}
		if c.want != 0 {
			want = noon.Add(c.want)
		}
		if !key.ExpiresAt.Equal(want) {
			t.Errorf("%q asked for %v: ends %v, want %v", c.settings, c.asked, key.ExpiresAt, want)
		}
	}
}

func TestInvalidCreateRequestsAreRefused(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	deep := strings.Repeat(`{"a":`, 64) + "{}" + strings.Repeat("}", 64)
	token := keystore.NewToken("ord").Reveal()
	escaped := strings.Replace(token, "_", `\u005f`, 1)
	for name, c := range map[string]struct {
		req  keystore.CreateRequest
		says string
	}{
		"no scope":                   {keystore.CreateRequest{}, "scope is missing"},
		"unknown scope":              {keystore.CreateRequest{Scope: "order_read"}, `did you mean "orders_read"?`},
		"lifetime zero":              {keystore.CreateRequest{ExpiresIn: lasting(0)}, "positive"},
		"lifetime negative":          {keystore.CreateRequest{ExpiresIn: lasting(-time.Hour)}, "positive"},
		"lifetime too long":          {keystore.CreateRequest{ExpiresIn: lasting(365*day + time.Second)}, "maxLifetime, 365d"},
		"name too long":              {keystore.CreateRequest{Name: strings.Repeat("é", 121)}, "120 characters"},
		"name with a newline":        {keystore.CreateRequest{Name: "a\nb"}, "control character"},
		"name with an escape":        {keystore.CreateRequest{Name: "a\x1b[31m"}, "control character"},
		"name not UTF-8":             {keystore.CreateRequest{Name: "a\xff"}, "UTF-8"},
		"tenant with a zero byte":    {keystore.CreateRequest{Tenant: "a\x00"}, "control character"},
		"tenant of a scope for all":  {keystore.CreateRequest{Scope: "everywhere", Tenant: "a"}, "tenant must be left out"},
		"metadata not JSON":          {keystore.CreateRequest{Metadata: []byte(`{"a":}`)}, "not valid JSON"},
		"metadata an array":          {keystore.CreateRequest{Metadata: []byte(`[1]`)}, "not a JSON object"},
		"metadata a string":          {keystore.CreateRequest{Metadata: []byte(`"a"`)}, "not a JSON object"},
		"metadata with two values":   {keystore.CreateRequest{Metadata: []byte(`{} {}`)}, "not valid JSON"},
		"metadata not UTF-8":         {keystore.CreateRequest{Metadata: []byte("{\"a\":\"\xff\"}")}, "UTF-8"},
		"metadata too large":         {keystore.CreateRequest{Metadata: []byte(`{"a":"` + strings.Repeat("x", 16<<10-7) + `"}`)}, "16 KiB"},
		"metadata repeats a member":  {keystore.CreateRequest{Metadata: []byte(`{"a":1,"b":{},"a":2}`)}, `"a" twice`},
		"metadata repeats it inside": {keystore.CreateRequest{Metadata: []byte(`{"a":[{"b":1,"\u0062":2}]}`)}, `"b" twice`},
		"metadata too deep":          {keystore.CreateRequest{Metadata: []byte(deep)}, "64 levels"},
		"name a token":               {keystore.CreateRequest{Name: token}, "name contains a token"},
		"name with a token":          {keystore.CreateRequest{Name: "Bearer " + token + "."}, "name contains a token"},
		"metadata with a token":      {keystore.CreateRequest{Metadata: []byte(`{"a":[1,{"b":"` + token + `"}]}`)}, "metadata contains a token"},
		"metadata with one in text":  {keystore.CreateRequest{Metadata: []byte(`{"curl":"-H 'X-API-Key: ` + token + `'"}`)}, "metadata contains a token"},
		"metadata with one escaped":  {keystore.CreateRequest{Metadata: []byte(`{"a":"` + escaped + `"}`)}, "metadata contains a token"},
		"metadata with a token name": {keystore.CreateRequest{Metadata: []byte(`{"` + token + `":1}`)}, "metadata contains a token"},
	} {
		if c.req.Scope == "" && name != "no scope" {
			c.req.Scope = "orders_read"
		}
		_, err := w.create(op, c.req)
		w.refuses(fault.Invalid, err)
		if err != nil && !strings.Contains(fault.Of(err).Detail, c.says) {
			t.Errorf("%s: %q does not say %q", name, err, c.says)
		}
		if early := op.Check(c.req); fault.Of(early).Detail != fault.Of(err).Detail {
			t.Errorf("%s: Check says %v, Create %v", name, early, err)
		}
	}
	if page, err := w.list(op, keystore.Filter{All: true}); err != nil || len(page.Keys) != 0 {
		t.Errorf("%d keys, %v", len(page.Keys), err)
	}
}

func TestCreateRequestsAtTheLimitsAreAccepted(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	deep := strings.Repeat(`{"a":`, 63) + "[]" + strings.Repeat("}", 63)
	for name, c := range map[string]struct {
		req  keystore.CreateRequest
		want string // metadata
	}{
		"longest name":         {keystore.CreateRequest{Name: strings.Repeat("é", 120)}, ""},
		"shortest lifetime":    {keystore.CreateRequest{ExpiresIn: lasting(time.Millisecond)}, ""},
		"null":                 {keystore.CreateRequest{Metadata: []byte(" null ")}, ""},
		"empty object":         {keystore.CreateRequest{Metadata: []byte("{ }")}, "{}"},
		"largest":              {keystore.CreateRequest{Metadata: []byte(`{ "a": "` + strings.Repeat("x", 16<<10-8) + `" }`)}, `{"a":"` + strings.Repeat("x", 16<<10-8) + `"}`},
		"deepest":              {keystore.CreateRequest{Metadata: []byte(deep)}, deep},
		"name as value":        {keystore.CreateRequest{Metadata: []byte(`{"a":"b","b":"a","c":["a","a"]}`)}, `{"a":"b","b":"a","c":["a","a"]}`},
		"same name in objects": {keystore.CreateRequest{Metadata: []byte(`{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`)}, `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`},
		"large number":         {keystore.CreateRequest{Metadata: []byte(`{"n":123456789012345678901234567890}`)}, `{"n":123456789012345678901234567890}`},
	} {
		c.req.Scope = "orders_read"
		key, err := w.create(op, c.req)
		if err != nil || string(key.Metadata) != c.want {
			t.Errorf("%s: metadata %.60s, %v", name, key.Metadata, err)
		}
	}
}

func TestRotateWithoutGraceEndsEveryOlderTokenAtOnce(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	first := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", Name: "n", Metadata: []byte(`{"a":1}`), ExpiresIn: lasting(30 * day)}))
	second := w.must(w.rotate(op, first.ID, day))
	w.clock.advance(time.Minute)
	third := w.must(w.rotate(op, first.ID, 0))
	w.rejects(first, keystore.Unknown)
	w.rejects(second, keystore.Unknown)
	w.accepts(third)
	if third.Status != keystore.Active || !third.PreviousTokenExpiresAt.IsZero() || !third.RotatedAt.Equal(noon.Add(time.Minute)) {
		t.Errorf("after the rotation: %+v", third)
	}
	// The rest of the key stays.
	want := first
	want.Token, want.Hint, want.RotatedAt, want.LastUsedAt = third.Token, third.Token.Hint(), third.RotatedAt, third.LastUsedAt
	if got, want := fmt.Sprint(third), fmt.Sprint(want); got != want {
		t.Errorf("the key is\n%s\nwant\n%s", got, want)
	}
}

func TestRotateWithGraceKeepsTheOldTokenForThatTime(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	old := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	fresh := w.must(w.rotate(op, old.ID, 24*time.Hour))
	w.accepts(old)
	w.accepts(fresh)
	if fresh.Status != keystore.Rotating || !fresh.PreviousTokenExpiresAt.Equal(noon.Add(24*time.Hour)) {
		t.Errorf("in grace: %+v", fresh)
	}
	w.clock.advance(24*time.Hour - time.Millisecond)
	w.accepts(old)
	w.clock.advance(time.Millisecond)
	w.rejects(old, keystore.GraceOver)
	w.accepts(fresh)
	if got := w.must(w.get(op, old.ID)); got.Status != keystore.Active || !got.PreviousTokenExpiresAt.IsZero() {
		t.Errorf("after the grace: %+v", got)
	}
}

func TestAnOldTokenNeverOutlivesItsKey(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	old := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
	fresh := w.must(w.rotate(op, old.ID, 24*time.Hour))
	if !fresh.PreviousTokenExpiresAt.Equal(noon.Add(time.Hour)) || !fresh.ExpiresAt.Equal(old.ExpiresAt) {
		t.Errorf("%+v", fresh)
	}
	w.clock.advance(time.Hour)
	w.rejects(old, keystore.KeyExpired)
	w.rejects(fresh, keystore.KeyExpired)
}

func TestARotationEndsOlderTokensAtTheSoonerEnd(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	first := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	second := w.must(w.rotate(op, first.ID, 24*time.Hour))
	third := w.must(w.rotate(op, first.ID, time.Hour)) // sooner than the first's end
	if !third.PreviousTokenExpiresAt.Equal(noon.Add(time.Hour)) {
		t.Errorf("the old tokens end %v", third.PreviousTokenExpiresAt)
	}
	fourth := w.must(w.rotate(op, first.ID, 5*time.Hour)) // later than both
	if !fourth.PreviousTokenExpiresAt.Equal(noon.Add(5 * time.Hour)) {
		t.Errorf("the old tokens end %v", fourth.PreviousTokenExpiresAt)
	}
	w.clock.advance(time.Hour - time.Millisecond)
	for _, key := range []keystore.Key{first, second, third, fourth} {
		w.accepts(key)
	}
	w.clock.advance(time.Millisecond)
	w.rejects(first, keystore.GraceOver)
	w.rejects(second, keystore.GraceOver)
	w.accepts(third)
	w.clock.advance(4 * time.Hour)
	w.rejects(third, keystore.GraceOver)
	w.accepts(fourth)
}

func TestAKeyHasAtMostFiveLiveTokens(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	keys := []keystore.Key{w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))}
	id := keys[0].ID
	for i := range 4 {
		keys = append(keys, w.must(w.rotate(op, id, time.Duration(i+1)*time.Hour)))
	}
	_, err := w.rotate(op, id, time.Hour)
	w.refuses(fault.Conflict, err)
	for _, key := range keys {
		w.accepts(key)
	}
	// Each token stays in grace for its own period; when one ends, another fits. Its grace is the
	// latest end of all older ones.
	w.clock.advance(time.Hour)
	w.rejects(keys[0], keystore.GraceOver)
	keys = append(keys, w.must(w.rotate(op, id, time.Hour)))
	for _, key := range keys[1:] {
		w.accepts(key)
	}
	if got := keys[5].PreviousTokenExpiresAt; !got.Equal(noon.Add(2 * time.Hour)) {
		t.Errorf("the last old token dies %v", got)
	}
	_, err = w.rotate(op, id, time.Second)
	w.refuses(fault.Conflict, err)
	if want := "the key has 5 live tokens, which is the limit"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	w.accepts(keys[5]) // the refused rotation changed nothing
	// Without a grace there always is.
	last := w.must(w.rotate(op, id, 0))
	for _, key := range keys[1:] {
		w.rejects(key, keystore.Unknown)
	}
	w.accepts(last)
}

func TestTheGraceIsBounded(t *testing.T) {
	w := inMemory(t)
	s, plain := compile(t, typed), compile(t, untyped)
	key := w.must(w.create(operator(s), keystore.CreateRequest{Scope: "orders_read"}))
	_, err := w.rotate(operator(s), key.ID, 7*day+time.Second)
	w.refuses(fault.Invalid, err)
	if !strings.Contains(err.Error(), "7d") {
		t.Errorf("%v does not name the bound", err)
	}
	_, err = w.rotate(operator(plain), key.ID, 30*day+time.Second)
	w.refuses(fault.Invalid, err)
	_, err = w.rotate(operator(s), key.ID, -time.Second)
	w.refuses(fault.Invalid, err)
	w.accepts(key)
	w.must(w.rotate(operator(s), key.ID, 7*day))
	w.must(w.rotate(operator(plain), key.ID, 30*day))
}

func TestDeadAndDisabledKeysCannotBeRotated(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	create := func() keystore.Key {
		return w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
	}
	expired := create()
	w.clock.advance(time.Hour)
	revoked, disabled := create(), create()
	w.must(w.revoke(op, revoked.ID))
	w.must(w.disable(op, disabled.ID))
	for _, key := range []keystore.Key{expired, revoked, disabled} {
		for _, grace := range []time.Duration{0, time.Minute} {
			_, err := w.rotate(op, key.ID, grace)
			w.refuses(fault.Conflict, err)
		}
	}
	w.rejects(expired, keystore.KeyExpired)
	w.rejects(revoked, keystore.KeyRevoked)
	w.rejects(disabled, keystore.KeyOff)
}

func TestRevokeEndsEveryTokenAndMayBeRepeated(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	old := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	fresh := w.must(w.rotate(op, old.ID, day))
	w.clock.advance(time.Second)
	first := w.must(w.revoke(op, old.ID))
	if first.Status != keystore.Revoked || !first.RevokedAt.Equal(noon.Add(time.Second)) || !first.PreviousTokenExpiresAt.IsZero() {
		t.Errorf("%+v", first)
	}
	w.rejects(old, keystore.KeyRevoked)
	w.rejects(fresh, keystore.KeyRevoked)
	w.clock.advance(time.Hour)
	if again := w.must(w.revoke(op, old.ID)); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("revoked again: %+v, before %+v", again, first)
	}
	if n := len(w.audit()); n != 3 {
		t.Errorf("%d audit records of three changes", n)
	}
}

func TestAnExpiredKeyCanStillBeRevoked(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	key := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
	w.clock.advance(2 * time.Hour)
	if got := w.must(w.revoke(op, key.ID)); got.Status != keystore.Revoked {
		t.Errorf("%+v", got)
	}
	w.rejects(key, keystore.KeyRevoked)
}

func TestADisabledKeyIsValidAgainAfterEnable(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	old := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	fresh := w.must(w.rotate(op, old.ID, time.Hour))
	for range 2 {
		if got := w.must(w.disable(op, old.ID)); got.Status != keystore.Disabled {
			t.Errorf("disabled: %+v", got)
		}
		w.rejects(old, keystore.KeyOff)
		w.rejects(fresh, keystore.KeyOff)
	}
	for range 2 {
		if got := w.must(w.enable(op, old.ID)); got.Status != keystore.Rotating {
			t.Errorf("enabled: %+v", got)
		}
		w.accepts(old)
		w.accepts(fresh)
	}
	if got := w.actions(); fmt.Sprint(got) != "[apiKeys.create apiKeys.rotate apiKeys.disable apiKeys.enable]" {
		t.Errorf("recorded %v: a call without effect must not be recorded", got)
	}
}

func TestDeadKeysCannotBeEnabledOrDisabled(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	expired := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
	revoked := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	off := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
	w.must(w.revoke(op, revoked.ID))
	w.must(w.disable(op, off.ID))
	w.clock.advance(time.Hour)
	for _, key := range []keystore.Key{expired, revoked, off} {
		_, err := w.enable(op, key.ID)
		w.refuses(fault.Conflict, err)
		_, err = w.disable(op, key.ID)
		w.refuses(fault.Conflict, err)
	}
	w.rejects(expired, keystore.KeyExpired)
	w.rejects(revoked, keystore.KeyRevoked)
	w.rejects(off, keystore.KeyExpired)
}

func TestUnknownIdsAreNotFound(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	key := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	for _, id := range []string{
		"", "key_", "key_01arz3ndektsv4rrffq69g5fav", strings.ToUpper(key.ID), key.ID + "x", key.ID[4:], "../pepper",
		"key_" + strings.ToUpper(key.ID[4:]), "key_zzzzzzzzzzzzzzzzzzzzzzzzzz", strings.Repeat("k", 100_000),
	} {
		for _, call := range []func() (keystore.Key, error){
			func() (keystore.Key, error) { return w.get(op, id) },
			func() (keystore.Key, error) { return w.rotate(op, id, 0) },
			func() (keystore.Key, error) { return w.revoke(op, id) },
			func() (keystore.Key, error) { return w.disable(op, id) },
			func() (keystore.Key, error) { return w.enable(op, id) },
		} {
			_, err := call()
			w.refuses(fault.NotFound, err)
		}
	}
}

func TestATenantHasAtMostTheKeysTheSchemaAllows(t *testing.T) {
	s := compile(t, `apiKeys { maxPerTenant: 3, scopes: { s: @system("s") { @grant read on Order } } } routes("/", auth: apiKey(s)) { GET /o -> o }`)
	w := inMemory(t)
	acme, other, noTenant := session(s, "acme", "u1"), session(s, "acm", "u1"), session(s, "", "u1")
	req := keystore.CreateRequest{Scope: "s", ExpiresIn: lasting(time.Hour)}
	// Concurrent requests create three keys at most.
	var made sync.Map
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			key, err := w.create(acme, req)
			if err == nil {
				made.Store(i, key)
			} else if fault.CodeOf(err) != fault.Conflict && !errors.Is(err, store.ErrConflict) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for { // under contention, conflicts may have refused all of them
		if _, err := w.create(acme, req); err != nil {
			w.refuses(fault.Conflict, err)
			break
		}
	}
	page, err := w.list(acme, keystore.Filter{})
	if err != nil || len(page.Keys) != 3 {
		t.Fatalf("%d keys, %v", len(page.Keys), err)
	}
	named := req
	named.Tenant = "acme"
	_, err = w.create(operator(s), named)
	w.refuses(fault.Conflict, err)

	for _, a := range []keystore.Authority{other, noTenant} {
		for range 3 {
			w.must(w.create(a, req))
		}
		_, err := w.create(a, req)
		w.refuses(fault.Conflict, err)
	}
	last := session(s, "", "u2")
	listed, err := w.list(noTenant, keystore.Filter{})
	if err != nil || len(listed.Keys) != 3 {
		t.Fatalf("%d keys without a tenant, %v", len(listed.Keys), err)
	}
	for range 5 { // keys that an operator creates without a tenant do not count
		w.must(w.create(operator(s), req))
	}
	_, err = w.create(last, req)
	w.refuses(fault.Conflict, err)
	w.must(w.revoke(noTenant, listed.Keys[0].ID))
	w.must(w.create(last, req))
	_, err = w.create(last, req)
	w.refuses(fault.Conflict, err)
	// Dead keys do not count.
	w.must(w.revoke(acme, page.Keys[0].ID))
	w.must(w.create(acme, req))
	_, err = w.create(acme, req)
	w.refuses(fault.Conflict, err)
	w.clock.advance(time.Hour)
	w.must(w.create(acme, req))
}

func TestEveryChangeIsRecordedWithIt(t *testing.T) {
	w := inMemory(t)
	s := compile(t, typed)
	op, boss := operator(s), session(s, "acme", "u1", "admin")
	boss.RequestID, boss.Address = "01jboss", "2001:db8::1"
	key := w.must(w.create(boss, keystore.CreateRequest{Scope: "orders_read", Name: "secret name", Metadata: []byte(`{"hidden":"a canary"}`)}))
	rotated := w.must(w.rotate(boss, key.ID, time.Hour))
	w.must(w.disable(op, key.ID))
	w.must(w.enable(op, key.ID))
	w.must(w.revoke(boss, key.ID))
	// What is refused is not recorded as a change.
	_, err := w.rotate(boss, key.ID, 0)
	w.refuses(fault.Conflict, err)

	user := audit.Actor{Kind: "session", ID: "u1"}
	root := audit.Actor{Kind: "system", ID: "uid:1000"}
	record := func(actor audit.Actor, action, request, address string) audit.Record {
		return audit.Record{Time: audit.Timestamp{Time: noon}, RequestID: request, Actor: actor, Action: action, Target: key.ID, Result: "ok", Address: address}
	}
	want := []audit.Record{
		record(user, "apiKeys.create", "01jboss", "2001:db8::1"),
		record(user, "apiKeys.rotate", "01jboss", "2001:db8::1"),
		record(root, "apiKeys.disable", "01jtest", "192.0.2.7"),
		record(root, "apiKeys.enable", "01jtest", "192.0.2.7"),
		record(user, "apiKeys.revoke", "01jboss", "2001:db8::1"),
	}
	var got []audit.Record
	for _, e := range w.audit() {
		got = append(got, e.Record)
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"a canary", "secret name", key.Token.Reveal(), rotated.Token.Reveal(), rotated.Hint} {
			if strings.Contains(string(text), secret) {
				t.Errorf("the audit log contains %q: %s", secret, text)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAChangeWithoutAnAuditRecordIsNotCommitted(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	w := inMemory(t)
	op := operator(compile(t, typed))
	const most, needed = 50_000, 3 // keys of a transaction; of a change: the key, the tenant's list, the record
	for room := range needed + 1 {
		var key keystore.Key
		var createErr error
		_, err := w.store.Update(t.Context(), func(tx *store.Tx) error {
			for i := range most - room {
				if err := tx.Set(fmt.Appendf(nil, "filler/%d", i), []byte{1}); err != nil {
					return err
				}
			}
			key, createErr = w.keys.Create(tx, op, keystore.CreateRequest{Scope: "orders_read"})
			return createErr
		})
		if (createErr == nil) != (room == needed) || err != createErr {
			t.Fatalf("with space for %d keys: create %v, commit %v", room, createErr, err)
		}
		if err == nil {
			w.accepts(key)
		}
	}
	if n := len(w.audit()); n != 1 {
		t.Errorf("%d audit records", n)
	}
}

func (w *fixture) audit() []audit.Entry {
	w.Helper()
	entries, err := audit.List(w.Context(), w.store, 0, 1000)
	if err != nil {
		w.Fatal(err)
	}
	return entries
}

func (w *fixture) actions() (out []string) {
	for _, e := range w.audit() {
		out = append(out, e.Action)
	}
	return out
}
