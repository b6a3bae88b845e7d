package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/schema/compiler"
)

// issuer compiles an app in typed mode with a scope r0, r1, … for each rule.
func issuer(t *testing.T, rules ...string) *schema.Schema {
	t.Helper()
	var scopes []string
	for i, rule := range rules {
		scopes = append(scopes, fmt.Sprintf("r%d: @system(\"r%d\") { @grant read on Order\n @issue when %s }", i, i, rule))
	}
	text := `auth { session cookie { idle: 30m } roles: [admin, staff, other] }
entity Order { id: id }
apiKeys { scopes: { ` + strings.Join(scopes, ",\n") + ` } }`
	s, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{})
	if s == nil {
		t.Fatalf("%q: %v", rules, found)
	}
	return s
}

// outcome is the truth of a rule. MayIssue is true only for true, so outcome also asks for the
// negation of the rule.
func outcome(t *testing.T, rule string, by caller.Caller) string {
	t.Helper()
	s := issuer(t, rule, "not ("+rule+")")
	switch {
	case s.MayIssue(s.Scope("r0"), by):
		return "true"
	case s.MayIssue(s.Scope("r1"), by):
		return "false"
	}
	return "unknown"
}

var (
	admin = caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "t1", Roles: []string{"admin", "other"}}
	// plain is a session without tenant and roles.
	plain = caller.Caller{Kind: caller.Session, UserID: "u1"}
	key   = caller.Caller{Kind: caller.APIKey, KeyID: "key_1", Scope: "r0", Capability: "r0", Tenant: "t1"}
)

func TestLogicHasThreeValues(t *testing.T) {
	values := map[string]string{"true": "1 == 1", "false": "1 == 2", "unknown": `auth.tenant == "t1"`}
	for _, tt := range []struct{ x, y, and, or string }{
		{"true", "true", "true", "true"},
		{"true", "false", "false", "true"},
		{"true", "unknown", "unknown", "true"},
		{"false", "true", "false", "true"},
		{"false", "false", "false", "false"},
		{"false", "unknown", "false", "unknown"},
		{"unknown", "true", "unknown", "true"},
		{"unknown", "false", "false", "unknown"},
		{"unknown", "unknown", "unknown", "unknown"},
	} {
		x, y := values[tt.x], values[tt.y]
		if got := outcome(t, x+" and "+y, plain); got != tt.and {
			t.Errorf("%s and %s = %s, want %s", tt.x, tt.y, got, tt.and)
		}
		if got := outcome(t, x+" || "+y, plain); got != tt.or {
			t.Errorf("%s or %s = %s, want %s", tt.x, tt.y, got, tt.or)
		}
	}
	for x, want := range map[string]string{"true": "false", "false": "true", "unknown": "unknown"} {
		if got := outcome(t, "not "+values[x], plain); got != want {
			t.Errorf("not %s = %s, want %s", x, got, want)
		}
	}
}

func TestRulesAreEvaluatedForTheCaller(t *testing.T) {
	for _, tt := range []struct {
		rule string
		by   caller.Caller
		want string
	}{
		// Values that the caller has.
		{`auth.userId == "u1"`, admin, "true"},
		{`auth.userId != "u1"`, admin, "false"},
		{`auth.userId == "u2"`, admin, "false"},
		{`auth.kind == "session"`, admin, "true"},
		{`auth.kind in ["apiKey", "anonymous"]`, admin, "false"},
		{`auth.kind == "apiKey" and auth.keyId == "key_1" and auth.scope == "r0" and auth.capability == "r0"`, key, "true"},
		{`auth.tenant startsWith "t"`, admin, "true"},
		{`auth.tenant contains "x"`, admin, "false"},
		{`auth.tenant > "t0" and auth.tenant <= "t1" and auth.tenant >= "t1"`, admin, "true"},
		{`auth.tenant < "t1"`, admin, "false"},

		// Comparisons with absent values are unknown, also with null.
		{`auth.tenant == "t1"`, plain, "unknown"},
		{`auth.tenant != "t1"`, plain, "unknown"},
		{`auth.tenant == null`, plain, "unknown"},
		{`auth.tenant != null`, plain, "unknown"},
		{`auth.tenant in []`, plain, "unknown"},
		{`auth.tenant not in ["t2"]`, plain, "unknown"},
		{`auth.tenant startsWith "t"`, plain, "unknown"},
		{`auth.tenant < "t2"`, plain, "unknown"},
		{`auth.keyId == auth.userId`, admin, "unknown"},
		{`auth.userId == "u1"`, key, "unknown"},
		{`auth.claims.plan == "pro"`, admin, "unknown"},
		{`auth.claims.plan`, admin, "unknown"},
		{`"t1" in ["t1", auth.tenant]`, plain, "true"},
		{`"t9" in ["t1", auth.tenant]`, plain, "unknown"},
		{`"t9" not in ["t1", auth.tenant]`, plain, "unknown"},

		// == and != treat null as a value; it has no order.
		{`auth.tenant == null`, admin, "false"},
		{`auth.tenant != null`, admin, "true"},
		{`null == null`, admin, "true"},
		{`null in [null]`, admin, "true"},
		{`1 < null`, admin, "false"},
		{`null >= null`, admin, "false"},

		// Roles are never absent, but may be empty.
		{`auth.role == "admin"`, admin, "true"},
		{`"other" == auth.role`, admin, "true"},
		{`auth.role != "admin"`, admin, "false"},
		{`auth.role == "staff"`, admin, "false"},
		{`auth.role in ["staff", "other"]`, admin, "true"},
		{`auth.role not in ["staff"]`, admin, "true"},
		{`"admin" in auth.roles`, admin, "true"},
		{`auth.roles contains "staff"`, admin, "false"},
		{`auth.role == "admin"`, plain, "false"},
		{`auth.role != "admin"`, plain, "true"},
		{`auth.role in ["admin"]`, plain, "false"},
		{`auth.roles contains "admin"`, plain, "false"},
		{`auth.role == null`, plain, "false"},
		{`auth.roles == null`, admin, "false"},

		// Literals.
		{`1 == 1.0 and 1.50 == 1.5 and 0.1 < 0.11 and -2 < -1.5 and 1kb == 1024`, admin, "true"},
		{`90m > 1h and 1d == 24h`, admin, "true"},
		{`9007199254740993 == 9007199254740992`, admin, "false"},
		{`"a" == "A"`, admin, "false"},
		{`true`, admin, "true"},
		{`(1 == 2) == false`, admin, "true"},
		{`(auth.claims.x == 1) == false`, admin, "unknown"},
	} {
		if got := outcome(t, tt.rule, tt.by); got != tt.want {
			t.Errorf("%s, of %+v: %s, want %s", tt.rule, tt.by, got, tt.want)
		}
	}
}

func TestMayIssueFollowsTheScope(t *testing.T) {
	typed := issuer(t, `auth.role == "admin"`)
	scope := typed.Scope("r0")
	anonymous := caller.Caller{Kind: caller.Anonymous, Roles: []string{"admin"}}
	for _, tt := range []struct {
		name string
		by   caller.Caller
		want bool
	}{
		{"operator", caller.Caller{Kind: caller.System}, true},
		{"admin", admin, true},
		{"session without the role", plain, false},
		{"key", key, false},
		{"anonymous with roles", anonymous, false},
	} {
		if got := typed.MayIssue(scope, tt.by); got != tt.want {
			t.Errorf("@issue, %s: %v, want %v", tt.name, got, tt.want)
		}
	}

	untyped := mustCompile(t, `apiKeys { scopes: { r0: @system("r0") { @grant read on Order } } }`)
	closed := mustCompile(t, `entity Order { id: id }
apiKeys { scopes: { r0: @system("r0") { @grant read on Order } } }`)
	for _, tt := range []struct {
		name          string
		by            caller.Caller
		untyped, typd bool
	}{
		{"operator", caller.Caller{Kind: caller.System}, true, true},
		{"session", plain, true, false},
		{"admin", admin, true, false},
		{"key", key, false, false},
		{"anonymous", anonymous, false, false},
	} {
		if got := untyped.MayIssue(untyped.Scope("r0"), tt.by); got != tt.untyped {
			t.Errorf("no @issue, untyped mode, %s: %v, want %v", tt.name, got, tt.untyped)
		}
		if got := closed.MayIssue(closed.Scope("r0"), tt.by); got != tt.typd {
			t.Errorf("no @issue, typed mode, %s: %v, want %v", tt.name, got, tt.typd)
		}
	}
}

func TestMayManageSessionsFollowsTheSessionBlock(t *testing.T) {
	const around = `auth { session cookie { %s } roles: [admin, staff, other] }
entity Order { id: id }
apiKeys { scopes: { desk: @system("desk") { @grant read on Order } } }`
	desk := caller.Caller{Kind: caller.APIKey, KeyID: "key_1", Scope: "desk"}
	for _, tt := range []struct {
		text string
		by   caller.Caller
		want bool
	}{
		{``, admin, false},
		{`@manage when auth.role == "admin"`, admin, true},
		{`@manage when auth.role == "admin"`, plain, false},
		{`@manage when auth.role == "admin"`, desk, false},
		{`@manage when auth.role == "admin"`, caller.Caller{Roles: []string{"admin"}}, false}, // anonymous
		{`@manage when auth.kind == "anonymous"`, caller.Caller{}, false},
		{`@manage when auth.scope == "desk"`, desk, true},
		{`idle: 5m, @manage when auth.scope == "desk", absolute: 10m`, key, false},
	} {
		if got := mustCompile(t, fmt.Sprintf(around, tt.text)).MayManageSessions(tt.by); got != tt.want {
			t.Errorf("%s: %+v: %v, want %v", tt.text, tt.by, got, tt.want)
		}
	}
	if mustCompile(t, `routes("/", auth: none) { GET /a -> a }`).MayManageSessions(admin) {
		t.Error("without a session block")
	}
}

// Without any @issue, signed-in users issue keys that reach no row; one @issue closes the other
// scopes. @manage is independent of it.
func TestMayIssueWithoutARuleAndMayManage(t *testing.T) {
	const app = `auth { session cookie {} roles: [admin, staff] }
entity Order { id: id }
apiKeys { scopes: {
  calls: @system("calls") { },
  reads: @system("reads") { @grant read on Order %s },
  all: @system("all") { @allTenants }
} }`
	none, some := mustCompile(t, fmt.Sprintf(app, "")), mustCompile(t, fmt.Sprintf(app, `@issue when auth.role == "admin"`))
	managed := mustCompile(t, fmt.Sprintf(app, `@manage when auth.role == "admin" or auth.scope == "calls"`))
	for _, tt := range []struct {
		name                string
		by                  caller.Caller
		none, some, managed string // the scopes that it may issue
		manages             string // in managed
	}{
		{"operator", caller.Caller{Kind: caller.System}, "calls reads all", "calls reads all", "calls reads all", "calls reads all"},
		{"session", plain, "calls", "", "calls", ""},
		{"admin", admin, "calls", "reads", "calls", "reads"},
		{"key", caller.Caller{Kind: caller.APIKey, KeyID: "key_1", Scope: "calls"}, "", "", "", "reads"},
		{"anonymous with the role", caller.Caller{Kind: caller.Anonymous, Roles: []string{"admin"}, Scope: "calls"}, "", "", "", ""},
	} {
		for _, c := range []struct {
			s    *schema.Schema
			may  func(*schema.Schema, *schema.Scope, caller.Caller) bool
			want string
		}{{none, (*schema.Schema).MayIssue, tt.none}, {some, (*schema.Schema).MayIssue, tt.some}, {managed, (*schema.Schema).MayIssue, tt.managed}, {managed, (*schema.Schema).MayManage, tt.manages}} {
			var got []string
			for _, scope := range c.s.APIKeys.Scopes {
				if c.may(c.s, scope, tt.by) {
					got = append(got, scope.Name)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s: %q, want %q", tt.name, got, c.want)
			}
		}
	}
}
