package languages_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// missing serves the app in testdata/missing, whose handlers do not check their values.
func missing(t *testing.T) *harness.Server {
	t.Helper()
	a := harness.NewApp(t, "", "[sandbox]\ncpu = \"30s\"\nstore_operations = 1000000\nhost_calls = 1000000\n[runtime]\ntimeout = \"30s\"\n")
	if err := os.Remove(a.Path("app.schema")); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{harness.Testdata("missing"), harness.RepoFile("develop/toolchain/typescript/testdata/values")} {
		if err := os.CopyFS(a.Dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	a.Env = append(a.Env, "RUNNER_SECRETS_HOOK=the secret of the hook")
	a.Must("build")
	return a.Serve()
}

const threeAccounts = `[{"email":"ada","password":"a","resetToken":"t-ada","tags":[]},{"email":"bob","password":"b","tags":[]},{"email":"eve","password":"e","tags":[]}]`

func TestAMissingTokenResetsNoPassword(t *testing.T) {
	s := missing(t)
	s.Matches(200, "3", "POST", "/accounts", threeAccounts, "")
	before := s.Get("/accounts", "").Body
	for _, row := range []struct{ method, path, body string }{
		{"POST", "/reset", `{"password":"mine"}`},
		{"POST", "/reset?tokem=t-ada", `{"password":"mine"}`},
		{"DELETE", "/expired", ""},
		{"POST", "/seen", `{"email":"ada","at":"tomorrow"}`},
		{"POST", "/seen", `{"email":"ada"}`},
		{"POST", "/seen", `{"at":"2026-01-01T00:00:00Z"}`},
	} {
		s.Matches(500, `.*"code":"handler_failed".*`, row.method, row.path, row.body, "")
		if after := s.Get("/accounts", "").Body; after != before {
			t.Errorf("%s %s %s changed the rows: %s", row.method, row.path, row.body, after)
		}
	}
	s.Matches(200, `{"changed":1}`, "POST", "/reset?token=t-ada", `{"password":"new"}`, "")
	s.Matches(200, `{"changed":1}`, "POST", "/seen", `{"email":"ada","at":"2026-01-01T00:00:00Z"}`, "")
	s.Matches(200, `\[\{"email":"ada","password":"new","resetToken":null,"seenAt":"2026-01-01T00:00:00.000Z"\},\{"email":"bob","password":"b".*`, "GET", "/accounts", "", "")
	s.Stop() // then the log is complete
	log := s.Stderr.String()
	for handler, want := range map[string]string{
		"reset":         "invalid: resetToken: the value of = is undefined: check it before the query, or compare with null on purpose",
		"removeExpired": "invalid: resetToken: the value of = is undefined: ",
		"seen":          "invalid: update: set.seenAt is an invalid date: check it first, or use null on purpose",
	} {
		if !regexp.MustCompile(`"msg":"handler failed".*"handler":"` + handler + `".*"cause":"` + regexp.QuoteMeta(want) + `.*"frames":\["` + handler + ` \(handlers/accounts\.ts:`).MatchString(log) {
			t.Errorf("the log does not have %s: %q:\n%s", handler, want, log)
		}
	}
	if want := "invalid: email: the value of = is undefined: "; !strings.Contains(log, want) {
		t.Errorf("the log does not have %q:\n%s", want, log)
	}
}

func TestAValueWithoutAFormInJSONIsRefusedByName(t *testing.T) {
	s := missing(t)
	s.Matches(200, "3", "POST", "/accounts", threeAccounts, "")
	before := s.Get("/accounts", "").Body
	if got := s.Do("POST", "/attempts", ""); got.Body != "114" {
		t.Errorf("%s", got.Body)
	}
	if after := s.Get("/accounts", "").Body; after != before {
		t.Errorf("the rows have changed: %s", after)
	}
	s.Matches(200, `\{"none":1,.*"resetToken":null,"seenAt":"1970-01-01T00:00:00.005Z","score":0,"visits":0,"tags":\[\],"meta":\{"b":null,"c":\["1970-01-01T00:00:00.000Z",1,"x"\]\}\}`, "POST", "/allowed", "", "")
}

// Arguments are written natively, or by the script if they have values that need it.
func TestBothWritersOfArgumentsRefuseTheSameValues(t *testing.T) {
	s := missing(t)
	first, rounds := int(time.Now().UnixNano()%1_000_000_000), 2
	if os.Getenv("RUNNER_SOAK") != "" {
		rounds = 100
	}
	t.Logf("first seed %d", first)
	seeds := []int{74704915} // has a list in which null follows a list of objects
	for i := range rounds {
		seeds = append(seeds, first+200*i)
	}
	for _, seed := range seeds {
		if got := s.Do("POST", "/compare", strconv.Itoa(seed)); got.Body != "same" {
			t.Errorf("%s", got.Body)
		}
	}
}

func TestTheTypeCheckerRefusesAMissingValue(t *testing.T) {
	a := typed(t, harness.Testdata("missing"))
	if err := os.Remove(a.Path("handlers/compare.ts")); err != nil { // its values are not for the type checker
		t.Fatal(err)
	}
	said := harness.CheckTypes(t, a)
	accounts, err := os.ReadFile(a.Path("handlers/accounts.ts"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(accounts), "\n") {
		at := "handlers/accounts.ts:" + strconv.Itoa(i+1)
		if strings.HasSuffix(line, "//! wrong") != strings.Contains(said[at], "'string | undefined' is not assignable") {
			t.Errorf("%s: the type checker reports %q", at, said[at])
		}
		delete(said, at)
	}
	for at, text := range said {
		t.Errorf("%s: %s", at, text)
	}
}
