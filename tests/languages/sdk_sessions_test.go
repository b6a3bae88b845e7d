package languages_test

import (
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
  const ended = all ? null : await getContext().client.sessions.revoke(id);
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
