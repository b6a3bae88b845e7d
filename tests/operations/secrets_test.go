package operations_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const secretsSchema = `app keeper
secret BY_ENV
secret IN_FILE
secret IN_TOML
routes("/hooks", auth: none, rateLimit: none) {
  POST /standard -> take (verify: webhook(standard, BY_ENV))
  POST /stripe -> take (verify: webhook(stripe, IN_FILE))
  POST /slack -> take (verify: webhook(slack, IN_FILE))
  POST /github -> take (verify: webhook(github, IN_TOML))
  POST /byHand -> byHand
}
routes("/v1", auth: none, rateLimit: none) {
  GET /read -> read
  GET /sign -> sign
  GET /show -> show
  GET /throw -> fail
}
`

const secretsHandlers = `
import { badRequest, getContext, hmac, noContent, ok, type RouteRequest } from "@runner/sdk";
const names = ["BY_ENV", "IN_FILE", "IN_TOML"] as const;
const all = () => Promise.all(names.map((name) => getContext().secret(name)));
export const take = () => noContent();
export async function byHand(req: RouteRequest) {
  const said: string[] = [];
  for (const scheme of ["standard", "stripe", "github", "slack"] as const)
    for (const secret of names)
      try {
        said.push((await getContext().client.webhooks.verify({ scheme, secret })).id);
      } catch (e) {
        console.warn(e, JSON.stringify(e));
        said.push(String(e));
      }
  return badRequest(said.join("; "));
}
export const read = async () => ok(await all());
export const sign = async () => ok(await Promise.all(names.map((name) => hmac("SHA-256", name, "data"))));
export async function show() {
  for (const value of await all()) {
    console.log("it is", value);
    console.error({ value });
    console.info(JSON.stringify({ value }));
    console.debug(value.split("\n"));
  }
  return noContent();
}
export async function fail(req: RouteRequest) {
  throw new Error("it is " + (await all())[Number(req.query.n)]);
}
`

// canary is a part of every secret and occurs nowhere else: ids have no capital letters.
const canary = "c4n4ryBird"

// canaryForms are the texts that reveal a canary: itself, in hex, and in base64 at any
// offset.
func canaryForms() []string {
	forms := []string{canary, hex.EncodeToString([]byte(canary))}
	for before := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte("xxx"[:before] + canary))
		forms = append(forms, strings.TrimRight(text, "=")[(before*8+5)/6:][:6])
	}
	return forms
}

// checkNoSecret reports an error if a text contains a secret.
func checkNoSecret(t *testing.T, where, text string) {
	t.Helper()
	for _, form := range canaryForms() {
		if i := strings.Index(text, form); i >= 0 {
			t.Errorf("%s shows a secret (%s): …%s…", where, form, text[max(0, i-80):min(len(text), i+40)])
		}
	}
}

// keeper is an app with a secret from each source.
type keeper struct {
	*harness.App
	env, file, toml string
}

func newKeeper(t *testing.T) *keeper {
	k := &keeper{
		App:  harness.NewApp(t, secretsSchema, ""),
		env:  "whsec_" + base64.StdEncoding.EncodeToString([]byte("24 bytes, like any token\xfb\xef\xbe"+canary+" of the environment")),
		file: canary + ` "of" <the> f\le & more` + "\n" + canary + " in its second line",
		toml: canary + " of the settings",
	}
	k.Write("handlers/keeper.ts", secretsHandlers)
	k.Write("runner.toml", "[telemetry]\nlevel = \"debug\"\naccess_log = true\n[secrets]\nIN_TOML = \""+k.toml+"\"\n")
	k.Write("secret.txt", k.file+"\n")
	k.App.Env = append(k.App.Env, "RUNNER_SECRETS_BY_ENV="+k.env, "RUNNER_SECRETS_IN_FILE_FILE="+k.Path("secret.txt"))
	return k
}

// use sends valid and invalid requests that involve secrets, and checks the responses.
func (k *keeper) use(s *harness.Server) {
	k.T.Helper()
	t, body, now := k.T.(*testing.T), `{"n":1}`, time.Now()
	stamp := fmt.Sprint(now.Unix())
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(k.env, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	id := "msg_" + fmt.Sprint(now.UnixNano())
	standard := []string{
		"Webhook-Id: " + id, "Webhook-Timestamp: " + stamp,
		"Webhook-Signature: v1," + base64.StdEncoding.EncodeToString(harness.MAC(key, id, ".", stamp, ".", body)),
	}
	signed := map[string][]string{
		"/hooks/standard": standard,
		"/hooks/stripe":   {"Stripe-Signature: t=" + stamp + ",v1=" + hex.EncodeToString(harness.MAC([]byte(k.file), stamp, ".", body))},
		"/hooks/slack":    {"X-Slack-Request-Timestamp: " + stamp, "X-Slack-Signature: v0=" + hex.EncodeToString(harness.MAC([]byte(k.file), "v0:", stamp, ":", body))},
		"/hooks/github":   {"X-Hub-Signature-256: sha256=" + hex.EncodeToString(harness.MAC([]byte(k.toml), body))},
	}
	send := func(status int, method, path, body string, headers ...string) {
		t.Helper()
		got := s.Do(method, path, body, headers...)
		if got.Status != status {
			t.Errorf("%s %s: %d %s, want %d", method, path, got.Status, got.Body, status)
		}
		checkNoSecret(t, method+" "+path, fmt.Sprint(got.Header, got.Body))
	}
	for path, headers := range signed {
		send(204, "POST", path, body, headers...)
		send(204, "POST", path, body, headers...) // again
		send(401, "POST", path, body+" ", headers...)
		send(400, "POST", path, body)
		send(400, "POST", "/hooks/byHand", body, headers...)
	}
	for range 3 {
		send(400, "POST", "/hooks/byHand", body)
	}
	send(200, "GET", "/v1/sign", "")
	send(204, "GET", "/v1/show", "")
	for n := range 3 {
		send(500, "GET", fmt.Sprint("/v1/throw?n=", n), "")
	}
	got := s.Do("GET", "/v1/read", "") // the one handler that returns secrets
	var values []string
	if err := json.Unmarshal([]byte(got.Body), &values); err != nil || len(values) != 3 || values[0] != k.env || values[1] != k.file || values[2] != k.toml {
		t.Errorf("the handler reads %q (%v)", values, err)
	}
}

// checkOutput checks that a process wrote the texts, and no secret.
func checkOutput(t *testing.T, where, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s does not contain %q: …%s", where, want, text[max(0, len(text)-2000):])
		}
	}
	checkNoSecret(t, where, text)
}

func TestNoSecretInAnyOutput(t *testing.T) {
	k := newKeeper(t)
	if err := os.Remove(k.Path("data/cache")); err != nil { // so that the app has a cache of its own, which is searched too
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check"}, {"check", "--json"}, {"build"}, {"check", "--modules"}, {"routes"}, {"generate", "openapi"}, {"generate", "types"}, {"generate", "client"},
	} {
		r := k.Run(args...)
		if r.Status != 0 {
			t.Errorf("%s: %d %s", args, r.Status, r.Stderr)
		}
		checkNoSecret(t, strings.Join(args, " "), r.Stdout+r.Stderr)
	}

	s := k.Serve()
	k.use(s)
	reload := func(content, says string) {
		t.Helper()
		k.Write("secret.txt", content)
		before := strings.Count(s.Stderr.String(), says)
		if err := s.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.WaitUntil("a reload", func() bool { return strings.Count(s.Stderr.String(), says) > before })
	}
	reload("\n", "reload failed; previous release kept")
	reload("\xff"+canary, "reload failed; previous release kept")
	k.use(s)
	k.file = canary + " \"anew\""
	reload(k.file, `"reloaded"`)
	k.use(s)
	for _, args := range [][]string{{"audit", "list"}, {"audit", "list", "--json"}, {"sessions", "list", "--all"}} {
		r := k.Run(args...)
		checkNoSecret(t, strings.Join(args, " "), r.Stdout+r.Stderr)
	}
	s.Stop()
	checkOutput(t, "the log", s.Stderr.String(), "signature refused", "it is …", "secret IN_FILE is empty", "secret IN_FILE is not text", "Error: it is …")

	s = k.Start("dev")
	s.WaitForOutput("serving")
	k.use(s)
	s.Stop()
	checkOutput(t, "dev", s.Stderr.String(), "it is …", "signature")

	for _, directory := range []string{"data", "data/cache", "build", "types"} {
		looked := 0
		err := filepath.WalkDir(k.Path(directory), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			looked++
			text, err := os.ReadFile(path)
			checkNoSecret(t, path, string(text))
			return err
		})
		if err != nil || looked == 0 {
			t.Errorf("%s: %d files were searched, %v", directory, looked, err)
		}
	}
}

func TestNoErrorAboutASecretShowsIt(t *testing.T) {
	const says = "IN_FILE"
	for name, c := range map[string]struct {
		change func(k *keeper)
		says   string
	}{
		"unquoted":        {func(k *keeper) { k.Write("runner.toml", "[secrets]\nIN_TOML = "+canary+"77\n") }, "runner.toml:2:11: error: not TOML here: write strings in quotes"},
		"a number first":  {func(k *keeper) { k.Write("runner.toml", "[secrets]\nIN_TOML = 1_"+canary+"\n") }, "not TOML here"},
		"a bad escape":    {func(k *keeper) { k.Write("runner.toml", "[secrets]\nIN_TOML = \"\\u"+canary+"\"\n") }, "not TOML here"},
		"no string":       {func(k *keeper) { k.Write("runner.toml", "[secrets]\nIN_TOML = [\""+canary+"\"]\n") }, "must be a string in quotes"},
		"no section":      {func(k *keeper) { k.Write("runner.toml", "IN_TOML = \""+canary+"\"\n") }, "in no section"},
		"value for path":  {func(k *keeper) { k.App.Env = append(k.App.Env, "RUNNER_SECRETS_IN_FILE_FILE="+canary) }, says},
		"path is no file": {func(k *keeper) { k.App.Env = append(k.App.Env, "RUNNER_SECRETS_IN_FILE_FILE="+k.Dir) }, says},
		"not UTF-8":       {func(k *keeper) { k.Write("secret.txt", canary+"\xff") }, "not text in UTF-8"},
		"too much":        {func(k *keeper) { k.Write("secret.txt", strings.Repeat(canary, 20_000)) }, "64 KiB"},
		"no key":          {func(k *keeper) { k.App.Env = append(k.App.Env, "RUNNER_SECRETS_BY_ENV="+canary+"!") }, "BY_ENV"},
		"pipe": {func(k *keeper) {
			harness.NamedPipe(t, k.Path("pipe"))
			k.App.Env = append(k.App.Env, "RUNNER_SECRETS_IN_FILE_FILE="+k.Path("pipe"))
		}, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t)
			module, err := os.ReadFile(harness.GuestFile("echo"))
			if err != nil {
				t.Fatal(err)
			}
			k.Write("app.schema", `secret BY_ENV
secret IN_FILE
secret IN_TOML
routes("/", auth: none, rateLimit: none) { POST /hook -> dump (verify: webhook(standard, BY_ENV)) }
`)
			k.Write("build/echo.wasm", string(module))
			c.change(k)
			said := ""
			for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"check"}, {"check", "--json"}, {"bench", "handler", "build/echo.wasm"}} {
				r := k.Run(args...)
				if args[0] == "serve" && r.Status != 3 {
					t.Errorf("serve: %d %s", r.Status, r.Stderr)
				}
				if args[0] == "check" && r.Status == 3 && strings.Contains(r.Stderr, "no value for") {
					t.Errorf("%s: beside an error in the file: %s", args, r.Stderr)
				}
				said += r.Stdout + r.Stderr
			}
			checkOutput(t, name, said, c.says)
		})
	}
}
