package telemetry_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"runner.example/internal/telemetry"
)

// canary is a whole token; secret is the part that no line may hold.
const (
	secret = "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
	canary = "rnk_" + secret
	jwt    = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlLW9mLXRoZS1qd3Q"
)

func TestSecretsAreReplacedAnywhereInALine(t *testing.T) {
	rows := []struct{ in, want string }{
		{"nothing to hide", "nothing to hide"},
		{"key key_01jz8m3v6q2w4x5y7a8b9c0d1e of key", "key key_01jz8m3v6q2w4x5y7a8b9c0d1e of key"},
		{"token " + canary + " refused", "token rnk_… refused"},
		{canary + canary, "rnk_…_…"},
		{"/v1/x?key=" + canary + "&y=1", "/v1/x?key=rnk_…&y=1"},
		{"/v1/rnk%5F" + secret, "/v1/rnk%5F…"},
		{"/v1/rnk%5f" + secret, "/v1/rnk%5f…"},
		{"cut short: rnk_" + secret[:30], "cut short: rnk_…"},
		{"cut shorter: rnk_" + secret[:27], "cut shorter: rnk_…"},
		{"as short as an id: rnk_" + secret[:26], "as short as an id: rnk_" + secret[:26]},
		{"a JWT " + jwt + "!", "a JWT …!"},
		{"unsigned eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0. end", "unsigned … end"},
		{"a header with a token in it eyJhbGci_" + secret + "-a.eyJzdWIiOiIxIn0.c2ln", "a header with a token in it …"},
		{"a link https://a.example/_files/" + secret[:27] + "-_" + secret + "?a=1", "a link https://a.example/_files/…?a=1"},
		{`"path":"\/_files\/` + secret + `","n":1`, `"path":"\/_files\/…","n":1`},
		{"next=%2F%5Ffiles%2f" + secret + "&n=1", "next=%2F%5Ffiles%2f…&n=1"},
		{"the route /_files/:token, /_files/short and my_files_" + secret[:5], "the route /_files/:token, /_files/short and my_files_" + secret[:5]},
		{"next=https%253A%252F%252Fa.example%252F_files%252F" + secret + "%2526a", "next=https%253A%252F%252Fa.example%252F_files%252F…%2526a"},
		{"_files", "_files"},
		{"_files%25", "_files%25"},
		{"_files%252", "_files%252"},
		{"_files/", "_files/"},
		{"_files%2", "_files%2"},
		{"got Bearer abcdefgh123", "got Bearer …"},
		{"got BEARER \tabcdefgh123", "got BEARER \t…"},
		{"got basic dXNlcjpwYXNz", "got basic …"},
		{`Bearer realm="orders"`, `Bearer realm="orders"`},
		{"Authorization: Digest a=b, c=d\nHost: x\n", "Authorization: …\nHost: x\n"},
		{`"dump":"GET /\r\nAuthorization: Digest u, v\r\nHost: x"`, `"dump":"GET /\r\nAuthorization: …\r\nHost: x"`},
		{`"dump":"Cookie: a=\"b\"; c=d","n":1`, `"dump":"Cookie: …","n":1`},
		{`"body":"{\"authorization\":\"s3cret\",\"n\":1}"`, `"body":"{\"authorization\":\"…\",\"n\":1}"`},
		{`"body":"{\"Cookie\":\"a=\\\"b\\\"\",\"n\":1}"`, `"body":"{\"Cookie\":\"…\",\"n\":1}"`},
		{`{"set-cookie":"s3cret","n":1}`, `{"set-cookie":"…","n":1}`},
		{`{"cookie":"s3cret\\\\","n":1}`, `{"cookie":"…","n":1}`},
		{`x-api-key=s3cret other=1`, `x-api-key=… other=1`},
		{`cookie=a=1; b=2 other=1`, `cookie=… other=1`},
		{`map[X-Api-Key:[s3cret]]`, `map[X-Api-Key:[…`},
		{`"kind":"cookie","n":1`, `"kind":"cookie","n":1`},
		{"two cookies: fine", "two cookies: fine"},
		{"runner.example/runtime/sandbox.(*Engine).Load", "runner.example/runtime/sandbox.(*Engine).Load"},
		{"10.0.0.1 2026-01-31T10:00:00.123Z some-long-name.example.com", "10.0.0.1 2026-01-31T10:00:00.123Z some-long-name.example.com"},
	}
	for _, row := range rows {
		if got := string(telemetry.Redact([]byte(row.in))); got != row.want {
			t.Errorf("%s\n gave %s\n want %s", row.in, got, row.want)
		}
	}
}

var tokenForm = regexp.MustCompile(`[a-z][a-z0-9]{1,7}_[0-9A-Za-z]{36}`)

func FuzzNoTokenSurvives(f *testing.F) {
	f.Add("", "")
	f.Add("Authorization: ", "\r\n")
	f.Add(`cookie="a`, `"`)
	f.Add("eyJhbGciOiJub25lIn0.", ".x")
	f.Add(`{"authorization":"\`, `\n\"`)
	f.Add("keyewewkey.", ".x")
	f.Add("\x1eyJhbGci.iJub25lIn0.", "\x84\x84.x")
	f.Fuzz(func(t *testing.T, before, after string) {
		for _, text := range []string{before + " " + canary + after, before + " " + jwt + " " + after, before + "\nX-API-Key: tiny5ecret\n" + after} {
			got := telemetry.Redact([]byte(text))
			for _, part := range []string{secret, "c2lnbmF0dXJl", "tiny5ecret"} {
				if bytes.Contains(got, []byte(part)) && !strings.Contains(before+after, part) {
					t.Fatalf("%q left %q", text, got)
				}
			}
			if tokenForm.Match(got) {
				t.Fatalf("%q left a token: %q", text, got)
			}
		}
		for _, format := range []string{"json", "text"} {
			var out bytes.Buffer
			log := telemetry.NewLogger(&out, telemetry.Options{Format: format})
			log.Info(before+" "+canary, "path", canary+after, slog.Group("g", "Cookie", after+"x"), "headers", map[string]string{"k": canary})
			if strings.Contains(out.String(), secret) && !strings.Contains(before+after, secret) {
				t.Fatalf("%s line with a token: %s", format, out.String())
			}
			if strings.Count(out.String(), "\n") != 1 {
				t.Fatalf("%s record of more than one line: %q", format, out.String())
			}
			if format == "json" && !json.Valid(out.Bytes()) {
				t.Fatalf("no JSON any more: %s", out.String())
			}
		}
	})
}

func TestALineWithoutSecretsIsNotCopied(t *testing.T) {
	line := []byte(`{"time":"2026-01-31T10:00:00.123Z","level":"INFO","msg":"request","route":"/v1/orders/:id","key":"key_01jz8m3v6q2w4x5y7a8b9c0d1e","status":200}`)
	if n := testing.AllocsPerRun(100, func() { telemetry.Redact(line) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkRedact(b *testing.B) {
	for name, line := range map[string]string{
		"clean":  `{"time":"2026-01-31T10:00:00.123Z","level":"INFO","msg":"request","route":"/v1/orders/:id","status":200,"requestId":"01jz8m3v6q2w4x5y7a8b9c0d1e"}`,
		"secret": `{"time":"2026-01-31T10:00:00.123Z","level":"INFO","msg":"request","path":"/v1/orders/` + canary + `"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				telemetry.Redact([]byte(line))
			}
		})
	}
}
