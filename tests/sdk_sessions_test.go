package tests

import (
	"fmt"
	"strings"
	"testing"
	"time"
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
	a := newApp(t, deskSchema, "")
	a.env = append(a.env, "RUNNER_SECRETS_STANDARD="+standardSecret)
	a.write("handlers/desk.ts", deskHandlers)
	a.must("build")
	s := a.serve()

	var made struct {
		ID    string
		Lasts float64
	}
	cookie, _ := s.want(200, &made, "POST", "/signin", `{"user":"ann"}`).cookieOf(t)
	if !strings.HasPrefix(made.ID, "ses_") || made.Lasts < 500 || made.Lasts > 601 {
		t.Errorf("opened: %+v", made)
	}
	s.want(403, nil, "POST", "/elsewhere", `{"user":"ann"}`)
	if got := s.want(200, nil, "POST", "/signout", `{"all":true}`, "Cookie: "+cookie); got.body != `{"userId":"ann","roles":["staff"],"claims":null,"ended":null}` {
		t.Errorf("who calls: %s", got.body)
	}
	s.want(404, nil, "POST", "/signout", `{"id":"ses_01arz3ndektsv4rrffq69g5fav"}`, "Cookie: "+cookie)
	if got := s.want(200, nil, "POST", "/signout", ``, "Cookie: "+cookie); !strings.Contains(got.body, `"ended":{"id":"`+made.ID+`"}`) {
		t.Errorf("ended: %s", got.body)
	}
	s.want(401, nil, "POST", "/signout", ``, "Cookie: "+cookie)

	now := time.Now()
	signed := signedStandard("msg_1", now, "{}")
	for range 2 { // it remembers nothing
		if got := s.want(200, nil, "POST", "/hook", "{}", signed...); got.body != fmt.Sprintf(`{"id":"msg_1","timestamp":%d}`, now.Unix()) {
			t.Errorf("a signed request: %s", got.body)
		}
	}
	s.want(403, nil, "POST", "/hook", "{} ", signed...)
	s.want(403, nil, "POST", "/hook", "{}")
}
