package compiler_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/schema/compiler"
)

// seedForm is a small schema in untyped mode.
const seedForm = `apiKeys {
  scopes: {
    orders_read: @system("orders.read") {
      @grant read on Order
    },
    partner_sync: @system("partner.sync") {
      @grant read, write on Order
      @grant read on Partner
    }
  }
}

routes("/v1", auth: apiKey(orders_read), rateLimit: 600/minute) {
  GET /orders -> listOrders
  POST /orders -> createOrder (auth: apiKey(partner_sync))

  routes("/me", auth: session) {
    GET /profile -> myProfile
    GET /ping -> ping (auth: none)
  }
}

routes("/webhooks", auth: none) {
  POST /stripe -> stripeWebhook
}
`

// compile compiles one file and returns the diagnostics as "line:col code".
func compile(text string, opt compiler.Options) (*schema.Schema, []string) {
	s, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, opt)
	return s, brief(found)
}

func brief(found diag.List) []string {
	var lines []string
	for _, d := range found {
		lines = append(lines, fmt.Sprintf("%d:%d %s", d.Span.Start.Line, d.Span.Start.Col, d.Code))
	}
	return lines
}

// mustCompile compiles a text that may get warnings but no errors.
func mustCompile(t *testing.T, text string) *schema.Schema {
	t.Helper()
	s, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{})
	if s == nil {
		t.Fatalf("does not compile: %v", found)
	}
	return s
}

func readExample(t *testing.T, name string) diag.Source {
	t.Helper()
	text, err := os.ReadFile("../syntax/testdata/examples/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return diag.Source{Name: name, Text: text}
}

func TestExamplesHaveNoDiagnostics(t *testing.T) {
	for _, name := range []string{"orders.schema", "tracker.schema"} {
		s, found := compiler.Compile([]diag.Source{readExample(t, name)}, compiler.Options{})
		if s == nil || len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestUntypedSchemaCompilesWithWarnings(t *testing.T) {
	s, found := compile(seedForm, compiler.Options{})
	want := []string{"18:5 W203", "18:5 W418", "24:3 W416"}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if s == nil || s.Typed {
		t.Fatalf("schema = %+v, want one in untyped mode", s)
	}
}

func TestRoutesHaveTheirEffectiveSettings(t *testing.T) {
	perMinute := []schema.RateLimit{{ID: "app.schema:13:53", Count: 600, Per: time.Minute}}
	want := []schema.Route{
		{Method: "GET", Path: "/v1/orders", Prefix: "/v1", Handler: "listOrders", Auth: schema.Auth{Scopes: []string{"orders_read"}}, Limits: perMinute},
		{Method: "POST", Path: "/v1/orders", Prefix: "/v1", Handler: "createOrder", Auth: schema.Auth{Scopes: []string{"partner_sync"}}, Limits: perMinute},
		{Method: "GET", Path: "/v1/me/profile", Prefix: "/v1", Handler: "myProfile", Auth: schema.Auth{Session: true}, Limits: perMinute},
		{Method: "GET", Path: "/v1/me/ping", Prefix: "/v1", Handler: "ping", Auth: schema.Auth{None: true}, Limits: perMinute},
		{Method: "POST", Path: "/webhooks/stripe", Prefix: "/webhooks", Handler: "stripeWebhook", Auth: schema.Auth{None: true}},
	}
	s := mustCompile(t, seedForm)
	if diff := cmp.Diff(want, s.Routes, cmpopts.IgnoreFields(schema.Route{}, "Span")); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	if got := s.Routes[0].Span; got.Start.Line != 14 || got.Start.Col != 3 || got.File != "app.schema" {
		t.Errorf("span of the first route = %v", got)
	}
}

func TestARouteHasThePrefixOfItsOutermostGroup(t *testing.T) {
	s := mustCompile(t, `
routes("/", auth: none, rateLimit: none) {
  GET /board -> board (live: 90s)
  routes("/deep") { GET /board -> deep }
}
routes("/v1/all", auth: none, rateLimit: none) {
  GET /board -> v1
  routes("/deep/:id") { GET /board -> v1Deep (live: 1h) }
}
routes("/of/:tenant/v2", auth: none, rateLimit: none) { GET /board -> ofTenant }
routes("/:tenant", auth: none, rateLimit: none) { GET /board -> anyTenant }
functions(auth: none, rateLimit: none) { @expose f() -> int }
`)
	var got []string
	for _, r := range append(s.Routes, *s.Functions[0].Route()) {
		got = append(got, fmt.Sprintf("%s %q %s", r.Handler, r.Prefix, r.Live))
	}
	want := []string{`board "" 1m30s`, `deep "" 0s`, `v1 "/v1/all" 0s`, `v1Deep "/v1/all" 1h0m0s`, `ofTenant "/of" 0s`, `anyTenant "" 0s`, `f "" 0s`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("prefixes (-want +got):\n%s", diff)
	}
	if first, inner := s.Routes[0].LivePath(), s.Routes[3].LivePath(); first != "/_live" || inner != "/v1/all/_live" {
		t.Errorf("the paths of shared connections are %s and %s", first, inner)
	}
}

const settingsForm = `app shop
secret HOOK
auth { session cookie { idle: 30m } roles: [admin, staff] }
apiKeys { scopes: { a: @system("a") { @grant read on Order }, b: @system("b") { @grant read on Order } } }
type Input { name: string }
routes("/", auth: anyOf(session(admin), apiKey(a), session(staff), apiKey(b, a)),
  rateLimit: [100/second by ip, 5_000/day by global], body: 256kb, timeout: 2s, input: Input) {
  /// Everything.
  GET / -> all
  PUT /:kind/x/*rest -> put
  routes("/p/:id", rateLimit: none, auth: anyOf(session, session(admin))) {
    POST / -> post (body: 1kb, timeout: 500ms)
    POST /hook -> hook (auth: none, as: a,
      verify: webhook(stripe, HOOK, tolerance: 5m),
      rateLimit: 10/hour by key)
  }
}
functions(auth: session(admin), timeout: 3s, rateLimit: 7/hour by user, verify: webhook(slack, HOOK)) {
  /// Makes it.
  @expose make(name: string) -> json (body: 2mb)
  tidy() (auth: none)
}
`

func TestAnInnerSettingReplacesTheOuterOne(t *testing.T) {
	s := mustCompile(t, settingsForm)
	limits := []schema.RateLimit{
		{ID: "app.schema:7:15", Count: 100, Per: time.Second, By: "ip"},
		{ID: "app.schema:7:33", Count: 5000, Per: 24 * time.Hour, By: "global"},
	}
	outer := schema.Auth{Session: true, Roles: []string{"admin", "staff"}, Scopes: []string{"a", "b"}}
	want := []schema.Route{
		{
			Method: "GET", Path: "/", Handler: "all", Auth: outer, Limits: limits,
			BodyBytes: 256 << 10, Timeout: 2 * time.Second, Doc: "Everything.",
		},
		{
			Method: "PUT", Path: "/:kind/x/*rest", Params: []string{"kind", "rest"}, Handler: "put", Auth: outer, Limits: limits,
			BodyBytes: 256 << 10, Timeout: 2 * time.Second, Input: "Input",
		},
		{
			Method: "POST", Path: "/p/:id", Params: []string{"id"}, Handler: "post", Auth: schema.Auth{Session: true},
			BodyBytes: 1 << 10, Timeout: 500 * time.Millisecond, Input: "Input",
		},
		{
			Method: "POST", Path: "/p/:id/hook", Params: []string{"id"}, Handler: "hook", Auth: schema.Auth{None: true},
			Limits:    []schema.RateLimit{{ID: "app.schema:15:18", Count: 10, Per: time.Hour, By: "key"}},
			BodyBytes: 256 << 10, Timeout: 2 * time.Second, As: "a", Input: "Input",
			Verify: &schema.Verify{Scheme: "stripe", Secret: "HOOK", Tolerance: 5 * time.Minute},
		},
	}
	if diff := cmp.Diff(want, s.Routes, cmpopts.IgnoreFields(schema.Route{}, "Span")); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
}

func TestFunctionsHaveTheirEffectiveSettings(t *testing.T) {
	s := mustCompile(t, settingsForm)
	limits := []schema.RateLimit{{ID: "app.schema:18:57", Count: 7, Per: time.Hour, By: "user"}}
	verify := &schema.Verify{Scheme: "slack", Secret: "HOOK"}
	want := []schema.Function{
		{
			Name: "make", Exposed: true, Auth: schema.Auth{Session: true, Roles: []string{"admin"}}, Limits: limits,
			Verify: verify, BodyBytes: 2 << 20, Timeout: 3 * time.Second, Doc: "Makes it.",
		},
		{Name: "tidy", Limits: limits, Verify: verify, Timeout: 3 * time.Second},
	}
	if diff := cmp.Diff(want, s.Functions, cmpopts.IgnoreFields(schema.Function{}, "Span", "Params", "Result")); diff != "" {
		t.Errorf("functions (-want +got):\n%s", diff)
	}
	if route := s.Functions[0].Route(); route.Verify != s.Functions[0].Verify {
		t.Errorf("the route of make is verified by %+v", route.Verify)
	}
	if s.App != "shop" || !cmp.Equal(s.Secrets, []string{"HOOK"}) {
		t.Errorf("app %q, secrets %q", s.App, s.Secrets)
	}
}

func TestScopesHaveGrantsAndKeySettings(t *testing.T) {
	s, _ := compiler.Compile([]diag.Source{readExample(t, "tracker.schema")}, compiler.Options{})
	keys := s.APIKeys
	day := 24 * time.Hour
	if keys.Prefix != "trk" || keys.DefaultLifetime != 180*day || keys.MaxLifetime != 730*day || keys.MaxGrace != 30*day || keys.MaxPerTenant != 50 {
		t.Errorf("key settings = %+v", keys)
	}
	want := []schema.Scope{
		{Name: "tasks_read", System: "tasks.read", Grants: []schema.Grant{{Actions: []string{"read"}, Allows: schema.ActRead, Entities: []string{"Task", "Project"}}}},
		{Name: "tasks_write", System: "tasks.write", Grants: []schema.Grant{
			{Actions: []string{"read", "insert", "update"}, Allows: schema.ActRead | schema.ActInsert | schema.ActUpdate, Entities: []string{"Task"}},
			{Actions: []string{"read"}, Allows: schema.ActRead, Entities: []string{"Project"}},
			{Actions: []string{"read"}, Allows: schema.ActRead, Entities: []string{"User"}, Fields: []string{"id"}},
		}},
		{Name: "ingest", System: "events.ingest", Grants: []schema.Grant{{Actions: []string{"insert"}, Allows: schema.ActInsert, Entities: []string{"AuditEvent"}}}},
		{Name: "signup", System: "signup", AllTenants: true, Grants: []schema.Grant{{Actions: []string{"insert"}, Allows: schema.ActInsert, Entities: []string{"Org", "User", "Membership"}}}},
	}
	var got []schema.Scope
	for _, scope := range keys.Scopes {
		if hasIssue := scope.Issue != nil; hasIssue == (scope.Name == "signup") {
			t.Errorf("scope %s: has @issue: %v", scope.Name, hasIssue)
		}
		got = append(got, *scope)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(schema.Scope{}, "Issue"), cmpopts.IgnoreUnexported(schema.Grant{})); diff != "" {
		t.Errorf("scopes (-want +got):\n%s", diff)
	}
	if plain := mustCompile(t, seedForm).APIKeys; plain.Prefix != "rnk" || plain.MaxGrace != 30*day || plain.MaxLifetime != 0 {
		t.Errorf("defaults = %+v", plain)
	}
}

func TestAuthModesAndRateLimitsPrintInSchemaSyntax(t *testing.T) {
	s := mustCompile(t, settingsForm)
	for i, want := range []string{
		"anyOf(session(admin, staff), apiKey(a, b))",
		"anyOf(session(admin, staff), apiKey(a, b))",
		"session",
		"none",
	} {
		if got := s.Routes[i].Auth.String(); got != want {
			t.Errorf("auth of route %d = %q, want %q", i, got, want)
		}
	}
	for want, limit := range map[string]schema.RateLimit{
		"100/second by ip":   s.Routes[0].Limits[0],
		"5000/day by global": s.Routes[0].Limits[1],
		"10/hour by key":     s.Routes[3].Limits[0],
		"3/minute":           {Count: 3, Per: time.Minute},
	} {
		if got := limit.String(); got != want {
			t.Errorf("limit = %q, want %q", got, want)
		}
	}
}

func TestFilesShareANamespaceInNameOrder(t *testing.T) {
	files := []diag.Source{
		{Name: "b.schema", Text: []byte("app other\nroutes(\"/\", auth: apiKey(k)) {\n  GET /x -> b\n}\n")},
		{Name: "a.schema", Text: []byte("app shop\napiKeys { scopes: { k: @system(\"k\") { @grant read on Order } } }\nroutes(\"/\", auth: apiKey(k)) {\n  GET /x -> a\n}\n")},
	}
	s, found := compiler.Compile(files, compiler.Options{})
	if s != nil {
		t.Error("got a schema in spite of errors")
	}
	var got []string
	for _, d := range found {
		got = append(got, d.String())
	}
	want := []string{
		`b.schema:1:1: error[E120]: "app" may be declared only once; the first is at a.schema:1`,
		`b.schema:3:3: error[E406]: GET /x has the same shape as the route at a.schema:4: a request could match both`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

func TestOptionsLimitBodiesAndTimeouts(t *testing.T) {
	const text = `routes("/", auth: none, rateLimit: none, body: 2mb, timeout: 5s) { GET / -> x }`
	for _, tt := range []struct {
		opt  compiler.Options
		want []string
	}{
		{compiler.Options{}, nil},
		{compiler.Options{MaxBody: 2 << 20, MaxTimeout: 5 * time.Second}, nil},
		{compiler.Options{MaxBody: 1 << 20, MaxTimeout: 4 * time.Second}, []string{"1:48 E424", "1:62 E424"}},
		{compiler.Options{BodyMemory: 1 << 20}, []string{"1:48 E424"}},
	} {
		if _, got := compile(text, tt.opt); !cmp.Equal(got, tt.want) {
			t.Errorf("%+v: found %v, want %v", tt.opt, got, tt.want)
		}
	}
}

func TestOptionsPermitPrivateOriginsAndPlainCookies(t *testing.T) {
	const text = `outbound { allow: ["http://10.0.0.1:8080", "https://localhost", "http://8.8.8.8", "http://api.example.com"] }
auth { session cookie("sid") { idle: 30m } }
`
	_, got := compile(text, compiler.Options{})
	if want := []string{"1:20 E520", "1:44 E520", "1:65 E520", "1:83 E520", "2:23 E531"}; !cmp.Equal(got, want) {
		t.Errorf("strict: found %v, want %v", got, want)
	}
	_, got = compile(text, compiler.Options{AllowPrivate: true, InsecureCookies: true})
	if want := []string{"1:65 E520", "1:83 E520"}; !cmp.Equal(got, want) {
		t.Errorf("permissive: found %v, want %v", got, want)
	}
}

func TestOutboundOriginsHaveNoDuplicates(t *testing.T) {
	s, found := compile(`outbound { allow: ["https://a.example.com", "https://b.example.com:8443", "https://a.example.com"] }`, compiler.Options{})
	if want := []string{"https://a.example.com", "https://b.example.com:8443"}; len(found) > 0 || !cmp.Equal(s.Outbound, want) {
		t.Errorf("%v %v, want %v", s.Outbound, found, want)
	}
}

func TestRoutesAreLimitedInNumberAndLength(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		b.WriteString("routes(\"/\", auth: none, rateLimit: none) {\n")
		for i := range n {
			fmt.Fprintf(&b, "GET /r%d -> h\n", i)
		}
		b.WriteString("}\n")
		return b.String()
	}
	if s, found := compile(many(2000), compiler.Options{}); s == nil {
		t.Errorf("2000 routes: %v", found)
	}
	if _, found := compile(many(2002), compiler.Options{}); !cmp.Equal(found, []string{"2002:5 E425"}) {
		t.Errorf("2002 routes: %v, want one E425", found)
	}
	long := "/" + strings.Repeat("a", 1024)
	if _, found := compile("routes(\"/\", auth: none, rateLimit: none) { GET "+long+" -> h }", compiler.Options{}); len(found) != 1 || !strings.HasSuffix(found[0], "E425") {
		t.Errorf("a long path: %v, want one E425", found)
	}
}

func TestNamesInUnreadablePartsAreNotReportedAsMissing(t *testing.T) {
	// The unreadable scope may be the one that the first route uses, not that of the second.
	_, found := compile(`apiKeys {
  scopes: {
    orders read: @system("a") { @grant read on Order }
  }
}
routes("/v1", auth: apiKey(orders_read)) {
  GET /x -> x
  GET /y -> y (auth: apiKey(orders_write))
}
`, compiler.Options{})
	if want := []string{"3:12 E100", "8:29 E410"}; !cmp.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

func TestHugeSchemasAreCheckedInBoundedTime(t *testing.T) {
	// Thousands of unknown names, each similar to thousands of known ones.
	var routes, scopes strings.Builder
	for i := range 7000 {
		fmt.Fprintf(&routes, "GET /r%d -> h (auth: apiKey(scope_name_x%d))\n", i, i)
		fmt.Fprintf(&scopes, "scope_name_%d: @system(\"s%d\") { @grant read on Order },\n", i, i)
	}
	text := "apiKeys { scopes: {\n" + scopes.String() + "} }\nroutes(\"/\") {\n" + routes.String() + "}\n"
	began := time.Now()
	if s, found := compile(text, compiler.Options{}); s != nil || len(found) < 7000 {
		t.Errorf("%d errors found in %d bytes", len(found), len(text))
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %v", took)
	}
}

func TestCheckHandlersReportsMissingExports(t *testing.T) {
	s := mustCompile(t, settingsForm)
	if found := s.CheckHandlers([]string{"tidy", "all", "put", "post", "hook", "make", "memory"}); len(found) != 0 {
		t.Errorf("found %v", found)
	}
	found := s.CheckHandlers([]string{"All", "put", "post", "hook", "makes"})
	var got []string
	for _, d := range found {
		got = append(got, d.Code+" "+d.Message)
	}
	want := []string{
		`E419 no handler named "all": export a function of that name from handlers/ (did you mean "All"?)`,
		`E419 no function named "make": export a function of that name from handlers/ (did you mean "makes"?)`,
		`E419 no function named "tidy": export a function of that name from handlers/`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	const program = `E419 no function named "tidy": export a function of that name from handlers/; build/tool.wasm is a program, which is itself the handler tool`
	found = s.CheckHandlers([]string{"all", "make", "put", "post", "hook", "tool"}, "put", "tool")
	if len(found) != 1 || found[0].Code+" "+found[0].Message != program {
		t.Errorf("with programs: %v", found)
	}
}

func TestScopeOfPrefersTheNameOverTheCapability(t *testing.T) {
	s := mustCompile(t, `apiKeys { scopes: {
  a: @system("one") { @grant read on Order },
  b: @system("two") { @grant read on Order },
  c: @system("two") { @grant read on Order }
} }`)
	for _, tt := range []struct{ name, capability, want string }{
		{"a", "one", "a"},
		{"a", "two", "a"},   // the name decides
		{"old", "one", "a"}, // renamed
		{"b", "two", "b"},
		{"old", "two", ""}, // two have it
		{"old", "three", ""},
		{"", "", ""},
	} {
		got := ""
		if scope := s.ScopeOf(tt.name, tt.capability); scope != nil {
			got = scope.Name
		}
		if got != tt.want {
			t.Errorf("ScopeOf(%q, %q) = %q, want %q", tt.name, tt.capability, got, tt.want)
		}
	}
}

// schemaFiles returns the texts of the fixtures and examples.
func schemaFiles(t testing.TB) (texts [][]byte) {
	t.Helper()
	for _, pattern := range []string{"testdata/fixtures/*.schema", "../syntax/testdata/examples/*.schema"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
		}
	}
	return texts
}

var tokens = regexp.MustCompile(`\w+|[^\w\s]`)

// A schema in which one token is missing or another one is compiled without a panic. Checks
// after a syntax error find declarations with parts that could not be read.
func TestNoChangedTokenStopsTheCompiler(t *testing.T) {
	var text []byte
	defer func() {
		if cause := recover(); cause != nil {
			t.Fatalf("%v\n%s\n%s", cause, debug.Stack(), text)
		}
	}()
	every := 20
	if os.Getenv("RUNNER_SOAK") != "" {
		every = 1
	}
	for _, whole := range append(schemaFiles(t), []byte(seedForm), []byte(settingsForm)) {
		for i, at := range tokens.FindAllIndex(whole, 4000) {
			if (i+len(whole))%every != 0 {
				continue
			}
			for _, other := range []string{"", "-", "}", "x", "(", "@"} {
				text = slices.Concat(whole[:at[0]], []byte(other), whole[at[1]:])
				s, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: text}}, compiler.Options{})
				if (s == nil) != found.HasErrors() {
					t.Fatalf("schema %v with the diagnostics %v:\n%s", s, found, text)
				}
			}
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add([]byte(seedForm))
	f.Add([]byte(settingsForm))
	for _, text := range schemaFiles(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: text}}, compiler.Options{})
		if (s == nil) != found.HasErrors() {
			t.Fatalf("schema: %v, found: %v", s, found)
		}
		if s == nil {
			return
		}
		for _, r := range s.Routes {
			if !strings.HasPrefix(r.Path, "/") || (r.Handler == "") == (r.File == nil) || cmp.Equal(r.Auth, schema.Auth{}) {
				t.Errorf("route %+v", r)
			}
			for _, l := range r.Limits {
				if l.Count < 1 || l.Per <= 0 || l.ID == "" {
					t.Errorf("limit %+v", l)
				}
			}
		}
		checkModel(t, s)
		for _, scope := range s.APIKeys.Scopes {
			s.MayIssue(scope, caller.Caller{Kind: caller.Session, Roles: []string{"admin"}})
		}
	})
}

// checkModel checks the invariants of a model.
func checkModel(t *testing.T, s *schema.Schema) {
	t.Helper()
	checkFields := func(owner string, fields []*schema.Field) {
		for i, f := range fields {
			if f.Pos != i || f.Name == "" || f.Type.Kind == 0 {
				t.Errorf("%s.%s: %+v", owner, f.Name, f)
			}
			if v, err := f.Type.Parse(f.Type.AppendJSON(nil, f.Default)); f.HasDefault && (err != nil || !v.Equal(f.Default)) {
				t.Errorf("%s.%s: the default %v is not a value of its type: %v", owner, f.Name, f.Default, err)
			}
		}
	}
	for _, typ := range s.Types {
		checkFields(typ.Name, typ.Fields)
	}
	for _, f := range s.Functions {
		checkFields(f.Name, f.Params)
	}
	for _, e := range s.Entities {
		checkFields(e.Name, e.Fields)
		if s.Entity(e.Name) != e || e.ID == nil || e.Field(e.ID.Name) != e.ID {
			t.Errorf("entity %s: %+v", e.Name, e)
		}
		for _, index := range e.Indexes {
			for _, col := range index.Columns {
				if col.Field == nil {
					t.Errorf("entity %s: index %+v", e.Name, index)
				}
			}
		}
		for _, p := range e.Policies {
			if p.When != nil {
				if _, err := p.When.Eval(&schema.RuleInput{}); err != nil || len(p.When.Names()) > 0 {
					t.Errorf("entity %s: %v, %v", e.Name, err, p.When.Names())
				}
			}
		}
	}
	for _, scope := range s.APIKeys.Scopes {
		for i := range scope.Grants {
			for _, name := range scope.Grants[i].Entities {
				e := s.Entity(name)
				if rule := scope.Grants[i].Rule(e); (e == nil) == s.Typed || rule != nil && (len(rule.Names()) > 0 && s.Typed) {
					t.Errorf("scope %s: grant on %s: %v", scope.Name, name, rule)
				}
			}
		}
	}
}

func TestAnEmptySchemaGetsAWarning(t *testing.T) {
	for _, text := range []string{"", "// not yet\n"} {
		s, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{})
		if s == nil || len(found) != 1 || found[0].Severity != diag.Warning || !strings.Contains(found[0].Message, "the schema is empty") {
			t.Errorf("%q: %v", text, found)
		}
	}
	if _, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte("routs {}")}}, compiler.Options{}); strings.Contains(fmt.Sprint(found), "the schema is empty") {
		t.Errorf("an unreadable schema: %v", found)
	}
}

func TestJWKSMustBeAnHTTPSURLOrAFile(t *testing.T) {
	for place, want := range map[string]bool{
		"https://login.example/keys": true, "https://login.example:8443/keys?v=1": true, "keys.json": true,
		"/etc/keys.json": true, "../keys.json": true, "http://127.0.0.1:9/keys": true, "http://localhost/keys": true, "http://[::1]:9/keys": true,

		"http://login.example/keys": false, "http://127.0.0.1.evil.example/keys": false, "ftp://login.example/keys": false,
		"file:///etc/passwd": false, "https:keys": false, "https:///keys": false, "//login.example/keys": false,
		"https://user:password@login.example/keys": false, "HTTP://login.example/keys": false, " https://login.example/keys": false,
	} {
		_, found := compile(fmt.Sprintf("auth { session jwt { issuer: \"i\", audience: \"a\", jwks: %q } }", place), compiler.Options{})
		if taken := len(found) == 0; taken != want {
			t.Errorf("jwks %q: %v", place, found)
		}
	}
}

func TestCookieNamesMustBeAcceptedByBrowsers(t *testing.T) {
	for name, want := range map[string]struct{ strict, insecure bool }{
		"__Host-session": {true, true}, "__Host-a.b_c-1": {true, true}, "sid": {false, true},
		"": {}, "__Host-": {}, "__Host-a b": {}, "__Host-a;b": {}, "__Host-a=b": {}, "__Host-ä": {}, `__Host-"a"`: {}, "__Host-a,b": {},
		"__host-session": {}, "__Secure-session": {}, "__secure-x": {}, "a b": {}, "a=b": {}, "a\n": {},
		"__Host-" + strings.Repeat("a", 58): {},
	} {
		text := fmt.Sprintf("auth { session cookie(%q) { } }", name)
		for _, insecure := range []bool{false, true} {
			_, found := compile(text, compiler.Options{InsecureCookies: insecure})
			if taken := len(found) == 0; taken != (insecure && want.insecure || !insecure && want.strict) {
				t.Errorf("%q with insecure cookies %v: %v", name, insecure, found)
			}
		}
	}
}

func TestIdleCannotBeLongerThanAbsolute(t *testing.T) {
	for settings, want := range map[string]bool{
		"": true, "idle: 12h": true, "absolute: 10m": true, "idle: 1h, absolute: 1h": true, "absolute: 90d, idle: 7d": true,
		"idle: 13h": false, "idle: 2h, absolute: 1h": false, "absolute: 1h, idle: 61m": false,
	} {
		if _, found := compile("auth { session cookie { "+settings+" } }", compiler.Options{}); (len(found) == 0) != want {
			t.Errorf("%s: %v", settings, found)
		}
	}
}

func TestRelativeJWKSFilesAreInTheAppDirectory(t *testing.T) {
	for place, want := range map[string]string{
		"keys.json": "/app/keys.json", "../keys.json": "/keys.json", "/etc/keys.json": "/etc/keys.json", "https://login.example/keys": "https://login.example/keys",
	} {
		s, found := compile(fmt.Sprintf("auth { session jwt { issuer: \"i\", audience: \"a\", jwks: %q } }", place), compiler.Options{Dir: "/app"})
		if s == nil || s.Auth.JWT.JWKS != want {
			t.Errorf("%s: %v", place, found)
		}
	}
}

// `cors: none` removes the setting of the group, as `rateLimit: none` does.
func TestCORSNoneRemovesTheOriginsOfTheGroup(t *testing.T) {
	s, found := compile(`routes("/", auth: none, rateLimit: none, cors: ["https://app.example.com"]) { GET /a -> x  GET /b -> x (cors: none) }`, compiler.Options{})
	if s == nil || len(s.Routes[0].CORS) != 1 || s.Routes[1].CORS != nil {
		t.Errorf("%+v, %v", s, found)
	}
}
