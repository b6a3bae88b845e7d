package http_test

import (
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const exactSchema = `
entity Price {
  id: id
  label: string(0..80)?
  amount: decimal(20,2)?
  data: json?
}
apiKeys {
  scopes: { desk: @system("desk") { @grant insert, read on Price } }
}
type PriceInput { label: string(0..80)? amount: decimal(20,2)? data: json? }
routes("/", auth: apiKey(desk), rateLimit: none) {
  POST /typed -> store (input: PriceInput)
  POST /untyped -> store
  POST /raw -> length
  POST /text -> text
  POST /form -> form
  GET /values/:name -> values
}
functions(auth: apiKey(desk), rateLimit: none) {
  @expose price(amount: decimal(20,2)) -> decimal(20,2)
  @expose rate(number: float) -> decimal(30,18)
  @expose rates(number: float) -> decimal(20,8)[]
}
`

const exactHandlers = `
import { insert, ok, type RouteRequest } from "@runner/sdk";
export const store = async (req: RouteRequest) => {
  const { label = null, amount = null, data = null } = req.body();
  return ok(await insert("Price", { label, amount, data }));
};
export const length = (req: RouteRequest) => ok(req.rawBody.length);
export const text = (req: RouteRequest) => ok(req.text());
export const form = async (req: RouteRequest) => ok([...(await req.formData())]);
export const values = (req: RouteRequest) => ok([req.params.name, req.query.q ?? null, req.headers["x-a"] ?? null]);
export const price = (req: RouteRequest) => ok(req.body().amount);
export const rate = (req: RouteRequest) => ok(req.body().number);
export const rates = (req: RouteRequest) => ok([req.body().number]);
`

func exactApp(t *testing.T) (s *harness.Server, token string) {
	t.Helper()
	a := harness.NewApp(t, exactSchema, "")
	a.Write("handlers/exact.ts", exactHandlers)
	a.Must("build")
	return a.Serve(), "Authorization: Bearer " + a.Token("desk")
}

// A handler in script reads a JSON number as a float64, which has 15 digits.
func TestADecimalIsStoredWithTheDigitsOfTheBodyOrRefused(t *testing.T) {
	t.Parallel()
	s, token := exactApp(t)
	for number, want := range map[string]string{
		`"123456789012345678.91"`: `"amount":"123456789012345678.91"`,
		`"0.10"`:                  `"amount":"0.10"`,
		`1234567890123.45`:        `"amount":"1234567890123.45"`,
		`-0.10e1`:                 `"amount":"-1.00"`,
	} {
		for _, path := range []string{"/typed", "/untyped"} {
			if got := s.Do("POST", path, `{"amount":`+number+`}`, token); got.Status != 200 || !strings.Contains(got.Body, want) {
				t.Errorf("%s with %s: %d %s, want %s", path, number, got.Status, got.Body, want)
			}
		}
	}
	for _, number := range []string{`12345678901234567.89`, `12345678901234568`, `10000000000000000.01`, `99999999999999.99`, `0.30000000000000004`} {
		if got := s.Do("POST", "/typed", `{"amount":`+number+`}`, token); got.Status != 400 || !strings.Contains(got.Body, `"field":"amount"`) {
			t.Errorf("/typed with %s: %d %s", number, got.Status, got.Body)
		}
		if got := s.Do("POST", "/untyped", `{"amount":`+number+`}`, token); got.Status != 400 || !strings.Contains(got.Body, "values.amount: must ") {
			t.Errorf("/untyped with %s: %d %s", number, got.Status, got.Body)
		}
		if got := s.Do("POST", "/_call/price", `{"amount":`+number+`}`, token); got.Status != 400 || !strings.Contains(got.Body, `"field":"amount"`) {
			t.Errorf("the function with %s: %d %s", number, got.Status, got.Body)
		}
	}
}

// A result is not stored.
func TestADecimalInAResultMayBeAnyNumberThatItsTypeHolds(t *testing.T) {
	t.Parallel()
	s, token := exactApp(t)
	for _, row := range []struct {
		path, number string
		status       int
	}{
		{"rate", "1", 200}, {"rate", "0.001", 200}, {"rate", "123456789012", 200}, {"rate", "1234567890123", 500},
		{"rates", "12345678", 200}, {"rates", "0.123456789", 500},
	} {
		want := row.number
		if row.path == "rates" {
			want = "[" + want + "]"
		}
		if got := s.Do("POST", "/_call/"+row.path, `{"number":`+row.number+`}`, token); got.Status != row.status || row.status == 200 && got.Body != want {
			t.Errorf("%s of %s: %d %s, want %d %s", row.path, row.number, got.Status, got.Body, row.status, want)
		}
	}
}

// Readers of many languages replace what is not a character by U+FFFD.
func TestABodyThatIsNotUnicodeIsRefusedAndNeverReplaced(t *testing.T) {
	t.Parallel()
	s, token := exactApp(t)
	const isJSON = "Content-Type: application/json"
	for _, body := range []string{"{\"label\":\"caf\xe9\"}", "{\"label\":\"\xed\xa0\x80\"}", `{"label":"\ud800"}`, `{"data":{"a":["\udc00 \ud800"]}}`, "{\"\xff\":1}"} {
		for _, path := range []string{"/typed", "/untyped", "/raw"} {
			if got := s.Do("POST", path, body, token, isJSON); got.Status != 400 || got.Problem(t).Code != "invalid_json" {
				t.Errorf("%s with %q: %d %s", path, body, got.Status, got.Body)
			}
		}
		// Without a type, the bytes are the handler's.
		if got := s.Do("POST", "/raw", body, token); got.Status != 200 {
			t.Errorf("the bytes of %q: %d %s", body, got.Status, got.Body)
		}
		if got := s.Do("POST", "/untyped", body, token); got.Status != 400 && got.Status != 500 {
			t.Errorf("%q without a type: %d %s", body, got.Status, got.Body)
		}
		if got := s.Do("POST", "/text", body, token); strings.Contains(got.Body, "\ufffd") || strings.Contains(body, "\xff") && got.Status != 400 {
			t.Errorf("the text of %q: %d %s", body, got.Status, got.Body)
		}
	}
	for _, body := range []string{`{"label":"` + "\ufffd" + ` \ufffd caf\u00e9 \ud83d\ude00"}`, `{"label":"a\\ud800"}`} {
		if got := s.Do("POST", "/untyped", body, token, isJSON); got.Status != 200 {
			t.Errorf("%s: %d %s", body, got.Status, got.Body)
		}
	}
}

func TestAFormThatIsNotUnicodeIsRefusedAndNeverReplaced(t *testing.T) {
	t.Parallel()
	s, token := exactApp(t)
	const encoded, parts = "Content-Type: application/x-www-form-urlencoded", "Content-Type: multipart/form-data; boundary=b"
	part := func(value string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n" + value + "\r\n--b--\r\n"
	}
	file := func(name, content string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"" + name + "\"\r\n\r\n" + content + "\r\n"
	}
	for body, kind := range map[string]string{"a=caf%e9": encoded, "a=caf\xe9": encoded, "%ff=1": encoded, "a=%EF%BF%BD&b=%ff": encoded, part("caf\xe9"): parts,
		// What looks like U+FFFD elsewhere does not make up for it.
		part("caf\xe9 %EF%BF%BD"): parts, file("x", "\ufffd") + part("caf\xe9"): parts, file("caf\xe9", "\ufffd") + part("a"): parts,
	} {
		if got := s.Do("POST", "/form", body, token, kind); got.Status != 400 {
			t.Errorf("%q: %d %s", body, got.Status, got.Body)
		}
	}
	for body, kind := range map[string]string{"a=%EF%BF%bD\ufffd": encoded, part("\ufffd\ufffd"): parts} {
		if got := s.Do("POST", "/form", body, token, kind); got.Status != 200 || got.Body != `[["a","`+"\ufffd\ufffd"+`"]]` {
			t.Errorf("%q: %d %s", body, got.Status, got.Body)
		}
	}
}

func TestValuesOfARequestThatAreNotUnicodeAreRefused(t *testing.T) {
	t.Parallel()
	s, token := exactApp(t)
	for _, path := range []string{"/values/%ff", "/values/a?q=%ff", "/values/a?q=%ed%a0%80", "/values/a?%ff=1", "/values/%c0%af"} {
		if got := s.Do("GET", path, "", token); got.Status != 400 || strings.Contains(got.Body, "\ufffd") {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
	}
	if got := s.Do("GET", "/values/a", "", token, "X-A: caf\xe9"); got.Status != 200 || got.Body != `["a",null,"café"]` { // obs-text (RFC 9110, 5.5)
		t.Errorf("a header: %d %s", got.Status, got.Body)
	}
	if got, want := s.Do("GET", "/values/%EF%BF%BD?q=a%00b", "", token).Body, `["`+"\ufffd"+`","a\u0000b",null]`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
