package compiler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/schema/compiler"
)

const idA = "01j9zzzzzzzzzzzzzzzzzzzzza"

// describe is a field on one line, with all its properties.
func describe(f *schema.Field) string {
	typ := f.Type
	text := fmt.Sprintf("%d %s: %s %s", f.Pos, f.Name, typ.Kind, typ.String())
	add := func(yes bool, format string, args ...any) {
		if yes {
			text += fmt.Sprintf(format, args...)
		}
	}
	add(typ.HasMaxLen, " %d..%d", typ.MinLen, typ.MaxLen)
	add(typ.Digits > 0, " (%d,%d)", typ.Digits, typ.Places)
	add(!typ.Min.IsNull(), " ≥%s", typ.AppendJSON(nil, typ.Min))
	add(!typ.Max.IsNull(), " ≤%s", typ.AppendJSON(nil, typ.Max))
	add(typ.Pattern != nil, " /%v/", typ.Pattern)
	add(f.HasDefault, " = %s", typ.AppendJSON(nil, f.Default))
	add(f.DefaultNow, " = now")
	add(f.Hidden, " hidden")
	add(f.ReadOnly, " readonly")
	add(f.Created, " created")
	add(f.Updated, " updated")
	add(f.OnDelete == schema.Cascade, " cascade")
	add(f.OnDelete == schema.Clear, " clear")
	if f.Inverse != nil {
		text += " inverse of " + f.Inverse.Name
	}
	return text
}

func describeIndex(i *schema.Index) string {
	var text strings.Builder
	for _, col := range i.Columns {
		text.WriteString(col.Field.Name)
		if col.Desc {
			text.WriteString(" desc")
		}
		text.WriteString(", ")
	}
	if i.Unique {
		text.WriteString("unique ")
	}
	if i.Global {
		text.WriteString("global")
	}
	return text.String()
}

const modelForm = `auth { session cookie { idle: 7d, absolute: 30d } tenant: Org user: User }
enum State { todo, done }
/// A company.
entity Org { id: id name: string @unique @@allow read to session }
entity User { id: id @@allow read to session }
/// What is to be done.
entity Task {
  id: id
  org: Org @tenant
  /// The short of it.
  title: string(1..200) @pattern("^.+$")
  note: text(9)? @hidden
  state: State = todo
  other: State?
  estimate: int(0..1000)? @min(5) @max(900)
  share: float(0..1) = 1
  cost: decimal(10,2) = 0.5 @min(0) @index
  done: bool = false
  due: time? = now
  day: date = "2026-01-31"
  length: duration = 90m @max(2h)
  extra: json = "x"
  data: bytes?
  tags: string(1..9)[]?
  parent: Task? @onDelete(cascade)
  owner: User? @onDelete(clear) @readonly
  parts: Task[] @inverse(parent)
  createdAt: time @created
  updatedAt: time @updated
  ref: uuid = "0B5F1D9E-0000-4000-8000-000000000001"
  @@index(org, state, due desc)
  @@unique(title asc, parent) global
  @@allow read, write to session, anonymous when done
  @@deny all to apiKey(k), apiKey
  @@deny delete
}
type Input {
  task: Task
  lines: Line[]?
  any: id
}
type Line { sku: string }
apiKeys { scopes: { k: @system("k") { @grant write, read on Task } } }
routes("/", auth: apiKey(k)) { GET / -> x }
functions { f(a: int = 1, b: Input?) -> Line[]  g() }
`

func TestTheModelHasAllDeclarations(t *testing.T) {
	s := mustCompile(t, modelForm)
	var got []string
	task := s.Entity("Task")
	for _, f := range task.Fields {
		got = append(got, describe(f))
	}
	want := []string{
		"0 id: id id",
		"1 org: relation Org",
		"2 title: string string 1..200 /^.+$/",
		"3 note: text text? 0..9 hidden",
		`4 state: enum State = "todo"`,
		"5 other: enum State?",
		"6 estimate: int int? ≥5 ≤900",
		"7 share: float float ≥0 ≤1 = 1",
		`8 cost: decimal decimal (10,2) ≥0 = "0.50"`,
		"9 done: bool bool = false",
		"10 due: time time? = now",
		`11 day: date date = "2026-01-31"`,
		"12 length: duration duration ≤7200 = 5400",
		`13 extra: json json = "x"`,
		"14 data: bytes bytes?",
		"15 tags: string string[]? 1..9",
		"16 parent: relation Task? cascade",
		"17 owner: relation User? readonly clear",
		"18 parts: to-many relation Task[] inverse of parent",
		"19 createdAt: time time created",
		"20 updatedAt: time time updated",
		`21 ref: uuid uuid = "0b5f1d9e-0000-4000-8000-000000000001"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if task.ID != task.Fields[0] || task.Tenant != task.Fields[1] || task.Doc != "What is to be done." || task.Field("title").Doc != "The short of it." || task.Field("nope") != nil {
		t.Errorf("entity %+v", task)
	}
	if task.Field("parts").Inverse != task.Field("parent") || task.Field("parent").Type.Entity != task || task.Field("state").Type.Enum != s.Enums[0] {
		t.Error("the model's parts do not refer to one another")
	}

	got = nil
	for _, index := range task.Indexes {
		got = append(got, describeIndex(index))
	}
	want = []string{"cost, ", "org, state, due desc, ", "title, parent, unique global"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("indexes (-want +got):\n%s", diff)
	}
	if org := s.Entity("Org"); len(org.Indexes) != 1 || !org.Indexes[0].Unique || org.Tenant != nil {
		t.Errorf("Org: %+v", org)
	}
	if got := s.EntityNames(); !cmp.Equal(got, []string{"Org", "User", "Task"}) {
		t.Errorf("entities %v", got)
	}
	if got := task.FieldNames()[:3]; !cmp.Equal(got, []string{"id", "org", "title"}) {
		t.Errorf("fields %v", got)
	}

	got = nil
	for _, f := range append(s.Type("Input").Fields, s.Functions[0].Params...) {
		got = append(got, describe(f))
	}
	want = []string{"0 task: relation Task", "1 lines: type Line[]?", "2 any: id id", "0 a: int int = 1", "1 b: type Input?"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields of types and functions (-want +got):\n%s", diff)
	}
	if result := s.Functions[0].Result; result.String() != "Line[]" || s.Functions[1].Result != nil || s.Type("Nope") != nil {
		t.Errorf("results %v, %v", result, s.Functions[1].Result)
	}
	checkModel(t, s)
}

func TestPoliciesApplyToTheirAudience(t *testing.T) {
	s := mustCompile(t, modelForm)
	policies := s.Entity("Task").Policies
	session, anonymous := &caller.Caller{Kind: caller.Session}, &caller.Caller{}
	key, other := &caller.Caller{Kind: caller.APIKey, Scope: "k"}, &caller.Caller{Kind: caller.APIKey, Scope: "o"}
	system := &caller.Caller{Kind: caller.System}
	all := schema.ActRead | schema.ActInsert | schema.ActUpdate | schema.ActDelete
	for i, want := range []struct {
		deny      bool
		actions   schema.ActionSet
		concerned []*caller.Caller
		not       []*caller.Caller
	}{
		{false, all &^ schema.ActDelete, []*caller.Caller{session, anonymous}, []*caller.Caller{key, other, system}},
		{true, all, []*caller.Caller{key, other}, []*caller.Caller{session, anonymous, system}},
		{true, schema.ActDelete, []*caller.Caller{session, anonymous, key, other, system}, nil},
	} {
		p := policies[i]
		if p.Deny != want.deny || p.Actions != want.actions || (p.When != nil) != (i == 0) {
			t.Errorf("policy %d: %+v", i, p)
		}
		for _, who := range want.concerned {
			if !p.Concerns(who) {
				t.Errorf("policy %d does not apply to %+v", i, who)
			}
		}
		for _, who := range want.not {
			if p.Concerns(who) {
				t.Errorf("policy %d applies to %+v", i, who)
			}
		}
	}
	if to := policies[1].To; !cmp.Equal(to, []schema.Audience{{Kind: caller.APIKey, Scope: "k"}, {Kind: caller.APIKey}}) {
		t.Errorf("audience %+v", to)
	}
	if grant := s.Scope("k").Grants[0]; grant.Allows != all&^schema.ActDelete || !grant.Allows.Has(schema.ActInsert|schema.ActRead) || grant.Allows.Has(schema.ActDelete|schema.ActRead) {
		t.Errorf("grant %+v", grant)
	}
}

func TestRolesMayBeStringsAndClaimsMayBeNested(t *testing.T) {
	s := mustCompile(t, `auth {
  session jwt {
    issuer: "https://id.example.com", audience: "shop", jwks: "keys.json",
    roles: claim("resource_access", "my.client", "roles"), tenant: claim("org.id")
  }
  roles: [admin, "staff", "org:admin", "Orders.Admin", "orders-admin"]
}
entity Note { id: id @@allow read to session when auth.role == "org:admin" or auth.role in ["Orders.Admin", "orders-admin"] }
routes("/", auth: session("org:admin", "admin")) { GET /x -> x }`)
	if want := []string{"admin", "staff", "org:admin", "Orders.Admin", "orders-admin"}; !slices.Equal(s.Auth.Roles, want) {
		t.Errorf("roles %q, want %q", s.Auth.Roles, want)
	}
	if want := []string{"org:admin", "admin"}; !slices.Equal(s.Routes[0].Auth.Roles, want) {
		t.Errorf("the route accepts %q, want %q", s.Routes[0].Auth.Roles, want)
	}
	if want := []string{"resource_access", "my.client", "roles"}; !slices.Equal(s.Auth.JWT.Roles, want) || !slices.Equal(s.Auth.JWT.Tenant, []string{"org.id"}) {
		t.Errorf("roles are at %q, the tenant at %q", s.Auth.JWT.Roles, s.Auth.JWT.Tenant)
	}
}

func TestAuthSettingsHaveTheirDefaults(t *testing.T) {
	s, _ := compiler.Compile([]diag.Source{readExample(t, "orders.schema")}, compiler.Options{})
	want := schema.AuthSettings{
		Roles: []string{"admin", "staff"}, User: "User",
		Cookie: &schema.CookieSession{Name: "__Host-session", Idle: 30 * time.Minute, Absolute: 12 * time.Hour, SameSite: "lax"},
		JWT: &schema.JWTSession{
			Issuer: "https://id.example.com", Audience: "orders-api", JWKS: "https://id.example.com/.well-known/jwks.json",
			Algorithms: []string{"EdDSA", "ES256"}, Roles: []string{"roles"},
		},
	}
	if diff := cmp.Diff(want, s.Auth); diff != "" {
		t.Errorf("orders (-want +got):\n%s", diff)
	}
	s = mustCompile(t, `auth { session cookie("__Host-sid") { absolute: 2h, sameSite: strict } origins: ["https://a.example", "https://b.example"] user: User tenant: Org }
entity User { id: id @@allow read to session } entity Org { id: id @@allow read to session }`)
	want = schema.AuthSettings{
		User: "User", Tenant: "Org", Origins: []string{"https://a.example", "https://b.example"},
		Cookie: &schema.CookieSession{Name: "__Host-sid", Idle: 30 * time.Minute, Absolute: 2 * time.Hour, SameSite: "strict"},
	}
	if diff := cmp.Diff(want, s.Auth); diff != "" {
		t.Errorf("own settings (-want +got):\n%s", diff)
	}
	if auth := mustCompile(t, seedForm).Auth; auth.Cookie != nil || auth.JWT != nil || auth.Roles != nil {
		t.Errorf("seed form: %+v", auth)
	}
}

func TestIDsOfUsersAndTenantsMayBeExternal(t *testing.T) {
	s := mustCompile(t, modelForm)
	task := s.Entity("Task")
	for _, tt := range []struct {
		f     *schema.Field
		named bool
	}{
		{s.Entity("User").ID, true}, {s.Entity("Org").ID, true}, {task.Tenant, true}, {task.Field("owner"), true},
		{s.Type("Input").Fields[2], false}, {task.ID, false}, {task.Field("parent"), false},
	} {
		if _, err := tt.f.Type.Parse([]byte(`"auth0|7"`)); (err == nil) != tt.named {
			t.Errorf("%s: %v", describe(tt.f), err)
		}
		if _, err := tt.f.Type.Parse([]byte(`"` + idA + `"`)); err != nil {
			t.Errorf("%s: %v", describe(tt.f), err)
		}
	}
	if !schema.IsULID(idA) || schema.IsULID(strings.ToUpper(idA)) || schema.IsULID(idA+"a") || schema.IsULID("") {
		t.Error("IsULID")
	}
}

func TestModuleBlocksDescribePrograms(t *testing.T) {
	s, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(`
		/// An interpreter.
		module python {
			args: ["-m", "app"], files: "python/lib"
			env: { PYTHONHOME: "/", LANG: "C.UTF-8", EMPTY: "" }
			startTimeout: 10s, stub: ["rb-js-abi-host", "canonical_abi"]
		}
		module "my-ids" { fresh: true }
		routes("/", auth: none, rateLimit: none) { GET / -> python }
	`)}}, compiler.Options{})
	if len(found) > 0 {
		t.Fatal(found)
	}
	got := *s.Module("python")
	if line := got.FilesSpan.Start.Line; line != 4 {
		t.Errorf("the directory is at line %d", line)
	}
	got.Span, got.FilesSpan = diag.Span{}, diag.Span{}
	want := schema.Module{
		Name: "python", Doc: "An interpreter.", Args: []string{"-m", "app"}, Files: "python/lib",
		Env:          []schema.EnvVar{{Name: "PYTHONHOME", Value: "/"}, {Name: "LANG", Value: "C.UTF-8"}, {Name: "EMPTY"}},
		StartTimeout: 10 * time.Second, Stub: []string{"rb-js-abi-host", "canonical_abi"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s.Module("my-ids") == nil || !s.IsFresh("my-ids") || s.Module("other") != nil {
		t.Errorf("the modules are %+v", s.Modules)
	}
}
