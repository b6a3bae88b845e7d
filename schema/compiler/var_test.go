package compiler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"runner.example/internal/diag"
	"runner.example/internal/settings"
	"runner.example/schema"
	"runner.example/schema/compiler"
)

const varsForm = `var SHOP: url = "https://shop.example.com"
var PROVIDER: string
var LIMIT: rate = 5/second
/// How many.
var SIZE: int = 20
outbound { allow: [SHOP, "https://api.example.com"] }
auth {
  session jwt { issuer: PROVIDER, audience: SHOP, jwks: PROVIDER }
  session cookie {}
  origins: [SHOP]
}
routes("/", auth: session, rateLimit: [LIMIT by user, 9/minute], cors: [SHOP]) { GET /a -> a }
functions(auth: session, cors: ["https://b.example.com", SHOP]) { @expose f() (rateLimit: LIMIT) }
`

// literal is a schema with literals instead of variables.
func literal(shop, provider, rate string) string {
	_, text, _ := strings.Cut(varsForm, "outbound")
	return "outbound" + strings.NewReplacer("SHOP", fmt.Sprintf("%q", shop), "PROVIDER", fmt.Sprintf("%q", provider), "LIMIT", rate).Replace(text)
}

func compileVars(t *testing.T, text string, opt compiler.Options) *schema.Schema {
	t.Helper()
	s, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, opt)
	if s == nil {
		t.Fatal(found)
	}
	return s
}

func TestAVariableStandsForALiteral(t *testing.T) {
	given := func(text string) settings.Given { return settings.Given{Text: text} }
	for _, row := range []struct {
		set                  map[string]settings.Given
		shop, provider, rate string
	}{
		{map[string]settings.Given{"PROVIDER": given("https://id.example.com")}, "https://shop.example.com", "https://id.example.com", "5/second"},
		{map[string]settings.Given{"PROVIDER": given("keys.json"), "SHOP": given("https://s.example.com"), "LIMIT": given("7/day"), "SIZE": given("30")},
			"https://s.example.com", "keys.json", "7/day"},
	} {
		got := compileVars(t, varsForm, compiler.Options{Vars: row.set})
		want := compileVars(t, literal(row.shop, row.provider, row.rate), compiler.Options{})
		if diff := cmp.Diff(want.Auth, got.Auth); diff != "" {
			t.Errorf("auth (-literals +variables):\n%s", diff)
		}
		if diff := cmp.Diff(want.Outbound, got.Outbound); diff != "" {
			t.Errorf("outbound (-literals +variables):\n%s", diff)
		}
		text := func(s *schema.Schema) string {
			return fmt.Sprint(s.Routes[0].Limits, s.Routes[0].CORS, s.Functions[0].Limits, s.Functions[0].CORS)
		}
		// The texts of limits have no places.
		if text(want) != text(got) {
			t.Errorf("literals %s, variables %s", text(want), text(got))
		}
	}
	s := compileVars(t, varsForm, compiler.Options{Vars: map[string]settings.Given{"PROVIDER": given("a"), "SIZE": given("30")}})
	if l := s.Routes[0].Limits; l[0].Var != "LIMIT" || l[0].Per != time.Second || l[1].Var != "" {
		t.Errorf("%+v", l)
	}
	if v := s.Var("SIZE"); string(v.JSON) != "30" || v.Doc != "How many." || v.Type != "int" || s.Var("NOPE") != nil {
		t.Errorf("%+v", v)
	}
}

// The schema of a release is compared with another one without a node's values.
func TestWithoutValuesAVariableHasItsName(t *testing.T) {
	s := compileVars(t, varsForm, compiler.Checked())
	if got := fmt.Sprintf("%s %s %s %s", s.Outbound, s.Auth.Origins, s.Auth.JWT.Issuer, s.Routes[0].CORS); got != "[SHOP https://api.example.com] [SHOP] PROVIDER [SHOP]" {
		t.Error(got)
	}
}

func TestAScheduleIsThatOfTheVariables(t *testing.T) {
	const text = `var NIGHT: string = "0 3 * * *"
var ZONE: string = "UTC"
apiKeys { scopes: { keeper: @system("keeper") {} } }
jobs { night() (as: keeper, schedule: NIGHT in ZONE) }
`
	s := compileVars(t, text, compiler.Options{Vars: map[string]settings.Given{"ZONE": {Text: "Europe/Berlin"}}})
	if got, want := *s.Jobs[0].Schedule, (schema.Schedule{Cron: "0 3 * * *", Zone: "Europe/Berlin"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
