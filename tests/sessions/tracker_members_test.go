package sessions_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"runner.example/tests/harness"
)

// A change of a membership ends the member's sessions in that organisation with it.
func TestAChangeOfAMemberOfTheTrackerEndsItsSessions(t *testing.T) {
	t.Parallel()
	a := harness.ExampleApp(t, "tracker")
	s := a.Serve()
	type signedUp struct{ Org, User string }
	signUp := func(slug, email string) (made signedUp, cookie string) {
		t.Helper()
		return made, "Cookie: " + s.Want(201, &made, "POST", "/signup", fmt.Sprintf(`{"slug":%q,"org":%q,"email":%q,"name":"N"}`, slug, slug, email)).Cookie(t)
	}
	red, owner := signUp("red", "ann@example.com")
	_, stranger := signUp("blue", "eve@example.com")
	bob, atHome := signUp("green", "bob@example.com")
	a.Write("members.jsonl", fmt.Sprintf("{\"org\":%q,\"user\":%q,\"role\":\"admin\"}\n", red.Org, bob.User))
	a.Must("data", "import", "Membership", "members.jsonl")
	signIn := func() string {
		t.Helper()
		return "Cookie: " + a.Session(bob.User, "--tenant", red.Org, "--role", "admin").Cookie
	}
	admits := func(status int, cookie string) {
		t.Helper()
		s.Want(status, nil, "GET", "/api/projects", "", cookie)
	}
	phone, laptop := signIn(), signIn()
	demote, remove := fmt.Sprintf(`{"user":%q,"role":"viewer"}`, bob.User), fmt.Sprintf(`{"user":%q}`, bob.User)
	s.Want(404, nil, "POST", "/_call/setRole", demote, stranger)
	s.Want(400, nil, "POST", "/_call/setRole", fmt.Sprintf(`{"user":%q,"role":"owner"}`, bob.User), owner)
	admits(200, phone)
	s.Want(204, nil, "POST", "/_call/setRole", demote, owner)
	for _, ended := range []string{phone, laptop} {
		admits(401, ended)
	}
	admits(200, atHome)
	admits(200, owner)
	again := signIn()
	s.Want(204, nil, "POST", "/_call/removeMember", remove, owner)
	admits(401, again)
	s.Want(404, nil, "POST", "/_call/removeMember", remove, owner)
	admits(200, atHome)
	admits(200, stranger)
	var rows []struct{ User string }
	if err := json.Unmarshal([]byte(a.Must("data", "list", "Membership", "--json")), &rows); err != nil || len(rows) != 3 {
		t.Errorf("%v: members are %v", err, rows)
	}
}
