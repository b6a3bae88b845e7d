package schema_test

import (
	"testing"

	"runner.example/internal/caller"
	"runner.example/schema"
)

// A claim has its JSON type. A comparison with an absent or null claim is unknown.
func TestRulesCompareClaims(t *testing.T) {
	claimed, err := schema.ReadClaims([]byte(`{
		"plan": "pro", "level": 3, "share": 0.10, "big": 1e999999999, "beta": true, "none": null,
		"groups": ["ops", "dev"], "numbers": [1, 2.0], "odd": [null, {"a": 1}], "org": {"id": "acme"}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		rule string
		want schema.Truth
	}{
		{`auth.claims.plan == "pro"`, schema.True},
		{`auth.claims.plan != "free"`, schema.True},
		{`auth.claims.plan == "Pro"`, schema.False},
		{`auth.claims.plan in ["free", "pro"]`, schema.True},
		{`auth.claims.plan startsWith "p"`, schema.True},
		{`auth.claims.plan == 1`, schema.False},
		{`auth.claims.plan == null`, schema.False},
		{`auth.claims.level >= 3`, schema.True},
		{`auth.claims.level == 3.0`, schema.True},
		{`auth.claims.level < "4"`, schema.Unknown},
		{`auth.claims.share == 0.1`, schema.True},
		{`auth.claims.beta`, schema.True},
		{`auth.claims.beta == true`, schema.True},
		{`auth.claims.beta >= auth.claims.beta`, schema.Unknown},
		{`auth.claims.beta == "true"`, schema.False},
		{`"ops" in auth.claims.groups`, schema.True},
		{`auth.claims.groups contains "ceo"`, schema.False},
		{`2 in auth.claims.numbers`, schema.True},
		{`auth.claims.groups == "ops"`, schema.Unknown},
		{`null in auth.claims.odd`, schema.False},
		{`s in auth.claims.odd`, schema.False}, // s is null
		{`s == auth.claims.none`, schema.Unknown},
		{`auth.claims.none == null`, schema.Unknown},
		{`auth.claims.absent == null`, schema.Unknown},
		{`auth.claims.absent != "x"`, schema.Unknown},
		{`not (auth.claims.absent == "x")`, schema.Unknown},
		{`auth.claims.big > 1`, schema.Unknown},
		{`auth.claims.plan`, schema.Unknown},
	} {
		row, rules, _ := compileRules(t, tt.rule)
		input := schema.RuleInput{Caller: &caller.Caller{Kind: caller.Session, UserID: "ada", Claimed: claimed}, Row: make([]schema.Value, len(row.Fields))}
		if got, err := rules[0].Eval(&input); got != tt.want || err != nil {
			t.Errorf("%s: %v, %v, want %v", tt.rule, got, err, tt.want)
		}
		for _, who := range []*caller.Caller{{Kind: caller.Session, UserID: "ada"}, {Kind: caller.APIKey, KeyID: "k"}, {}} {
			input.Caller = who
			if got, _ := rules[0].Eval(&input); got != schema.Unknown {
				t.Errorf("%s of %v without claims: %v", tt.rule, who.Kind, got)
			}
		}
	}
}

func TestReadClaimsRefusesInvalidJSON(t *testing.T) {
	for _, bad := range []string{"", "null", "[]", `"a"`, `{"a":1,"a":2}`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`, `{"a":1} x`, `{"a":01}`,
		`{"a":` + nested(70) + `}`} {
		if claims, err := schema.ReadClaims([]byte(bad)); err == nil {
			t.Errorf("%q: got %v, want an error", bad, claims)
		}
	}
}

func nested(depth int) string {
	if depth == 0 {
		return "1"
	}
	return "[" + nested(depth-1) + "]"
}
