package generate_test

import (
	"os"
	"strings"
	"testing"

	"runner.example/schema/generate"
)

// The black-box tests compile and run the client.
func TestAClientHasAMethodForEachRouteAndExposedFunction(t *testing.T) {
	always, err := os.ReadFile("client.ts")
	if err != nil {
		t.Fatal(err)
	}
	watch, err := os.ReadFile("watch.ts")
	if err != nil {
		t.Fatal(err)
	}
	got := string(generate.Client(compile(t, everything(t))))
	made, ok := strings.CutSuffix(got, "\n"+string(always)+"\n"+string(watch))
	if !ok {
		t.Error("the client does not end with client.ts and watch.ts")
	}
	if plain := string(generate.Client(compile(t, "routes(\"/\", auth: none, rateLimit: none) { GET /a -> watch }"))); !strings.HasSuffix(plain, "\n"+string(always)) ||
		!strings.Contains(plain, "\n  watch<Result = unknown>(") {
		t.Error("the client of an app without live routes has what watches them")
	}
	golden(t, "testdata/everything.client", made)
	if again := string(generate.Client(compile(t, everything(t)))); again != got {
		t.Error("the second client of the same schema differs")
	}
}

// Rows with included rows, and groups, are declared as types.
func TestIncludedRowsAndGroupsHaveTheirTypes(t *testing.T) {
	s := compile(t, `
enum Stage { open, won }
type PartnerView { name: string }
type LineView { text: string }
type SaleView { id: id partner: PartnerView? lines: LineView[] }
type StageKey { stage: Stage }
type Totals { total: decimal(12,2)? }
type StageTotals { group: StageKey count: int sum: Totals }
routes("/", auth: none, rateLimit: none) {
  GET /sales -> sales: SaleView[]
  GET /totals -> totals: StageTotals[]
}`)
	client := strings.Join(strings.Fields(string(generate.Client(s))), " ")
	for _, part := range []string{
		"interface SaleView { id: string; partner?: PartnerView | null; lines: LineView[]; }",
		"interface StageTotals { group: StageKey; count: number; sum: Totals; }",
	} {
		if !strings.Contains(client, part) {
			t.Errorf("the client has no %s", part)
		}
	}
	openapi := string(generate.OpenAPI(s, generate.OpenAPIOptions{}))
	for _, name := range []string{"SaleView", "PartnerView", "LineView", "StageTotals", "StageKey", "Totals"} {
		if !strings.Contains(openapi, `"#/components/schemas/`+name+`"`) || !strings.Contains(openapi, `"`+name+`":`) {
			t.Errorf("the document does not use %s", name)
		}
	}
}

func TestRoutesHaveUniqueNamesInAClient(t *testing.T) {
	got := string(generate.Client(compile(t, `routes("/", auth: none, rateLimit: none) {
		GET /a-b -> x
		GET /a.b -> x
		GET /a_b -> xGetAB2
		GET / -> x
		GET /y -> y
	}`)))
	for _, line := range []string{
		`    xGetAB: (request) => send("GET", "/a-b", request),`,
		`    xGetAB3: (request) => send("GET", "/a.b", request),`,
		`    xGetAB2: (request) => send("GET", "/a_b", request),`,
		`    xGet: (request) => send("GET", "/", request),`,
		`    y: (request) => send("GET", "/y", request),`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("line is missing: %s", line)
		}
	}
}
