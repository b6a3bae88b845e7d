package typescript_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
	"runner.example/runtime/sandbox"
)

// intlFile has the handlers of the tests below.
const intlFile = `import { ok, type RouteRequest } from "@runner/sdk";

type Case = [kind: string, locale: string, options: any, value: any, result: any];
type Part = { type: string; value: string };

const early = new Intl.DateTimeFormat("en", { timeZone: "Europe/Berlin", dateStyle: "short", timeStyle: "short" });
const earlyText = new Date(Date.UTC(2026, 6, 1)).toLocaleString("en", { timeZone: "America/New_York" });
const usd = Intl.NumberFormat("en", { style: "currency", currency: "USD" });

const equal = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
const compact = (parts: Part[]) => parts.map(({ type, value }) => (type === "literal" ? value : "{" + type + " " + value + "}")).join("");
const fails = (does: () => unknown) => {
  try {
    does();
  } catch (error) {
    return String(error);
  }
};

function result([kind, locale, options, value]: Case): unknown {
  try {
    switch (kind) {
      case "date": {
        const format = new Intl.DateTimeFormat(locale, options);
        const parts = format.formatToParts(value ?? NaN);
        if (format.format(value) !== parts.map((part) => part.value).join("").replaceAll("\u202f", " ")) return "format gives " + format.format(value);
        return compact(parts);
      }
      case "number":
      case "bigint":
      case "string": {
        const number = kind === "number" ? Number(value) : kind === "bigint" ? BigInt(value) : value;
        const parts = new Intl.NumberFormat(locale, options).formatToParts(number);
        const text = parts.map((part) => part.value).join("");
        if (kind !== "string" && number.toLocaleString(locale, options) !== text) return "toLocaleString gives " + number.toLocaleString(locale, options);
        return compact(parts as Part[]);
      }
      case "resolvedDate":
        return new Intl.DateTimeFormat(locale, options).resolvedOptions();
      case "plural":
        return new Intl.PluralRules(locale, options).select(value);
      case "list":
        return compact(new Intl.ListFormat(locale, options).formatToParts(value));
      case "relative":
        return new Intl.RelativeTimeFormat(locale, options).formatToParts(value[0], value[1]);
      case "resolvedNumber":
        return new Intl.NumberFormat(locale, options).resolvedOptions();
    }
    return (new Date(value ?? NaN) as any)[kind](locale, options);
  } catch (error) {
    return { error: (error as Error).name };
  }
}

export const run = (req: RouteRequest) => ok(req.body<Case[]>().flatMap((one) => {
  const got = result(one);
  return equal(got, one[4]) ? [] : [{ case: one, got }];
}));

export function formatted(req: RouteRequest) {
  const [options, values] = req.body<[any, string[]]>();
  const format = new Intl.NumberFormat("en", { ...options, useGrouping: false });
  return ok(values.map((value) => format.format(value as any)));
}

export function claims() {
  const name = ["Seg", "menter"].join("");
  class Later extends Intl.NumberFormat {}
  return ok({
    early: early.format(0) === "1/1/70, 1:00 AM" && early.format(Date.UTC(2026, 6, 1)) === "7/1/26, 2:00 AM",
    earlyText: earlyText === "6/30/2026, 8:00:00 PM",
    usd: usd instanceof Intl.NumberFormat && [1, 2.5].map(usd.format).join() === "$1.00,$2.50",
    defaults: equal([new Date(0).toLocaleString(), new Date(0).toLocaleDateString(), new Date(0).toLocaleTimeString(), (1234.5).toLocaleString(), 12345n.toLocaleString()],
      ["1/1/1970, 12:00:00 AM", "1/1/1970", "12:00:00 AM", "1,234.5", "12,345"]),
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone === "UTC",
    zones: equal(["asia/kolkata", "Etc/UTC", "us/eastern"].map((timeZone) => Intl.DateTimeFormat("en", { timeZone }).resolvedOptions().timeZone), ["Asia/Kolkata", "UTC", "US/Eastern"]),
    wrongZone: equal(["Nowhere", "Local", "../UTC", "+25:00"].map((timeZone) => fails(() => new Date().toLocaleString("en", { timeZone }))?.split(":")[0]), Array(4).fill("RangeError")),
    invalid: new Date(NaN).toLocaleString() === "Invalid Date" && fails(() => early.format(NaN)) === "RangeError: Invalid time value",
    fallback: equal(["de", "en-AU", "en-US-x-a", ["fr", "en-GB"], undefined, []].map((locale: any) => Intl.NumberFormat(locale).resolvedOptions().locale), ["en-US", "en", "en-US", "en-GB", "en-US", "en-US"]),
    supported: equal(Intl.NumberFormat.supportedLocalesOf(["de", "EN-gb", "en-IN", "eng"]), ["en-GB", "en-IN"]),
    canonical: equal(Intl.getCanonicalLocales(["EN-latn-us", "zh-HANS", "en-u-HC-h23"]), ["en-Latn-US", "zh-Hans", "en-u-hc-h23"]),
    extension: new Intl.DateTimeFormat("en-US-u-hc-h23", { hour: "numeric", minute: "numeric" }).format(0) === "00:00",
    lists: equal([[1234.5, null, new Date(0)].toLocaleString("en-GB"), new Float64Array([1234.5, 2]).toLocaleString()], ["1,234.5,,01/01/1970, 00:00:00", "1,234.5,2"]),
    tags: String(early) === "[object Intl.DateTimeFormat]" && String(Intl) === "[object Intl]" && new Later() instanceof Later,
    absent: (Intl as any)[name] === undefined && !(name in Intl),
    refused: equal([
      () => early.formatRange(0, 1), () => new Intl.NumberFormat("en", { style: "unit", unit: "meter" }), () => new Intl.DateTimeFormat("en", { calendar: "hebrew" }),
      () => new Intl.DateTimeFormat("en", { weekday: "short", year: "numeric" }), () => usd.formatRange(1, 2), () => new Intl.DateTimeFormat("en", { timeZone: "Asia/Singapore", timeStyle: "full" }).format(0),
    ].map((does) => /^TypeError: Intl\..* is not supported; docs.typescript.globals.md lists what is$/.test(fails(does)!)), Array(6).fill(true)),
  });
}

export function many() {
  let text = "";
  for (let day = 0; day < 3000; day++) text = early.format(Date.UTC(2020, 0, day));
  return ok(text);
}
`

func intlModule(t *testing.T) *sandbox.Module {
	t.Helper()
	return toolchaintest.Module(t, map[string]string{"handlers/intl.ts": intlFile})
}

// askJSON sends a value as the body, and decodes the answer.
func askJSON(t *testing.T, m *sandbox.Module, handler string, body, into any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	got := toolchaintest.Ask(t, m, handler, abi.Request{Method: []byte("POST"), Path: []byte("/"), Body: text})
	if err := json.Unmarshal([]byte(got.Body), into); err != nil || got.Status != 200 {
		t.Fatalf("%s answers %d %s (%v)\n%s", handler, got.Status, got.Body, got.Err, got.Log)
	}
}

// The cases and results are those of Node.js: testdata/intl/make.mjs has written them.
func TestIntlGivesWhatNodeGives(t *testing.T) {
	m := intlModule(t)
	text, err := os.ReadFile("testdata/intl/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []json.RawMessage
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 2000 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	const chunk = 200
	for at := 0; at < len(cases); at += chunk {
		var wrong []json.RawMessage
		askJSON(t, m, "run", cases[at:min(at+chunk, len(cases))], &wrong)
		for _, one := range wrong {
			t.Errorf("%s", one)
		}
	}
}

func TestHandlersCanUseIntl(t *testing.T) {
	m := intlModule(t)
	claimsHold(t, toolchaintest.Ask(t, m, "claims", abi.Request{}), 16)
	if got := toolchaintest.Ask(t, m, "many", abi.Request{}); got.Body != `"3/17/28, 1:00 AM"` {
		t.Errorf("answers %d %s (%v)\n%s", got.Status, got.Body, got.Err, got.Log) // one host call for each date would exceed the limit
	}
}

// roundedBig rounds a decimal number to places after the point, with exact arithmetic.
func roundedBig(value string, places int, mode string) string {
	v, ok := new(big.Rat).SetString(value)
	if !ok {
		panic(value)
	}
	negative := strings.HasPrefix(value, "-")
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)
	scaled := new(big.Rat).Mul(v.Abs(v), new(big.Rat).SetInt(scale))
	whole, rest := new(big.Int).QuoRem(scaled.Num(), scaled.Denom(), new(big.Int))
	half := new(big.Int).Lsh(rest, 1).Cmp(scaled.Denom())
	away := map[string]bool{
		"ceil": !negative, "floor": negative, "expand": true, "trunc": false,
		"halfCeil": half > 0 || half == 0 && !negative, "halfFloor": half > 0 || half == 0 && negative,
		"halfExpand": half >= 0, "halfTrunc": half > 0, "halfEven": half > 0 || half == 0 && whole.Bit(0) == 1,
	}[mode]
	if rest.Sign() != 0 && away {
		whole.Add(whole, big.NewInt(1))
	}
	text := new(big.Rat).SetFrac(whole, scale).FloatString(places)
	if places > 0 {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	if negative {
		return "-" + text
	}
	return text
}

// Numbers in their shortest form and texts of any length are rounded as exact decimal
// numbers are.
func TestNumbersAreRoundedExactly(t *testing.T) {
	m := intlModule(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	digits := func(n int) string {
		var text strings.Builder
		for range n {
			text.WriteByte("0123456789595999"[r.IntN(16)]) // many fives and nines: they decide about rounding
		}
		return text.String()
	}
	for _, mode := range []string{"ceil", "floor", "expand", "trunc", "halfCeil", "halfFloor", "halfExpand", "halfTrunc", "halfEven"} {
		for places := range 6 {
			values, want := make([]string, 60), make([]string, 60)
			for i := range values {
				value := digits(1+r.IntN(25)) + "." + digits(1+r.IntN(25))
				if r.IntN(3) == 0 {
					value = digits(1+r.IntN(6)) + "." + digits(places) + "5"
				}
				if r.IntN(2) == 0 {
					value = "-" + value
				}
				values[i], want[i] = value, roundedBig(value, places, mode)
			}
			var got []string
			askJSON(t, m, "formatted", []any{map[string]any{"maximumFractionDigits": places, "roundingMode": mode}, values}, &got)
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("%s with %d places, %s: %s, want %s", values[i], places, mode, got[i], want[i])
				}
			}
		}
	}
}

func TestUnsupportedIntlIsABuildError(t *testing.T) {
	const list = "Intl has Collator, DateTimeFormat, NumberFormat"
	for name, row := range map[string]struct {
		source string
		want   []string // none: it is built
	}{
		"used":       {"export const a = () => [...new Intl.Segmenter(\"en\").segment(\"a\")];", []string{"handlers/a.ts:1:32: error: Intl.Segmenter is not supported: " + list}},
		"called":     {"const names = Intl.supportedValuesOf(\"currency\");\nexport const a = () => names;", []string{"handlers/a.ts:1:15: error: Intl.supportedValuesOf is not supported"}},
		"global":     {"export const a = () => new globalThis.Intl.Segmenter();", []string{"error: Intl.Segmenter is not supported"}},
		"statics":    {"export const a = () => Intl.DisplayNames.supportedLocalesOf(\"de\");", []string{"error: Intl.DisplayNames is not supported"}},
		"package":    {"export { a } from \"some\";", []string{"node_modules/some/index.js:1:", "error: the package some uses Intl.DisplayNames, which is not supported: " + list, "use another package"}},
		"scoped":     {"export { a } from \"@an/other\";", []string{"error: the package @an/other uses Intl.DisplayNames"}},
		"unused":     {"import { b } from \"some\";\nexport const a = () => b;", nil},
		"tested":     {"export const a = () => typeof Intl.Segmenter === \"function\" ? new Intl.Segmenter() : null;", nil},
		"tested in":  {"export const a = () => \"Segmenter\" in Intl ? new Intl.Segmenter() : null;", nil},
		"in a text":  {"export const a = () => \"new Intl.Segmenter() is not used\";", nil},
		"a variable": {"export const a = (Intl: any) => new Intl.Segmenter();", nil},
		"a locale":   {"export const a = () => [(1).toLocaleString(\"de-DE\"), new Intl.NumberFormat(\"en-IN\"), new Date().toLocaleDateString(\"fr\")];", []string{"1:44: warning: the locale de-DE is not supported: the result is that of en-US", "the locale fr is not"}},
		"an order":   {"export const a = (x: string) => x.localeCompare(\"b\", \"sv\");", []string{"1:54: warning: the locale sv is not supported"}},
	} {
		t.Run(name, func(t *testing.T) {
			const other = "export const a = () => new Intl.DisplayNames().of('de');\nexport const b = 1;\n"
			dir := toolchaintest.App(t, map[string]string{
				"handlers/a.ts":                       row.source + "\n",
				"node_modules/some/index.js":          other,
				"node_modules/some/package.json":      `{"name":"some","type":"module","sideEffects":false}`,
				"node_modules/@an/other/index.js":     other,
				"node_modules/@an/other/package.json": `{"name":"@an/other","type":"module"}`,
			})
			_, found, err := toolchain.Build(t.Context(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t)})
			all := fmt.Sprint(err)
			if failed, ok := errors.AsType[*toolchain.DiagnosticsError](err); ok {
				found = failed
			}
			if found != nil {
				all = fmt.Sprint(found.List)
			}
			for _, want := range row.want {
				if !strings.Contains(all, want) {
					t.Errorf("%s, want %s", all, want)
				}
			}
			if row.want == nil && (err != nil || found != nil) {
				t.Errorf("it is not built: %s", all)
			}
		})
	}
}
