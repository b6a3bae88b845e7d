package typescript_test

import (
	"encoding/json"
	"os"
	"testing"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
	"runner.example/runtime/sandbox"
)

// collationFile has the handlers of the tests below.
const collationFile = `import { ok, type RouteRequest } from "@runner/sdk";

type Case = [options: Intl.CollatorOptions | null, texts: string[], signs: string];

const early = ["b", "ä", "Z", "a"].sort((x, y) => x.localeCompare(y)).join("");
const sign = (n: number) => (n < 0 ? "<" : n > 0 ? ">" : "=");

export function run(req: RouteRequest) {
  const [given, texts, signs] = req.body<Case>();
  const collator = new Intl.Collator("en", given ?? undefined);
  const wrong: unknown[] = [];
  texts.forEach((text, i) => {
    const before = texts.at(i - 1)!;
    const [got, method] = [sign(collator.compare(before, text)), sign(before.localeCompare(text, "en", given ?? undefined))];
    if (got !== signs[i] || method !== got) wrong.push([given, before, text, got, method, signs[i]]);
  });
  return ok(wrong);
}

const fails = (does: () => unknown) => {
  try {
    return does();
  } catch (error) {
    return (error as Error).name;
  }
};

export function claims() {
  const compare = new Intl.Collator("en").compare;
  return ok({
    early: early === "aäbZ",
    order: ["Zoe", "Äpfel", "apfel", "Öl", "öl", "zoe", "ß"].sort(compare).join() === "apfel,Äpfel,öl,Öl,ß,zoe,Zoe",
    numeric: ["a10", "a9", "a1"].sort(new Intl.Collator("en-u-kn").compare).join() === "a1,a9,a10",
    resolved: JSON.stringify(new Intl.Collator("en-GB-u-kn-kf-upper", { caseFirst: "lower" }).resolvedOptions()) ===
      '{"locale":"en-GB-u-kn","usage":"sort","sensitivity":"variant","ignorePunctuation":false,"collation":"default","numeric":true,"caseFirst":"lower"}',
    shape: [Intl.Collator.name, Intl.Collator.length, String(Intl.Collator()), "".localeCompare.name, "".localeCompare.length, compare.length, compare.name].join() ===
      "Collator,0,[object Intl.Collator],localeCompare,1,2,",
    same: compare === compare && Intl.Collator.supportedLocalesOf(["en", "de"]).join() === "en",
    refused: [
      fails(() => new Intl.Collator("en", { sensitivity: "some" as any })), fails(() => "a".localeCompare("b", "x")), fails(() => new Intl.Collator("en", { caseFirst: "none" as any })),
      fails(() => "a".localeCompare("b", "en", null as any)), fails(() => String.prototype.localeCompare.call(null as any, "a")),
    ].join() === "RangeError,RangeError,RangeError,TypeError,TypeError",
    text: "1".localeCompare(1 as any) === 0 && "undefined".localeCompare(undefined as any) === 0,
    lone: "\ud800".localeCompare("\ud801") === -1,
  });
}

const letters = ["", "á", "b", "ç", "Д", "ė", "ф", "g", "中", "ι", "j"];
export function many(req: RouteRequest) {
  const names = Array.from({ length: Number(req.query.n) }, (_, i) => [...String((i * 7919) % 99991)].map((digit) => letters[Number(digit) + 1]).join("") + " Müller");
  names.sort((a, b) => a.localeCompare(b));
  for (let i = 1; i < names.length; i++) if (names[i - 1].localeCompare(names[i]) > 0) return ok("not sorted");
  return ok("sorted");
}
`

func collationModule(t *testing.T) *sandbox.Module {
	t.Helper()
	return toolchaintest.Module(t, map[string]string{"handlers/collation.ts": collationFile})
}

// The texts and signs are those of Node.js: testdata/intl/collation.mjs has written them.
func TestTextsAreOrderedAsNodeOrdersThem(t *testing.T) {
	m := collationModule(t)
	text, err := os.ReadFile("testdata/intl/collation.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []json.RawMessage
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 10 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, one := range cases {
		var wrong []json.RawMessage
		askJSON(t, m, "run", one, &wrong)
		for _, pair := range wrong[:min(len(wrong), 10)] {
			t.Errorf("%s", pair)
		}
		if len(wrong) > 0 {
			t.Errorf("%d pairs", len(wrong))
		}
	}
}

func TestCollatorsFollowTheStandard(t *testing.T) {
	m := collationModule(t)
	claimsHold(t, toolchaintest.Ask(t, m, "claims", abi.Request{}), 9)
	got := toolchaintest.Ask(t, m, "many", abi.Request{Query: []abi.Pair{{Name: []byte("n"), Value: []byte("10000")}}})
	if got.Status != 200 || got.Body != `"sorted"` {
		t.Errorf("%d %s %v\n%s", got.Status, got.Body, got.Err, got.Log)
	}
}
