package hostabi_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/fault"
)

func TestAHandlerManagesTheKeysOfItsCaller(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	key, n := g.op("apiKeys.create", `{"scope":"read_only","name":"CI","expiresIn":3600,"metadata":{"team":{"n":1}}}`)
	if n < 0 {
		t.Fatalf("create: %v", key)
	}
	token, _ := key["token"].(string)
	if !regexp.MustCompile(`^rnk_[0-9A-Za-z]{36}$`).MatchString(token) {
		t.Errorf("the token is %q", token)
	}
	for member, want := range map[string]any{
		"scope": "read_only", "capability": "test:read", "name": "CI", "status": "active", "tenant": "t1", "owner": "u1",
	} {
		if key[member] != want {
			t.Errorf("%s of the new key is %v, want %v", member, key[member], want)
		}
	}
	if fmt.Sprint(key["metadata"]) != "map[team:map[n:1]]" || key["expiresAt"] == nil {
		t.Errorf("metadata %v, expiresAt %v", key["metadata"], key["expiresAt"])
	}

	id := fmt.Sprintf(`{"id":%q}`, key["id"])
	if got, n := g.op("apiKeys.get", id); n < 0 || got["id"] != key["id"] || got["token"] != nil {
		t.Errorf("get: %v", got)
	}
	list, n := g.op("apiKeys.list", "")
	keys, _ := list["keys"].([]any)
	if n < 0 || len(keys) != 1 || list["nextCursor"] != nil || strings.Contains(fmt.Sprint(list), token) {
		t.Errorf("list: %v", list)
	}
	if list, n := g.op("apiKeys.list", `{"scope":"read_only","limit":1,"cursor":null}`); n < 0 || len(list["keys"].([]any)) != 1 {
		t.Errorf("list of a scope: %v", list)
	}
	rotated, n := g.op("apiKeys.rotate", fmt.Sprintf(`{"id":%q,"gracePeriod":60}`, key["id"]))
	if n < 0 || rotated["token"] == nil || rotated["token"] == token || rotated["status"] != "rotating" {
		t.Errorf("rotate: %v", rotated)
	}
	for range 2 {
		if revoked, n := g.op("apiKeys.revoke", id); n < 0 || revoked["status"] != "revoked" || revoked["token"] != nil {
			t.Errorf("revoke: %v", revoked)
		}
	}
	if result, n := g.op("apiKeys.rotate", id); n != conflict || result["code"] != "conflict" {
		t.Errorf("rotate of a revoked key: %d %v", n, result)
	}
}

func TestArgumentsCannotChangeTheCallersAuthority(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	key, _ := g.op("apiKeys.create", `{"scope":"read_only"}`)
	id := fmt.Sprintf(`{"id":%q}`, key["id"])
	for _, row := range []struct {
		who      caller.Caller
		op, args string
		want     int32
	}{
		{caller.Caller{Kind: caller.Session, UserID: "u2", Tenant: "t1"}, "apiKeys.create", `{"scope":"admin"}`, denied},
		{caller.Caller{Kind: caller.APIKey, KeyID: "key_x", Tenant: "t1"}, "apiKeys.create", `{"scope":"read_only"}`, denied},
		{caller.Caller{}, "apiKeys.create", `{"scope":"read_only"}`, denied},
		{caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "t1"}, "apiKeys.create", `{"scope":"read_only","tenant":"t2"}`, invalid},
		{caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "t1"}, "apiKeys.create", `{"scope":"read_only","owner":"u9"}`, invalid},
		{caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "t2"}, "apiKeys.get", id, notFound},
		{caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "t2"}, "apiKeys.revoke", id, notFound},
		{caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "t2"}, "apiKeys.rotate", id, notFound},
		{caller.Caller{}, "apiKeys.get", id, notFound},
	} {
		g.call.Caller = row.who
		if result, n := g.op(row.op, row.args); n != row.want {
			t.Errorf("%s %s as %v of %q: %d %v, want %d", row.op, row.args, row.who.Kind, row.who.Tenant, n, result, row.want)
		}
	}
}

func TestUndeclaredSecret(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	if result, n := g.op("secret", `{"name":"SIGNING_KEY"}`); n < 0 || result["value"] != "s3cr3t" {
		t.Errorf("a declared secret: %v", result)
	}
	for _, name := range []string{"OTHER", "PATH", "", "signing_key", "../SIGNING_KEY"} {
		result, n := g.op("secret", fmt.Sprintf(`{"name":%q}`, name))
		if n != denied || result["code"] != "denied" || strings.Contains(fmt.Sprint(result), "s3cr3t") {
			t.Errorf("secret %q: %d %v", name, n, result)
		}
	}
	if result, n := g.op("secret", `{"name":"`+strings.Repeat("N", 5000)+`"}`); n != denied || len(fmt.Sprint(result)) > 400 {
		t.Errorf("a long name: %d %v", n, result)
	}
	if strings.Contains(g.log.String(), "s3cr3t") {
		t.Error("the secret is in the log")
	}
}

func TestUnknownMembersOfArgumentsAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	deep := strings.Repeat(`{"a":`, 63) + "1" + strings.Repeat("}", 63) // inside the arguments: 64
	for _, row := range []struct{ op, args, message string }{
		{"apiKeys.create", `{}`, `apiKeys.create: member "scope" is missing`},
		{"sessions.list", `{"limit":0}`, `sessions.list: member "limit" must be from 1 to 1000`},
		{"sessions.list", `{"user":1}`, `sessions.list: member "user" must be a string`},
		{"sessions.list", `{"tenant":null}`, `sessions.list: member "tenant" must be a string, or left out`},
		{"sessions.list", `{"allTenants":1}`, `sessions.list: member "allTenants" must be true or false`},
		{"sessions.list", `{"userId":"ada"}`, `sessions.list: unknown member "userId"`},
		{"sessions.revokeAll", `{"user":""}`, `sessions.revokeAll: member "user" must not be empty`},
		{"sessions.revokeAll", `{"except":null}`, `sessions.revokeAll: member "except" must be a string, or left out`},
		{"sessions.revokeAll", `{"limit":1}`, `sessions.revokeAll: unknown member "limit"`},
		{"apiKeys.create", ``, `apiKeys.create: member "scope" is missing`},
		{"apiKeys.create", `{"scope":null}`, `apiKeys.create: member "scope" is missing`},
		{"apiKeys.create", `{"scope":1}`, `apiKeys.create: member "scope" must be a string`},
		{"apiKeys.create", `{"scope":"read_only","expiresin":1}`, `apiKeys.create: unknown member "expiresin" (did you mean "expiresIn"?); known: scope, name, expiresIn, metadata`},
		{"apiKeys.create", `{"Scope":"read_only"}`, `apiKeys.create: member "scope" is missing`},
		{"apiKeys.create", `{"scope":"read_only","scope":"admin"}`, `apiKeys.create: member "scope" is repeated`},
		{"apiKeys.create", `{"scope":"read_only","\u0073cope":"admin"}`, `apiKeys.create: member "scope" is repeated`},
		{"apiKeys.create", `{"scope":"read_only","metadata":{"a":[{"b":1,"b":2}]}}`, `apiKeys.create: member "b" is repeated`},
		{"apiKeys.create", `{"scope":"read_only","metadata":[]}`, `apiKeys.create: member "metadata" must be an object`},
		{"apiKeys.create", `{"scope":"read_only","metadata":` + "{\"a\":" + deep + "}}", `apiKeys.create: arguments nest deeper than 64`},
		{"apiKeys.create", `{"scope":"read_only","expiresIn":"60"}`, `apiKeys.create: member "expiresIn" must be a whole number`},
		{"apiKeys.create", `{"scope":"read_only","expiresIn":null}`, `apiKeys.create: member "expiresIn" must not be null: leave it out`},
		{"apiKeys.rotate", `{"id":"key_1","gracePeriod":null}`, `apiKeys.rotate: member "gracePeriod" must not be null: leave it out`},
		{"apiKeys.list", `{"limit":null}`, `apiKeys.list: member "limit" must not be null: leave it out`},
		{"jobs.enqueue", `{"name":"x","at":null}`, `jobs.enqueue: member "at" must not be null: leave it out`},
		{"jobs.enqueue", `{"name":"x","delay":null}`, `jobs.enqueue: member "delay" must not be null: leave it out`},
		{"sessions.create", `{"userId":"u","ttl":null}`, `sessions.create: member "ttl" must not be null: leave it out`},
		{"sleep", `{"seconds":null}`, `sleep: member "seconds" must not be null: leave it out`},
		{"apiKeys.create", `{"scope":"read_only","expiresIn":1.5}`, `apiKeys.create: member "expiresIn" must be a whole number`},
		{"apiKeys.create", `{"scope":"read_only","expiresIn":1e300}`, `apiKeys.create: member "expiresIn" must be a whole number`},
		{"apiKeys.create", `{"scope":"read_only","expiresIn":0}`, `apiKeys.create: `},
		{"apiKeys.create", `{"scope":"read_only","expiresIn":-1}`, `apiKeys.create: `},
		{"apiKeys.create", `{"scope":"read_only","expiresIn":9007199254740991}`, `apiKeys.create: member "expiresIn" must be at most 9223372036 seconds (292 years)`},
		{"apiKeys.create", `{"scope":"read_only","expiresIn":1e12}`, `apiKeys.create: member "expiresIn" must be at most 9223372036 seconds (292 years)`},
		{"apiKeys.create", `{"scope":"read_only","expiresIn":-1e12}`, `apiKeys.create: member "expiresIn" must be at most 9223372036 seconds (292 years)`},
		{"apiKeys.rotate", `{"id":"key_x","gracePeriod":9223372037}`, `apiKeys.rotate: member "gracePeriod" must be at most 9223372036 seconds (292 years)`},
		{"apiKeys.rotate", `{"id":"key_x","grace":5}`, `apiKeys.rotate: unknown member "grace"; known: id, gracePeriod`},
		{"sessions.create", `{"userId":"u","ttl":1e12}`, `sessions.create: member "ttl" must be at most 9223372036 seconds (292 years)`},
		{"apiKeys.create", `{"scope":"no_such"}`, `apiKeys.create: `},
		{"apiKeys.create", "{\"scope\":\"\xff\"}", `apiKeys.create: arguments are not UTF-8`},
		{"apiKeys.create", `{"scope":"read_only"`, `apiKeys.create: arguments are not JSON`},
		{"apiKeys.create", `{"scope":"\ud800"}`, `apiKeys.create: scope must not have half of a surrogate pair, such as \ud800`},
		{"apiKeys.create", `{"metadata":{"a":[1,{"b":"x\udc00"}]}}`, `apiKeys.create: metadata.a[1].b must not have half of a surrogate pair, such as \ud800`},
		{"apiKeys.create", `{"scope" "read_only"}`, `apiKeys.create: arguments are not JSON`},
		{"apiKeys.create", `{"scope":"read_only",}`, `apiKeys.create: arguments are not JSON`},
		{"apiKeys.create", `{"scope":}`, `apiKeys.create: arguments are not JSON`},
		{"apiKeys.create", `{"expiresIn":0x1}`, `apiKeys.create: arguments are not JSON`},
		{"apiKeys.create", `{"expiresIn":1e999}`, `apiKeys.create: member "scope" is missing`},
		{"apiKeys.create", `[1] []`, `apiKeys.create: arguments are not JSON`},
		{"apiKeys.create", strings.Repeat("[", 100_000), `apiKeys.create: arguments nest deeper than 64`},
		{"apiKeys.create", `{"scope":"read_only"} {}`, `apiKeys.create: arguments are not JSON`},
		{"apiKeys.create", `[]`, `apiKeys.create: arguments must be a JSON object`},
		{"apiKeys.create", `null`, `apiKeys.create: arguments must be a JSON object`},
		{"apiKeys.create", ` "x"`, `apiKeys.create: arguments must be a JSON object`},
		{"apiKeys.get", `{"id":{}}`, `apiKeys.get: member "id" must be a string`},
		{"apiKeys.list", `{"limit":0}`, `apiKeys.list: member "limit" must be from 1 to 1000`},
		{"apiKeys.list", `{"limit":1001}`, `apiKeys.list: member "limit" must be from 1 to 1000`},
		{"apiKeys.list", `{"` + strings.Repeat("n", 5000) + `":true}`, `apiKeys.list: unknown member "` + strings.Repeat("n", 100) + `…"; known: scope, cursor, limit`},
		{"apiKeys.list", `{"all":true}`, `apiKeys.list: unknown member "all"; known: scope, cursor, limit`},
		{"apiKeys.rotate", `{"id":"key_x","gracePeriod":true}`, `apiKeys.rotate: member "gracePeriod" must be a whole number`},
		{"secret", `{}`, `secret: member "name" is missing`},
		{"apikeys.create", `{}`, `unknown operation "apikeys.create" (did you mean "apiKeys.create"?)`},
		{"", `{}`, `unknown operation ""`},
	} {
		g := newGuest(t, hostabi.Limits{})
		result, n := g.op(row.op, row.args)
		message, _ := result["message"].(string)
		if n != invalid || result["code"] != "invalid" || !strings.HasPrefix(message, row.message) {
			t.Errorf("%s %s: %d %v, want invalid with %q", row.op, row.args, n, result, row.message)
		}
		if keys, _ := g.op("apiKeys.list", ""); fmt.Sprint(keys["keys"]) != "[]" {
			t.Errorf("%s %s was refused and left %v", row.op, row.args, keys)
		}
	}
	g := newGuest(t, hostabi.Limits{})
	if result, n := g.op("apiKeys.create", ` {"scope":"read_only","expiresIn":60.0,"name":null,"metadata":`+deep+`} `); n < 0 {
		t.Errorf("64 deep, a blank around, a whole number with a point: %v", result)
	}
}

func TestTheLastResultStaysUntilTheNextCall(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	if n := g.raw("call_result", 0, room, roomBytes); n != notFound {
		t.Errorf("before any call: %d", n)
	}
	g.do("call", "secret", `{"name":"SIGNING_KEY"}`)
	for range 2 {
		if text, n := g.get("call_result", 0); text != `{"value":"s3cr3t"}` {
			t.Errorf("%d %q", n, text)
		}
	}
	g.do("call", "nothing", "")
	if text, _ := g.get("call_result", 0); !strings.HasPrefix(text, `{"code":"invalid","message":"unknown operation`) {
		t.Errorf("after a failed call: %q", text)
	}
	g.raw("call", memoryBytes, 1, 0, 0)
	if text, _ := g.get("call_result", 0); !strings.HasPrefix(text, `{"code":"invalid","message":"the operation`) {
		t.Errorf("after a call with a bad pointer: %q", text)
	}
}

func TestFailuresOfTheHostAreLoggedAndHiddenFromTheGuest(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.call.Caller.Metadata = []byte("{not json")
	if _, n := g.get("context"); n != int32(abi.Internal) {
		t.Errorf("a context that cannot be written: %d", n)
	}
	if line := g.log.String(); !strings.Contains(line, `"level":"ERROR"`) || !strings.Contains(line, g.call.Request.ID) {
		t.Errorf("logged: %s", line)
	}
}

func TestEveryFaultHasAnErrno(t *testing.T) {
	known := map[abi.Errno]bool{}
	for _, e := range abi.Errnos() {
		known[e.Errno] = true
	}
	names := map[fault.Code]abi.Errno{}
	for _, e := range abi.Errnos() {
		names[fault.Code(e.Name)] = e.Errno
	}
	internal := map[fault.Code]bool{fault.Internal: true, fault.HandlerFailed: true, fault.HandlerOutOfMemory: true, fault.Error: true}
	for _, code := range fault.All() {
		got := hostabi.Errno(code)
		if !known[got] {
			t.Errorf("%s is %d, which is not an errno", code, got)
		}
		if same, ok := names[code]; ok && got != same {
			t.Errorf("%s is %s, want the errno of its name", code, got)
		}
		if (got == abi.Internal) != internal[code] {
			t.Errorf("%s is %s: a code that is not in the table?", code, got)
		}
	}
	if got := hostabi.Errno("never heard of"); got != abi.Internal {
		t.Errorf("an unknown code is %s", got)
	}
}
