package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	runner "runner.example/sdk/go"
	"runner.example/sdk/go/runnertest"
)

type rows = map[string]any

// run runs a handler with given results of operations, and returns their arguments.
func run(t *testing.T, handler runner.Handler, request runnertest.Request, answers map[string]any) (runnertest.Result, string) {
	t.Helper()
	var sent []string
	request.Calls = map[string]func(json.RawMessage) (any, error){}
	for op, answer := range answers {
		request.Calls[op] = func(args json.RawMessage) (any, error) {
			sent = append(sent, op+" "+string(args))
			if err, ok := answer.(error); ok {
				return nil, err
			}
			return answer, nil
		}
	}
	return runnertest.Run(t, handler, request), strings.Join(sent, "\n")
}

func TestHandlersAskForWhatTheirRouteSays(t *testing.T) {
	some := rows{"rows": []any{rows{"id": "1"}}, "row": rows{"id": "1"}, "count": 1, "nextCursor": nil}
	id := map[string]string{"id": "7"}
	rows := []struct {
		handler runner.Handler
		request runnertest.Request
		status  int
		sent    string
	}{
		{listProjects, runnertest.Request{}, 200, `query {"from":"Project","orderBy":[["key","asc"]]}`},
		{listProjects, runnertest.Request{Path: "/x?cursor=c"}, 200, `query {"from":"Project","orderBy":[["key","asc"]],"cursor":"c"}`},
		{getProject, runnertest.Request{Params: id}, 200, `get {"from":"Project","id":"7"}`},
		{listProjectTasks, runnertest.Request{Params: id}, 200, `get {"from":"Project","id":"7","select":["id"]}` + "\n" +
			`query {"from":"Task","where":[["project","=","7"]],"orderBy":[["state","asc"],["createdAt","asc"]]}`},
		{createProject, runnertest.Request{Body: `{"key":"K","name":"N","owner":"u9"}`, Auth: runner.Auth{Kind: "session", UserID: "u1"}}, 201,
			`insert {"into":"Project","values":{"key":"K","name":"N","private":false,"owner":"u1"}}` + "\n" +
				`insert {"into":"AuditEvent","values":{"actor":"","action":"project.created","detail":{"id":"1"}}}`},
		{listTasks, runnertest.Request{Path: "/x?state=done&assignee=u1"}, 200,
			`query {"from":"Task","where":[["state","=","done"],["assignee","=","u1"]],"orderBy":[["createdAt","desc"]]}`},
		{getTask, runnertest.Request{Params: id}, 200, `get {"from":"Task","id":"7"}`},
		{createTask, runnertest.Request{Body: `{"project":"7","title":"t"}`}, 201, `insert {"into":"Task","values":{"project":"7","title":"t"}}`},
		{updateTask, runnertest.Request{Params: id, Body: `{"state":"done","assignee":null,"org":"other"}`}, 200,
			`update {"in":"Task","set":{"state":"done","assignee":null},"where":[["id","=","7"]]}`},
		{updateTask, runnertest.Request{Params: id, Body: `{"org":"other"}`}, 400, ``},
		{ingestEvent, runnertest.Request{Body: `{"actor":"a","action":"b"}`}, 201, `insert {"into":"AuditEvent","values":{"actor":"a","action":"b"}}`},
		{health, runnertest.Request{}, 200, ``},
		{expireLinks, runnertest.Request{Job: &runner.Job{ScheduledFor: time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC)}}, 204,
			`delete {"from":"SignInLink","where":[["expiresAt","<","2026-11-01T02:00:00Z"]]}`},
		{signup, runnertest.Request{Body: `{"slug":"acme","org":"Acme","email":"a@b.example","name":"Ada"}`}, 201,
			`insert {"into":"Org","values":{"name":"Acme","slug":"acme"}}` + "\n" +
				`insert {"into":"User","values":{"email":"a@b.example","name":"Ada"}}` + "\n" +
				`insert {"into":"Membership","values":{"org":"1","role":"owner","user":"1"}}` + "\n" +
				`sessions.create {"roles":["owner"],"tenant":"1","userId":"1"}`},
		{signup, runnertest.Request{Body: `{"slug":"acme","org":"Acme","email":"a@b.example","name":"Ada","password":"correct horse"}`}, 201,
			`insert {"into":"Org","values":{"name":"Acme","slug":"acme"}}` + "\n" +
				`insert {"into":"User","values":{"email":"a@b.example","name":"Ada"}}` + "\n" +
				`password.hash {"password":"correct horse"}` + "\n" +
				`insert {"into":"Credential","values":{"hash":"$new","user":"1"}}` + "\n" +
				`insert {"into":"Membership","values":{"org":"1","role":"owner","user":"1"}}` + "\n" +
				`sessions.create {"roles":["owner"],"tenant":"1","userId":"1"}`},
		{setPassword, runnertest.Request{Body: `{"password":"correct horse"}`, Auth: runner.Auth{Kind: "session", UserID: "u1"}}, 204,
			`password.hash {"password":"correct horse"}` + "\n" +
				`update {"in":"Credential","set":{"hash":"$new"},"where":[["user","=","u1"]]}` + "\n" +
				`sessions.revokeAll {"allTenants":true,"except":"current"}`},
		{setRole, runnertest.Request{Body: `{"user":"u2","role":"viewer"}`}, 204,
			`update {"in":"Membership","set":{"role":"viewer"},"where":[["user","=","u2"]]}` + "\n" + `sessions.revokeAll {"user":"u2"}`},
		{removeMember, runnertest.Request{Body: `{"user":"u2"}`}, 204,
			`delete {"from":"Membership","where":[["user","=","u2"]]}` + "\n" + `sessions.revokeAll {"user":"u2"}`},
		{signout, runnertest.Request{}, 204, `sessions.revoke {}`},
		{listKeys, runnertest.Request{}, 200, `apiKeys.list {"limit":1000}`},
		{createKey, runnertest.Request{Body: `{"scope":"ingest","name":"n","expiresIn":60}`}, 200, `apiKeys.create {"expiresIn":60,"name":"n","scope":"ingest"}`},
		{rotateKey, runnertest.Request{Body: `{"id":"7","gracePeriod":60}`}, 200, `apiKeys.rotate {"gracePeriod":60,"id":"7"}`},
		{revokeKey, runnertest.Request{Body: `{"id":"7"}`}, 200, `apiKeys.revoke {"id":"7"}`},
	}
	answers := map[string]any{"apiKeys.create": runner.APIKey{}, "apiKeys.list": runner.APIKeyPage{}, "apiKeys.rotate": runner.APIKey{}, "apiKeys.revoke": runner.APIKey{},
		"sessions.create": runner.Session{}, "sessions.revoke": map[string]string{"id": "s"}, "sessions.revokeAll": map[string]int{"count": 1}, "password.hash": map[string]string{"hash": "$new"}}
	for _, op := range []string{"query", "get", "insert", "update", "delete"} {
		answers[op] = some
	}
	for _, row := range rows {
		if result, sent := run(t, row.handler, row.request, answers); result.Status != row.status || sent != row.sent {
			t.Errorf("%d, want %d, sent\n%s\nwant\n%s", result.Status, row.status, sent, row.sent)
		}
	}
}

// Each answer has a new token. Only its digest is stored, with the ids of org and user
// that the host returned.
func TestALinksTokenIsNotStored(t *testing.T) {
	known := map[string]any{"query": rows{"rows": []any{rows{"id": "7"}}, "count": 1}, "delete": rows{"count": 1}, "insert": rows{"row": rows{}}}
	tokens := map[string]bool{}
	for range 2 {
		before := time.Now()
		result, sent := run(t, makeSignInLink, runnertest.Request{Body: `{"slug":"acme","email":"a@b.example"}`}, known)
		after := time.Now()
		var made struct {
			Token     string
			ExpiresAt time.Time
		}
		if result.JSON(t, &made); result.Status != 201 || len(made.Token) < 26 || tokens[made.Token] || strings.Contains(sent, made.Token) {
			t.Fatalf("%d, sent %s", result.Status, sent)
		}
		tokens[made.Token] = true
		if made.ExpiresAt.Before(before.Add(14*time.Minute)) || made.ExpiresAt.After(after.Add(15*time.Minute+time.Second)) {
			t.Errorf("made from %s to %s, it lives until %s", before, after, made.ExpiresAt)
		}
		digest := fmt.Sprintf("%x", sha256.Sum256([]byte(made.Token)))
		if !strings.Contains(sent, `delete {"from":"SignInLink","where":[["membership","=","7"]]}`) || !strings.Contains(sent, digest) {
			t.Errorf("sent\n%s\nwithout the digest %s", sent, digest)
		}
	}
	nobody := map[string]any{"query": rows{"rows": []any{}, "count": 0}}
	if result, sent := run(t, makeSignInLink, runnertest.Request{Body: `{"slug":"acme","email":"a@b.example"}`}, nobody); result.Status != 404 || strings.Contains(sent, "insert") {
		t.Errorf("for nobody: %d, sent %s", result.Status, sent)
	}
}

func TestAnAssigneeIsMailedByAJob(t *testing.T) {
	made := map[string]any{"insert": rows{"rows": []any{rows{"id": "7", "assignee": "u1"}}}, "jobs.enqueue": runner.EnqueuedJob{ID: "job_1", Created: true}, "get": rows{"row": rows{"id": "7"}}}
	if result, sent := run(t, createTask, runnertest.Request{Body: `{"project":"1","title":"t","assignee":"u1"}`}, made); result.Status != 201 ||
		!strings.Contains(sent, "\n"+`jobs.enqueue {"name":"mailAssignee","params":{"task":"7"}}`+"\n") {
		t.Errorf("%d, sent %s", result.Status, sent)
	}
	request := runnertest.Request{Body: `{"task":"7"}`, Job: &runner.Job{ID: "job_1", Attempt: 1}}
	answers := map[string]any{"get": rows{"row": rows{"title": "t", "assignee": "u1", "email": "a@b.example"}}, "fetch": rows{"status": 202, "headers": []any{}, "body": ""}}
	result, sent := run(t, mailAssignee, request, answers)
	if result.Status != 204 || !strings.Contains(sent, `["idempotency-key","job_1"]`) || !strings.Contains(sent, "a@b.example") {
		t.Errorf("%d, sent %s", result.Status, sent)
	}
	answers["fetch"] = rows{"status": 503, "headers": []any{}, "body": ""}
	if result, _ := run(t, mailAssignee, request, answers); result.Status != 502 {
		t.Errorf("when the service fails: %d", result.Status)
	}
}

func TestALinkIsTakenBeforeItSignsIn(t *testing.T) {
	const body = `{"token":"T"}`
	answers := map[string]any{
		"query":           rows{"rows": []any{rows{"id": "1", "membership": "7"}}, "count": 1},
		"delete":          rows{"count": 1},
		"get":             rows{"row": rows{"org": "o", "user": "u", "role": "viewer"}},
		"sessions.create": runner.Session{},
	}
	result, sent := run(t, signin, runnertest.Request{Body: body}, answers)
	_, after, _ := strings.Cut(sent, "\n")
	want := `delete {"from":"SignInLink","where":[["id","=","1"]]}` + "\n" + `get {"from":"Membership","id":"7"}` + "\n" +
		`sessions.create {"roles":["viewer"],"tenant":"o","userId":"u"}`
	if digest := fmt.Sprintf("%x", sha256.Sum256([]byte("T"))); result.Status != 200 || after != want ||
		!strings.HasPrefix(sent, `query {"from":"SignInLink","where":[["digest","=","`+digest+`"],["expiresAt",">","`) {
		t.Errorf("%d, sent\n%s\nwant a query and\n%s", result.Status, sent, want)
	}
	answers["query"] = rows{"rows": []any{}, "count": 0}
	if result, sent := run(t, signin, runnertest.Request{Body: body}, answers); result.Status != 401 || strings.Contains(sent, "sessions") {
		t.Errorf("without a link: %d, sent %s", result.Status, sent)
	}
}

// An unknown member is answered after the same time as a wrong password, so that the time does not show
// which members exist.
func TestAPasswordIsVerifiedForAnUnknownMemberToo(t *testing.T) {
	const body = `{"slug":"acme","email":"a@b.example","password":"p"}`
	found := func(check runner.PasswordCheck) map[string]any {
		row := rows{"id": "7", "org": "o", "user": "u", "role": "viewer", "hash": "$old"}
		return map[string]any{
			"query": rows{"rows": []any{row}}, "password.verify": check, "password.hash": rows{"hash": "$new"},
			"update": rows{"count": 1}, "sessions.create": runner.Session{},
		}
	}
	const verify, create = `password.verify {"hash":"$old","password":"p"}`, `sessions.create {"roles":["viewer"],"tenant":"o","userId":"u"}`
	for _, row := range []struct {
		check  runner.PasswordCheck
		status int
		after  string
	}{
		{runner.PasswordCheck{Valid: true}, 200, verify + "\n" + create},
		{runner.PasswordCheck{Valid: true, Rehash: true}, 200, verify + "\n" + `password.hash {"password":"p"}` + "\n" +
			`update {"in":"Credential","set":{"hash":"$new"},"where":[["id","=","7"]]}` + "\n" + create},
		{runner.PasswordCheck{}, 401, verify},
	} {
		result, sent := run(t, signinByPassword, runnertest.Request{Body: body}, found(row.check))
		if result.Status != row.status || !strings.HasSuffix(sent, row.after) || strings.Count(sent, "query ") != 4 {
			t.Errorf("%+v: %d, sent\n%s", row.check, result.Status, sent)
		}
	}
	answers := found(runner.PasswordCheck{})
	answers["query"] = rows{"rows": []any{}}
	if result, sent := run(t, signinByPassword, runnertest.Request{Body: body}, answers); result.Status != 401 || !strings.HasSuffix(sent, `password.verify {"password":"p"}`) {
		t.Errorf("without a member: %d, sent\n%s", result.Status, sent)
	}
}

func TestWhatTheRunnerRefusesIsTheCallersMistakeOrIsNotThere(t *testing.T) {
	for code, status := range map[string]int{"invalid": 400, "not_found": 404, "denied": 403, "conflict": 409, "unavailable": 503} {
		failing := &runner.HostError{Code: code, Message: "m"}
		for name, handler := range map[string]runner.Handler{"listTasks": listTasks, "createTask": createTask, "updateTask": updateTask} {
			result, _ := run(t, handler, runnertest.Request{Body: `{"title":"t"}`}, map[string]any{"query": failing, "insert": failing, "update": failing})
			if result.Status != status {
				t.Errorf("%s, %s: %d, want %d", name, code, result.Status, status)
			}
		}
	}
	none := rows{"rows": []any{}, "count": 0}
	if result, _ := run(t, updateTask, runnertest.Request{Body: `{"title":"t"}`}, map[string]any{"update": none}); result.Status != 404 {
		t.Errorf("an update of no task: %d", result.Status)
	}
	hidden := &runner.HostError{Code: "not_found"}
	if result, sent := run(t, listProjectTasks, runnertest.Request{}, map[string]any{"get": hidden, "query": none}); result.Status != 404 || strings.Contains(sent, "query") {
		t.Errorf("tasks of a project that is not there: %d, sent %s", result.Status, sent)
	}
}
