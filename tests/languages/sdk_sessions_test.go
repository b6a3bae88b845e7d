package languages_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const deskSchema = `
auth {
  session cookie { }
  roles: [staff]
}
secret STANDARD
apiKeys { scopes: { desk: @system("desk") { @grant read on Thing } } }
routes("/", auth: none, rateLimit: none) {
  POST /signin -> signIn (mints: session)
  POST /signout -> signOut (auth: session, mints: session)
  POST /elsewhere -> signIn
  POST /hook -> hook
}
`

const deskHandlers = `
import { getContext, noContent, ok, type RouteRequest } from "@runner/sdk";
export async function signIn(req: RouteRequest) {
  const { id, expiresAt } = await getContext().client.sessions.create({ userId: req.body<{ user: string }>().user, roles: ["staff"], ttl: 600 });
  return ok({ id, lasts: (Date.parse(expiresAt) - Date.now()) / 1000 });
}
export async function signOut(req: RouteRequest) {
  const { id, all } = req.body<{ id?: string; all?: boolean }>();
  const { userId, roles, claims } = getContext().auth;
  const { sessions } = getContext().client;
  const ended = all ? null : await (id === undefined ? sessions.revoke() : sessions.revoke(id));
  return ok({ userId, roles, claims: claims ?? null, ended });
}
export function hook() {
  return ok(getContext().client.webhooks.verify({ scheme: "standard", secret: "STANDARD" }));
}
`

func TestHandlersInTypeScriptOpenSessionsAndCheckWebhooks(t *testing.T) {
	a := harness.NewApp(t, deskSchema, "")
	a.Env = append(a.Env, "RUNNER_SECRETS_STANDARD="+harness.StandardSecret)
	a.Write("handlers/desk.ts", deskHandlers)
	a.Must("build")
	s := a.Serve()

	var made struct {
		ID    string
		Lasts float64
	}
	cookie := s.Want(200, &made, "POST", "/signin", `{"user":"ann"}`).Cookie(t)
	if !strings.HasPrefix(made.ID, "ses_") || made.Lasts < 500 || made.Lasts > 601 {
		t.Errorf("opened: %+v", made)
	}
	s.Want(403, nil, "POST", "/elsewhere", `{"user":"ann"}`)
	if got := s.Want(200, nil, "POST", "/signout", `{"all":true}`, "Cookie: "+cookie); got.Body != `{"userId":"ann","roles":["staff"],"claims":null,"ended":null}` {
		t.Errorf("who calls: %s", got.Body)
	}
	s.Want(404, nil, "POST", "/signout", `{"id":"ses_01arz3ndektsv4rrffq69g5fav"}`, "Cookie: "+cookie)
	if got := s.Want(200, nil, "POST", "/signout", ``, "Cookie: "+cookie); !strings.Contains(got.Body, `"ended":{"id":"`+made.ID+`"}`) {
		t.Errorf("ended: %s", got.Body)
	}
	s.Want(401, nil, "POST", "/signout", ``, "Cookie: "+cookie)

	now := time.Now()
	signed := harness.SignedStandard("msg_1", now, "{}")
	for range 2 { // verifying does not record the delivery
		if got := s.Want(200, nil, "POST", "/hook", "{}", signed...); got.Body != fmt.Sprintf(`{"id":"msg_1","timestamp":%d}`, now.Unix()) {
			t.Errorf("a signed request: %s", got.Body)
		}
	}
	s.Want(403, nil, "POST", "/hook", "{} ", signed...)
	s.Want(403, nil, "POST", "/hook", "{}")
}

const guideSchema = `
auth {
  session cookie { @manage when auth.role == "admin" }
  roles: [admin]
}
entity User {
  id: id
  email: email @unique
  hash: string(1..1024)
  @@allow read, update to session when id == auth.userId
}
entity Membership {
  id: id
  user: User
  @@allow read, insert, delete to session when auth.role == "admin"
}
apiKeys {
  scopes: {
    login: @system("login") {
      @grant read, insert, update on User
      @allTenants
    }
  }
}
routes("/", auth: session, rateLimit: none) {
  POST /signup -> signUp (auth: none, as: login)
  POST /signin -> signIn (auth: none, as: login, mints: session)
  POST /password -> changePassword
  DELETE /members/:user -> removeMember (auth: session(admin))
}
`

// TestTheGuideToPasswordsWorks runs the handlers that docs/typescript/cryptography.md shows.
func TestTheGuideToPasswordsWorks(t *testing.T) {
	page := harness.MustRead(t, harness.RepoFile("docs/typescript/cryptography.md"))
	_, section, _ := strings.Cut(page, "\n## Passwords\n")
	section, _, _ = strings.Cut(section, "\n- `hash` gives")
	var code strings.Builder
	for line := range strings.Lines(section) {
		if text, ok := strings.CutPrefix(line, "    "); ok || line == "\n" {
			code.WriteString(text)
		}
	}
	a := harness.NewApp(t, guideSchema, "")
	a.Env = append(a.Env, "RUNNER_PASSWORD_MEMORY=7mb")
	a.Write("handlers/users.ts", code.String())
	a.Must("build")
	s := a.Serve()
	body := func(secret string) string { return fmt.Sprintf(`{"email":"ann@example.com","secret":%q}`, secret) }
	s.Want(204, nil, "POST", "/signup", body("correct horse"))
	s.Want(401, nil, "POST", "/signin", body("incorrect horse"))
	signIn := func(secret string) string {
		t.Helper()
		return "Cookie: " + s.Want(200, nil, "POST", "/signin", body(secret)).Cookie(t)
	}
	this, other := signIn("correct horse"), signIn("correct horse")
	s.Want(204, nil, "POST", "/password", body("battery staple"), this)
	s.Want(401, nil, "POST", "/password", body("correct horse"), other)
	s.Want(204, nil, "POST", "/password", body("battery staple"), this)
	s.Want(401, nil, "POST", "/signin", body("correct horse"))
	again := signIn("battery staple")

	var users []struct{ ID string }
	if err := json.Unmarshal([]byte(a.Must("data", "list", "User", "--json")), &users); err != nil || len(users) != 1 {
		t.Fatalf("%v: %v", err, users)
	}
	admin := "Cookie: " + a.Session("eve", "--role", "admin").Cookie
	s.Want(403, nil, "DELETE", "/members/"+users[0].ID, "", this)
	s.Want(204, nil, "DELETE", "/members/"+users[0].ID, "", admin)
	for _, ended := range []string{this, again} {
		s.Want(401, nil, "POST", "/password", body("a third one"), ended)
	}
}
