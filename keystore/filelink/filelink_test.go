package filelink_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/keystore/filelink"
	"runner.example/state/audit"
	"runner.example/state/entity"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// app is a store with its keys.
type app struct {
	t     testing.TB
	store *store.Store
	keys  *keystore.Keystore
}

func newApp(t testing.TB) *app {
	t.Helper()
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := keystore.Open(context.Background(), st, keystore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := keys.Close(); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return &app{t, st, keys}
}

func (a *app) sign(l filelink.Link) string {
	a.t.Helper()
	token := ""
	err := a.store.View(context.Background(), func(tx *store.Tx) (err error) {
		token, err = filelink.Sign(a.keys, tx, l)
		return err
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return token
}

func (a *app) isCurrent(l filelink.Link) (current bool) {
	a.t.Helper()
	err := a.store.View(context.Background(), func(tx *store.Tx) (err error) {
		current, err = l.IsCurrent(tx)
		return err
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return current
}

func (a *app) revoke(who keystore.Authority) (generation uint64, err error) {
	_, err = a.store.Update(context.Background(), func(tx *store.Tx) (err error) {
		generation, err = filelink.Revoke(tx, who)
		return err
	})
	return generation, err
}

var operator = keystore.Authority{Caller: caller.Caller{Kind: caller.System, UserID: "root"}, RequestID: "r1"}

var (
	expires = time.Unix(1_800_000_000, 0)
	before  = expires.Add(-time.Nanosecond)
	plain   = filelink.Link{
		Owner: entity.FileOwner{Table: 3, Field: 1 << 20, Tail: "acme\x00\x0101j000000000000000000000ab"}, File: "01j000000000000000000000cd",
		Expires: expires,
	}
)

func TestALinkIsReadUntilItExpires(t *testing.T) {
	a := newApp(t)
	named := plain
	named.Disposition, named.Name = filelink.Attachment, "größe.png"
	for _, l := range []filelink.Link{plain, named} {
		token := a.sign(l)
		if strings.ContainsAny(token, "=+/.") {
			t.Errorf("the token %q needs escapes in a path", token)
		}
		got, err := filelink.Verify(a.keys, []byte(token), before)
		if err != nil || got != l {
			t.Errorf("read %+v %v, want %+v", got, err, l)
		}
		for _, at := range []time.Time{expires, expires.Add(1000 * time.Hour)} {
			if _, err := filelink.Verify(a.keys, []byte(token), at); err != filelink.ErrInvalid {
				t.Errorf("at %s: %v", at, err)
			}
		}
	}
}

// No change of a byte, no shorter and no longer token is taken.
func TestAChangedTokenIsRefused(t *testing.T) {
	a := newApp(t)
	token := a.sign(plain)
	refused := func(what, changed string) {
		t.Helper()
		if _, err := filelink.Verify(a.keys, []byte(changed), before); err != filelink.ErrInvalid {
			t.Errorf("%s: %q: %v", what, changed, err)
		}
	}
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ \n"
	for i := range token {
		for _, c := range digits {
			if byte(c) != token[i] {
				refused("another byte", token[:i]+string(c)+token[i+1:])
			}
		}
		refused("the beginning", token[:i])
		refused("the end", token[i+1:])
		for _, more := range []string{"A", "\n", "\r", "="} {
			refused("one more byte", token[:i]+more+token[i:])
		}
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		for bit := range 8 {
			raw[i] ^= 1 << bit
			refused("another bit", base64.RawURLEncoding.EncodeToString(raw))
			raw[i] ^= 1 << bit
		}
	}
	refused("twice", token+token)
	refused("long", strings.Repeat("A", filelink.MaxToken))
	refused("longer", strings.Repeat("A", filelink.MaxToken+1))
	if _, err := filelink.Verify(a.keys, []byte(token), before); err != nil {
		t.Errorf("unchanged: %v", err)
	}
	if _, err := filelink.Verify(newApp(t).keys, []byte(token), before); err != filelink.ErrInvalid {
		t.Errorf("another app: %v", err)
	}
}

func TestATokenHasALimit(t *testing.T) {
	a := newApp(t)
	long := plain
	long.Name, long.Owner.Tail = strings.Repeat("n", 255), strings.Repeat("t", 1100)
	if token := a.sign(long); len(token) > filelink.MaxToken {
		t.Errorf("%d bytes", len(token))
	} else if got, err := filelink.Verify(a.keys, []byte(token), before); err != nil || got != long {
		t.Errorf("read %v", err)
	}
	long.Owner.Tail = strings.Repeat("t", 1300)
	err := a.store.View(t.Context(), func(tx *store.Tx) error {
		_, err := filelink.Sign(a.keys, tx, long)
		return err
	})
	if fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("longer: %v", err)
	}
}

func TestARevocationEndsAllLinks(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	a := newApp(t)
	old, err := filelink.Verify(a.keys, []byte(a.sign(plain)), before)
	if err != nil || !a.isCurrent(old) {
		t.Fatalf("before: %v", err)
	}
	for kind, who := range map[string]keystore.Authority{
		"a session":               {Caller: caller.Caller{Kind: caller.Session, UserID: "u1"}},
		"an operator of a tenant": {Caller: caller.Caller{Kind: caller.System, Tenant: "acme"}},
	} {
		if _, err := a.revoke(who); fault.CodeOf(err) != fault.Denied || !a.isCurrent(old) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for want := range uint64(3) {
		if got, err := a.revoke(operator); err != nil || got != want+1 {
			t.Errorf("generation %d %v, want %d", got, err, want+1)
		}
		next, err := filelink.Verify(a.keys, []byte(a.sign(plain)), before)
		if err != nil || a.isCurrent(old) || !a.isCurrent(next) {
			t.Errorf("afterwards: %v, the old link works: %v, a new one: %v", err, a.isCurrent(old), a.isCurrent(next))
		}
		old = next
	}
	records, err := audit.Newest(t.Context(), a.store, 10)
	if err != nil || len(records) != 3 {
		t.Fatalf("audit: %v %v", records, err)
	}
	if r := records[2]; r.Action != "files.revokeLinks" || r.Target != "generation 2" || r.Actor.ID != "root" || r.Result != audit.OK {
		t.Errorf("audit: %+v", r)
	}
	storetest.Golden(t, a.store, "filelinks", "filelinks/")
}

func FuzzVerify(f *testing.F) {
	a := newApp(f)
	f.Add([]byte(a.sign(plain)))
	named := plain
	named.Disposition, named.Name = filelink.Inline, "a.png"
	f.Add([]byte(a.sign(named)))
	f.Add([]byte("AQCAgICAgICAgIABAAAAAAAAAAAAAAAAAAAAAAAAAAAA"))
	f.Fuzz(func(t *testing.T, token []byte) {
		a := &app{t, a.store, a.keys}
		l, err := filelink.Verify(a.keys, token, before)
		if err != nil {
			if err != filelink.ErrInvalid {
				t.Errorf("%q: %v", token, err)
			}
			return
		}
		if again := a.sign(l); again != string(token) {
			t.Errorf("%q has the link of %q", token, again)
		}
	})
}

// FuzzRead compares what is signed with what is read, without the protection of the HMAC.
func FuzzRead(f *testing.F) {
	f.Add([]byte{})
	f.Add(filelink.Signed(plain))
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, ok := filelink.Read(b); ok {
			again, ok := filelink.Read(filelink.Signed(l))
			if !ok || again != l {
				t.Errorf("%+v is read as %+v", l, again)
			}
		}
	})
}
