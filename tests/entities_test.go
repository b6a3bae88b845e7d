package tests

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var compiled sync.Map // folder of handlers -> func() ([]byte, error)

// goModule compiles the handlers in a folder, once for all tests.
func goModule(t testing.TB, dir string) string {
	t.Helper()
	once, _ := compiled.LoadOrStore(dir, sync.OnceValues(func() ([]byte, error) {
		file := filepath.Join(guestDir, strings.ReplaceAll(dir, "/", "_")+".wasm")
		cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", file, ".")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compile %s: %w\n%s", dir, err, out)
		}
		return os.ReadFile(file)
	}))
	module, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return string(module)
}

// exampleApp is one of plugins/examples with an empty data folder.
func exampleApp(t testing.TB, name string) *app {
	t.Helper()
	from := filepath.Join("../plugins/examples", name)
	text, err := os.ReadFile(filepath.Join(from, name+".schema"))
	if err != nil {
		t.Fatal(err)
	}
	a := newApp(t, string(text), "")
	if toml, err := os.ReadFile(filepath.Join(from, "runner.toml")); err == nil {
		a.write("runner.toml", string(toml))
	}
	handlers := filepath.Join(from, "handlers")
	if _, err := os.Stat(filepath.Join(handlers, name, "go.mod")); err == nil {
		a.write("build/"+name+".wasm", goModule(t, filepath.Join(handlers, name)))
		return a
	}
	if err := os.CopyFS(a.path("handlers"), os.DirFS(handlers)); err != nil {
		t.Fatal(err)
	}
	a.must("build")
	return a
}

// want is do for an answer of that status, whose body, if it is JSON, is read
// into v.
func (s *server) want(status int, v any, method, path, body string, headers ...string) answer {
	s.t.Helper()
	got := s.do(method, path, body, headers...)
	if got.status != status {
		s.t.Errorf("%s %s %s: %d %s, want %d", method, path, body, got.status, got.body, status)
		return got
	}
	if v != nil {
		if err := json.Unmarshal([]byte(got.body), v); err != nil {
			s.t.Errorf("%s %s: read %q: %v", method, path, got.body, err)
		}
	}
	return got
}

// fields are the members of a JSON object, in order.
func fields(t testing.TB, object string) string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(object))
	var names []string
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		t.Fatalf("no object: %s", object)
	}
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			t.Fatalf("no object: %s", object)
		}
		names = append(names, name.(string))
	}
	return strings.Join(names, " ")
}

type orderRow struct {
	ID, Number, Partner, Status, Total, Currency string
	PaymentRef                                   *string
	CreatedAt, UpdatedAt                         time.Time
}

type orderPage struct {
	Rows       []json.RawMessage
	NextCursor *string
}

func TestTheOrdersExampleKeepsItsRules(t *testing.T) {
	t.Parallel()
	a := exampleApp(t, "orders")
	s := a.serve()
	key := func(scope string) string { return "X-API-Key: " + a.token(scope) }
	reader, partner, ops := key("orders_read"), key("partner_sync"), key("ops_admin")
	cookie := func(user string, args ...string) string { return "Cookie: " + a.session(user, args...).Cookie }
	admin, staff := cookie("ada", "--role", "admin"), cookie("bo", "--role", "staff")

	var acme struct{ ID string }
	got := s.want(201, &acme, "POST", "/v1/partners", `{"code":"acme","name":"Acme"}`, ops)
	if names := fields(t, got.body); names != "id code name active" || got.header.Get("Location") != "/v1/partners/acme" {
		t.Errorf("a new partner: %q at %q", names, got.header.Get("Location"))
	}
	place := func(number, total string) orderRow {
		t.Helper()
		var o orderRow
		body := fmt.Sprintf(`{"number":%q,"partner":%q,"total":%s}`, number, acme.ID, total)
		got := s.want(201, &o, "POST", "/v1/orders", body, partner)
		if got.header.Get("Location") != "/v1/orders/"+o.ID || o.Status != "draft" || o.Currency != "EUR" || o.Partner != acme.ID || o.CreatedAt.IsZero() {
			t.Errorf("a new order: %s at %q", got.body, got.header.Get("Location"))
		}
		return o
	}
	first, second := place("A-1", `"12.50"`), place("A-2", `7`)
	if second.Total != "7.00" {
		t.Errorf("a total of 7 is kept as %q", second.Total)
	}

	t.Run("a grant's fields bound what is read", func(t *testing.T) {
		var page orderPage
		s.want(200, &page, "GET", "/v1/orders", "", reader)
		if len(page.Rows) != 2 || fields(t, string(page.Rows[0])) != "id number status total currency createdAt" {
			t.Errorf("a reader sees %s", page.Rows)
		}
		s.want(200, &page, "GET", "/v1/orders", "", partner)
		if len(page.Rows) != 2 || fields(t, string(page.Rows[0])) != "id number partner status total currency paymentRef meta createdAt updatedAt" {
			t.Errorf("a partner sees %s", page.Rows)
		}
		if got := s.want(200, nil, "GET", "/v1/orders/"+first.ID, "", reader); fields(t, got.body) != "id number status total currency createdAt" {
			t.Errorf("a reader sees %s", got.body)
		}
		s.want(200, &page, "GET", "/v1/orders?status=paid", "", reader)
		if len(page.Rows) != 0 || page.NextCursor != nil {
			t.Errorf("paid orders before any is: %s", page.Rows)
		}
		if p := s.want(400, nil, "GET", "/v1/orders?status=lost", "", reader).problem(t); !strings.Contains(p.Detail, "status") {
			t.Errorf("a status that is none: %+v", p)
		}
		s.want(400, nil, "GET", "/v1/orders?cursor=forged", "", reader)
	})
	t.Run("input is checked before the handler", func(t *testing.T) {
		p := s.want(400, nil, "POST", "/v1/orders", `{"number":"","total":"x","status":"paid"}`, partner).problem(t)
		if p.Code != "invalid_input" {
			t.Errorf("%+v", p)
		}
	})
	t.Run("what must be unique is a conflict", func(t *testing.T) {
		body := fmt.Sprintf(`{"number":"A-1","partner":%q,"total":1}`, acme.ID)
		p := s.want(409, nil, "POST", "/v1/orders", body, partner).problem(t)
		if p.Code != "conflict" || !strings.Contains(p.Detail, "number") || strings.Contains(p.Detail, first.ID) {
			t.Errorf("%+v", p)
		}
		s.want(409, nil, "POST", "/v1/partners", `{"code":"acme","name":"Another"}`, ops)
	})
	t.Run("a relation leads to a row that is there", func(t *testing.T) {
		s.want(404, nil, "POST", "/v1/orders", `{"number":"A-9","partner":"01arz3ndektsv4rrffq69g5fav","total":1}`, partner)
	})
	t.Run("an update changes what may be changed", func(t *testing.T) {
		var o orderRow
		s.want(200, &o, "PATCH", "/v1/orders/"+first.ID, `{"status":"open","total":"13.00"}`, partner)
		if o.Status != "open" || o.Total != "13.00" || !o.UpdatedAt.After(first.UpdatedAt) || o.CreatedAt != first.CreatedAt {
			t.Errorf("%+v", o)
		}
		s.want(400, nil, "PATCH", "/v1/orders/"+first.ID, `{"total":"-1.00"}`, partner)
		s.want(400, nil, "PATCH", "/v1/orders/"+first.ID, `{"status":"lost"}`, partner)
		for _, nothing := range []string{``, `{}`, `{"number":"B","id":"b"}`} {
			if p := s.want(400, nil, "PATCH", "/v1/orders/"+first.ID, nothing, partner).problem(t); !strings.Contains(p.Detail, "nothing to change") {
				t.Errorf("%s: %+v", nothing, p)
			}
		}
		s.want(400, nil, "PATCH", "/v1/orders/"+first.ID, `{`, partner)
		s.want(404, nil, "PATCH", "/v1/orders/01arz3ndektsv4rrffq69g5fav", `{"status":"open"}`, partner)
		// The grant's where holds for the new row too, and a policy looks at both.
		s.want(403, nil, "PATCH", "/v1/orders/"+second.ID, `{"status":"cancelled"}`, partner)
		s.want(200, nil, "PATCH", "/v1/orders/"+second.ID, `{"status":"shipped"}`, partner)
		s.want(200, nil, "PATCH", "/v1/orders/"+second.ID, `{"meta":{"late":true}}`, partner)
		if p := s.want(403, nil, "PATCH", "/v1/orders/"+second.ID, `{"total":"1.00"}`, partner).problem(t); p.Code != "forbidden" {
			t.Errorf("%+v", p)
		}
	})
	t.Run("a signed webhook settles under the grants of its scope", func(t *testing.T) {
		body := `{"type":"payment.settled","order":"A-1","ref":"pay_1"}`
		for _, want := range []string{`{"settled":1}`, `{"settled":0}`} {
			if got := s.want(200, nil, "POST", "/hooks/payments", body, "X-Signature: "+signature("demo-signing-secret", body)); got.body != want {
				t.Errorf("%s, want %s", got.body, want)
			}
		}
		const secret = "demo-signing-secret"
		for _, row := range []struct {
			status int
			body   string
			header string
		}{
			{400, body, ""},
			{401, body, signature("another", body)},
			{401, body + " ", signature(secret, body)},
			{401, body, strings.Replace(signature(secret, body), "sha256", "sha1", 1)},
			{401, body, signature(secret, body)[:70]},
			{401, body, "sha256="},
			{401, body, "sha256=zz"},
			{400, "Hello, World!", signature(secret, "Hello, World!")}, // signed, but no JSON
			{400, `{"type":"payment.settled"}`, signature(secret, `{"type":"payment.settled"}`)},
			{200, `{"type":"payment.failed","order":"A-2"}`, signature(secret, `{"type":"payment.failed","order":"A-2"}`)},
		} {
			headers := []string{}
			if row.header != "" {
				headers = append(headers, "X-Signature: "+row.header)
			}
			if got := s.want(row.status, nil, "POST", "/hooks/payments", row.body, headers...); row.status == 200 && got.body != `{"settled":0}` {
				t.Errorf("%s: %s", row.body, got.body)
			}
		}
		var o orderRow
		if s.want(200, &o, "GET", "/v1/orders/"+first.ID, "", partner); o.Status != "paid" || o.PaymentRef == nil || *o.PaymentRef != "pay_1" {
			t.Errorf("%+v", o)
		}
	})
	t.Run("webhooks that the schema knows are checked before the handler", func(t *testing.T) {
		paid, shipped := place("A-4", "1"), place("A-5", "2")
		stamp := fmt.Sprint(time.Now().Unix())
		event := `{"type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","metadata":{"order":"A-4"}}}}`
		stripe := func(secret string) string {
			return "Stripe-Signature: t=" + stamp + ",v1=" + hex.EncodeToString(macOf([]byte(secret), stamp, ".", event))
		}
		s.want(401, nil, "POST", "/hooks/stripe", event, stripe("another"))
		if got := s.want(200, nil, "POST", "/hooks/stripe", event, stripe("whsec_demo")); got.body != `{"settled":1}` {
			t.Errorf("%s", got.body)
		}
		s.want(204, nil, "POST", "/hooks/stripe", event, stripe("whsec_demo"))

		event = `{"type":"order.shipped","timestamp":"2026-01-02T03:04:05Z","data":{"number":"A-5"}}`
		erp := func(key, id string) []string {
			return []string{"Webhook-Id: " + id, "Webhook-Timestamp: " + stamp,
				"Webhook-Signature: v1," + base64.StdEncoding.EncodeToString(macOf([]byte(key), id, ".", stamp, ".", event))}
		}
		s.want(400, nil, "POST", "/hooks/erp", event)
		s.want(401, nil, "POST", "/hooks/erp", event, erp("another", "msg_1")...)
		if got := s.want(200, nil, "POST", "/hooks/erp", event, erp("demo-warehouse-secret", "msg_1")...); got.body != `{"shipped":1}` {
			t.Errorf("%s", got.body)
		}
		s.want(204, nil, "POST", "/hooks/erp", event, erp("demo-warehouse-secret", "msg_1")...)
		for id, status := range map[string]string{paid.ID: "paid", shipped.ID: "shipped"} {
			var o orderRow
			if s.want(200, &o, "GET", "/v1/orders/"+id, "", partner); o.Status != status {
				t.Errorf("%s is %s, want %s", o.Number, o.Status, status)
			}
		}
	})
	t.Run("what a policy keeps is not deleted", func(t *testing.T) {
		s.want(403, nil, "DELETE", "/v1/orders/"+first.ID, "", ops)
		s.want(404, nil, "DELETE", "/v1/orders/01arz3ndektsv4rrffq69g5fav", "", ops)
		third := place("A-3", `"1.00"`)
		s.want(204, nil, "DELETE", "/v1/orders/"+third.ID, "", ops)
		s.want(404, nil, "GET", "/v1/orders/"+third.ID, "", partner)
	})
	t.Run("sessions see what their role may", func(t *testing.T) {
		for name, who := range map[string]string{"admin": admin, "staff": staff, "ops": ops} {
			if got := s.want(200, nil, "GET", "/v1/partners/acme", "", who); fields(t, got.body) != "id code name active" {
				t.Errorf("%s sees of a partner %s", name, got.body)
			}
		}
		s.want(403, nil, "GET", "/v1/partners/acme", "", cookie("cy"))
		s.want(404, nil, "GET", "/v1/partners/nobody", "", admin)
		if got := s.want(200, nil, "GET", "/account/me", "", admin); got.body != `{"userId":"ada","roles":["admin"],"user":null}` {
			t.Errorf("me: %s", got.body)
		}
		a.write("users.jsonl", `{"id":"bo","email":"bo@example.com","name":"Bo"}`)
		a.must("data", "import", "User", "users.jsonl")
		if got := s.want(200, nil, "GET", "/account/me", "", staff); got.body != `{"userId":"bo","roles":["staff"],"user":{"id":"bo","email":"bo@example.com","name":"Bo"}}` {
			t.Errorf("me: %s", got.body)
		}
		var made apiKey
		s.want(200, &made, "POST", "/_call/createPartnerKey", `{"scope":"orders_read","name":"mine"}`, admin)
		if p := s.want(400, nil, "POST", "/_call/createPartnerKey", `{"name":""}`, admin).problem(t); p.Code != "invalid_input" {
			t.Errorf("a key of no scope: %+v", p)
		}
		for _, wrong := range []string{`"orders_read","expiresIn":-1`, `"none"`} {
			s.want(400, nil, "POST", "/_call/createPartnerKey", `{"name":"x","scope":`+wrong+`}`, admin)
		}
		s.want(403, nil, "POST", "/_call/createPartnerKey", `{"name":"x","scope":"ops_admin"}`, admin)
		s.want(403, nil, "POST", "/_call/createPartnerKey", `{"name":"x","scope":"orders_read"}`, staff)
		s.want(200, nil, "GET", "/v1/orders", "", "X-API-Key: "+made.Token)
		var keys []apiKey
		s.want(200, &keys, "POST", "/_call/listPartnerKeys", `{"scope":"orders_read"}`, admin)
		if len(keys) != 2 || keys[1].ID != made.ID || keys[1].Token != "" {
			t.Errorf("the keys: %+v", keys)
		}
		old := made.Token
		s.want(200, &made, "POST", "/_call/rotatePartnerKey", fmt.Sprintf(`{"id":%q}`, made.ID), admin)
		s.want(200, nil, "GET", "/v1/orders", "", "X-API-Key: "+old)
		s.want(200, &made, "POST", "/_call/rotatePartnerKey", fmt.Sprintf(`{"id":%q,"gracePeriod":0}`, made.ID), admin)
		s.want(401, nil, "GET", "/v1/orders", "", "X-API-Key: "+old)
		s.want(404, nil, "POST", "/_call/rotatePartnerKey", `{"id":"key_01arz3ndektsv4rrffq69g5fav"}`, admin)
		s.want(200, nil, "POST", "/_call/revokePartnerKey", fmt.Sprintf(`{"id":%q}`, made.ID), admin)
		s.want(401, nil, "GET", "/v1/orders", "", "X-API-Key: "+made.Token)
	})
	s.stop()

	s = a.serve()
	var o orderRow
	if s.want(200, &o, "GET", "/v1/orders/"+first.ID, "", partner); o.Status != "paid" || o.Total != "13.00" {
		t.Errorf("after a restart: %+v", o)
	}
}

func TestTheInboxExampleKeepsASignedEventOnce(t *testing.T) {
	t.Parallel()
	a := exampleApp(t, "inbox")
	s := a.serve()
	reader := "X-API-Key: " + a.token("events_read")
	sign := func(body string) string { return "X-Signature: " + signature("demo-signing-secret", body) }
	event := `{"id":"evt_1","type":"paid","data":{"n":[1.50]}}`
	for range 2 {
		s.want(204, nil, "POST", "/hooks/events", event, sign(event))
	}
	s.want(401, nil, "POST", "/hooks/events", event+" ", sign(event))
	s.want(400, nil, "POST", "/hooks/events", event)
	long := strings.Replace(event, "evt_1", strings.Repeat("x", 65), 1)
	s.want(400, nil, "POST", "/hooks/events", long, sign(long))
	var page struct {
		Rows       []struct{ ID, Delivery, Type string }
		NextCursor *string
	}
	for path, n := range map[string]int{"/v1/events": 1, "/v1/events?type=paid": 1, "/v1/events?type=lost": 0} {
		if s.want(200, &page, "GET", path, "", reader); len(page.Rows) != n || page.NextCursor != nil {
			t.Errorf("%s: %+v, want %d rows", path, page, n)
		}
	}
	s.want(200, &page, "GET", "/v1/events", "", reader)
	if got := s.want(200, nil, "GET", "/v1/events/"+page.Rows[0].ID, "", reader); !strings.Contains(got.body, `"payload":{"n":[1.50]}`) || page.Rows[0].Delivery != "evt_1" {
		t.Errorf("%s of %+v", got.body, page)
	}
	s.want(400, nil, "GET", "/v1/events?cursor=forged", "", reader)
	s.want(404, nil, "GET", "/v1/events/01arz3ndektsv4rrffq69g5fav", "", reader)
}

func TestPagesOfOrdersAreWholeAndBelongToTheirCaller(t *testing.T) {
	t.Parallel()
	a := exampleApp(t, "orders")
	s := a.serve()
	ops, partner, reader := "X-API-Key: "+a.token("ops_admin"), "X-API-Key: "+a.token("partner_sync"), "X-API-Key: "+a.token("orders_read")
	var acme struct{ ID string }
	s.want(201, &acme, "POST", "/v1/partners", `{"code":"acme","name":"Acme"}`, ops)
	for i := range 120 {
		s.want(201, nil, "POST", "/v1/orders", fmt.Sprintf(`{"number":"N-%d","partner":%q,"total":%d}`, i, acme.ID, i), partner)
	}
	seen, sizes, path := map[string]bool{}, []int{}, "/v1/orders"
	for {
		var page orderPage
		s.want(200, &page, "GET", path, "", reader)
		sizes = append(sizes, len(page.Rows))
		for _, raw := range page.Rows {
			var o orderRow
			if err := json.Unmarshal(raw, &o); err != nil || seen[o.Number] {
				t.Fatalf("%s: %v, twice %v", raw, err, seen[o.Number])
			}
			seen[o.Number] = true
		}
		if page.NextCursor == nil {
			break
		}
		path = "/v1/orders?cursor=" + *page.NextCursor
		s.want(400, nil, "GET", path, "", partner) // another key's cursor
		s.want(400, nil, "GET", path+"&status=open", "", reader)
	}
	if fmt.Sprint(sizes) != "[50 50 20]" || len(seen) != 120 {
		t.Errorf("pages of %d rows, %d orders", sizes, len(seen))
	}
}

func TestTheTrackerExampleKeepsItsTenantsApart(t *testing.T) {
	t.Parallel()
	a := exampleApp(t, "tracker")
	s := a.serve()
	type org struct{ Org, User, owner, member string }
	found := func(slug string) org {
		t.Helper()
		var o org
		signedUp := s.want(201, &o, "POST", "/signup", fmt.Sprintf(`{"slug":%q,"org":"Org %s","email":"%s@example.com","name":"Owner"}`, slug, slug, slug))
		o.owner = "Cookie: " + first(signedUp.cookieOf(t))
		o.member = "Cookie: " + a.session("member-of-"+slug, "--tenant", o.Org, "--role", "member").Cookie
		return o
	}
	red, blue := found("red"), found("blue")

	t.Run("a signup is whole or nothing", func(t *testing.T) {
		if got := s.want(409, nil, "POST", "/signup", `{"slug":"red","org":"Again","email":"new@example.com","name":"N"}`); got.header.Get("Set-Cookie") != "" {
			t.Error("a signup that failed signs in")
		}
		s.want(409, nil, "POST", "/signup", `{"slug":"green","org":"Green","email":"red@example.com","name":"N"}`)
		s.want(201, nil, "POST", "/signup", `{"slug":"green","org":"Green","email":"green@example.com","name":"N"}`)
	})

	var key apiKey
	s.want(200, &key, "POST", "/_call/createKey", `{"scope":"tasks_write","name":"red writes"}`, red.owner)
	writer := "X-API-Key: " + key.Token
	s.want(200, &key, "POST", "/_call/createKey", `{"scope":"tasks_read","name":"blue reads"}`, blue.owner)
	blueReader := "X-API-Key: " + key.Token
	s.want(200, &key, "POST", "/_call/createKey", `{"scope":"tasks_write","name":"blue writes"}`, blue.owner)
	blueWriter := "X-API-Key: " + key.Token

	var open, private struct{ ID, Owner string }
	s.want(201, &open, "POST", "/api/projects", `{"key":"RED","name":"Open"}`, red.owner)
	s.want(201, &private, "POST", "/api/projects", `{"key":"SEC","name":"Private","private":true}`, red.owner)
	s.want(409, nil, "POST", "/api/projects", `{"key":"RED","name":"Twice"}`, red.owner)
	s.want(201, nil, "POST", "/api/projects", `{"key":"RED","name":"Same key, other org"}`, blue.owner)
	if open.Owner != red.User {
		t.Errorf("the project belongs to %q, want %q", open.Owner, red.User)
	}

	var task struct{ ID string }
	got := s.want(201, &task, "POST", "/api/v1/tasks", fmt.Sprintf(`{"project":%q,"title":"Paint"}`, open.ID), writer)
	if names := fields(t, got.body); strings.Contains(names, "internalCost") || !strings.Contains(got.body, `"org":"`+red.Org+`"`) {
		t.Errorf("a new task: %s", got.body)
	}

	t.Run("another tenant's rows are not there", func(t *testing.T) {
		for _, row := range []struct{ method, path, body, who string }{
			{"GET", "/api/projects/" + open.ID, "", blue.owner},
			{"GET", "/api/projects/" + open.ID + "/tasks", "", blue.owner},
			{"GET", "/api/v1/tasks/" + task.ID, "", blueReader},
			{"PATCH", "/api/v1/tasks/" + task.ID, `{"state":"done"}`, blueWriter},
			{"POST", "/api/v1/tasks", fmt.Sprintf(`{"project":%q,"title":"planted"}`, open.ID), blueWriter},
		} {
			absent := strings.NewReplacer(open.ID, "01arz3ndektsv4rrffq69g5fav", task.ID, "01arz3ndektsv4rrffq69g5fav")
			there := s.want(404, nil, row.method, row.path, row.body, row.who).problem(t)
			nowhere := s.want(404, nil, row.method, absent.Replace(row.path), absent.Replace(row.body), row.who).problem(t)
			if there.Code != nowhere.Code || there.Detail != nowhere.Detail {
				t.Errorf("%s %s: %q, an absent one %q", row.method, row.path, there.Detail, nowhere.Detail)
			}
		}
		var page orderPage
		if s.want(200, &page, "GET", "/api/v1/tasks?project="+open.ID, "", blueReader); len(page.Rows) != 0 {
			t.Errorf("blue lists red's tasks: %s", page.Rows)
		}
		if s.want(200, &page, "GET", "/api/projects", "", blue.owner); len(page.Rows) != 1 {
			t.Errorf("blue lists %s", page.Rows)
		}
		var keys struct{ Keys []apiKey }
		if s.want(200, &keys, "POST", "/_call/listKeys", "", red.owner); len(keys.Keys) != 1 {
			t.Errorf("red lists keys %v", keys.Keys)
		}
	})
	t.Run("what is private is for its owner", func(t *testing.T) {
		s.want(200, nil, "GET", "/api/projects/"+private.ID, "", red.owner)
		s.want(404, nil, "GET", "/api/projects/"+private.ID, "", red.member)
		var page orderPage
		if s.want(200, &page, "GET", "/api/projects", "", red.member); len(page.Rows) != 1 {
			t.Errorf("a member lists %s", page.Rows)
		}
		s.want(201, nil, "POST", "/api/v1/tasks", fmt.Sprintf(`{"project":%q,"title":"Hidden"}`, private.ID), writer)
		s.want(404, nil, "GET", "/api/projects/"+private.ID+"/tasks", "", red.member)
	})
	t.Run("a change stays within what the caller may write", func(t *testing.T) {
		s.want(200, nil, "PATCH", "/api/v1/tasks/"+task.ID, `{"state":"doing","estimate":3}`, writer)
		s.want(400, nil, "PATCH", "/api/v1/tasks/"+task.ID, `{"estimate":1001}`, writer)
		s.want(404, nil, "PATCH", "/api/v1/tasks/"+task.ID, `{"assignee":"nobody"}`, writer)
		s.want(200, nil, "PATCH", "/api/v1/tasks/"+task.ID, fmt.Sprintf(`{"assignee":%q}`, red.User), writer)
		if got := s.want(200, nil, "PATCH", "/api/v1/tasks/"+task.ID, `{"assignee":null}`, writer); !strings.Contains(got.body, `"assignee":null`) {
			t.Errorf("%s", got.body)
		}
		s.want(403, nil, "POST", "/api/v1/tasks", fmt.Sprintf(`{"project":%q,"title":"x"}`, open.ID), blueReader)
	})
	t.Run("who signs out is out", func(t *testing.T) {
		in := "Cookie: " + a.session("ada", "--tenant", blue.Org, "--role", "admin").Cookie
		s.want(200, nil, "POST", "/_call/listKeys", "", in)
		s.want(403, nil, "POST", "/signout", "", in, "Sec-Fetch-Site: cross-site")
		s.want(204, nil, "POST", "/signout", "", in)
		s.want(401, nil, "POST", "/_call/listKeys", "", in)
	})
	t.Run("a key that only writes reads nothing", func(t *testing.T) {
		s.want(200, &key, "POST", "/_call/createKey", `{"scope":"ingest","name":"events"}`, red.owner)
		events := "X-API-Key: " + key.Token
		if got := s.want(201, nil, "POST", "/api/v1/events", `{"actor":"robot","action":"painted"}`, events); !strings.Contains(got.body, `"id":"`) {
			t.Errorf("%s", got.body)
		}
		s.want(403, nil, "GET", "/api/v1/tasks", "", events)
		s.want(403, nil, "POST", "/_call/createKey", `{"scope":"signup","name":"x"}`, red.owner)
		s.want(403, nil, "POST", "/_call/createKey", `{"scope":"ingest","name":"x"}`, red.member)
	})
}

const rowsSchema = `
app rows
entity Counter {
  id: id
  name: string(1..40) @unique
  n: int = 0 @max(1000000)
  secret: text? @hidden
}
entity Closed { id: id }
apiKeys {
  scopes: {
    worker: @system("worker") {
      @grant read, write, delete on Counter
      @issue when auth.scope == "worker"
    },
    reader: @system("reader") { @grant read on Counter where n < 1000 },
    minted: @system("minted") {
      @grant read on Counter
      @issue when auth.scope == "worker"
    }
  }
}
routes("/", auth: apiKey(worker), rateLimit: none) {
  POST /increment/:name -> increment
  POST /order -> order
  POST /transfer -> transfer
  POST /uncaught -> uncaught (auth: apiKey(worker, reader))
}
`

func rowsApp(t *testing.T, toml string) *app {
	t.Helper()
	a := newApp(t, rowsSchema, toml)
	a.write("build/rows.wasm", goModule(t, "handlers/rows"))
	return a
}

func TestErrorsThatAHandlerDoesNotCatchBecomeAnswers(t *testing.T) {
	t.Parallel()
	a := rowsApp(t, "[sandbox]\nstore_operations = 50\n")
	s := a.serve()
	worker, reader := "X-API-Key: "+a.token("worker"), "X-API-Key: "+a.token("reader")
	s.want(201, nil, "POST", "/uncaught?op=insert&entity=Counter", `{"name":"a"}`, worker)
	s.want(201, nil, "POST", "/uncaught?op=insert&entity=Counter", `{"name":"big","n":5000}`, worker)
	inLog := map[string]bool{} // by request id
	for _, row := range []struct {
		query, body, who string
		status           int
		code             string
	}{
		{"op=get&id=01arz3ndektsv4rrffq69g5fav", "", worker, 404, "not_found"},
		{"op=get&id=%27", "", worker, 404, "not_found"},
		{"op=insert&entity=Counter", `{"name":"a"}`, worker, 409, "conflict"},
		{"op=insert&entity=Counter", `{"name":"b"}`, reader, 403, "forbidden"},
		{"op=insert&entity=Closed", `{}`, worker, 403, "forbidden"},
		{"op=insert&entity=Count", `{"name":"b"}`, worker, 500, "handler_failed"},
		{"op=insert&entity=Counter", `{"name":"b","id":"01arz3ndektsv4rrffq69g5fav"}`, worker, 500, "handler_failed"},
		{"op=insert&entity=Counter", `{"name":"b","secret":"x"}`, worker, 500, "handler_failed"},
		{"op=insert&entity=Counter", `{"name":"b","n":1000001}`, worker, 500, "handler_failed"},
		{"op=insert&entity=Counter", `{"name":"b","name":"c"}`, worker, 500, "handler_failed"},
		{"op=update&name=a", `{"nothing":1}`, worker, 500, "handler_failed"},
		{"op=remove&name=a", ``, reader, 403, "forbidden"},
		{"op=spend", ``, worker, 500, "handler_failed"},
	} {
		p := s.want(row.status, nil, "POST", "/uncaught?"+row.query, row.body, row.who).problem(t)
		if p.Code != row.code {
			t.Errorf("%s %s: %s, want %s", row.query, row.body, p.Code, row.code)
		}
		inLog[p.RequestID] = row.status == 500
	}
	rows := func(name, who string) string {
		return s.want(200, nil, "POST", "/uncaught?name="+name, "", who).body
	}
	if got := rows("a", worker); !strings.Contains(got, `"name":"a"`) || !strings.Contains(got, `"name":"big"`) || strings.Contains(got, `"secret"`) {
		t.Errorf("a worker finds %s", got)
	}
	if got := rows("big", reader); got != "[]" {
		t.Errorf("a reader finds %s", got)
	}
	s.stop()
	for id, want := range inLog {
		if told := strings.Contains(s.stderr.String(), id); told != want {
			t.Errorf("request %s is in the log: %v, want %v", id, told, want)
		}
	}
}

// What one request writes, rows and keys alike, is there whole or not at all.
func TestRowsAndKeysOfARequestCommitTogether(t *testing.T) {
	t.Parallel()
	a := rowsApp(t, "")
	s := a.serve()
	worker := "X-API-Key: " + a.token("worker")
	for _, row := range []struct {
		end    string
		status int
		holds  bool
	}{{"", 204, true}, {"refuse", 400, false}, {"keep", 400, true}, {"error", 500, false}, {"exit", 500, false}, {"conflict", 409, false}} {
		name := "order-" + row.end
		s.want(row.status, nil, "POST", "/order?end="+row.end+"&name="+name, "", worker)
		counters := strings.Count(s.want(200, nil, "POST", "/uncaught?name="+name+"%201", "", worker).body, `"id"`) +
			strings.Count(s.want(200, nil, "POST", "/uncaught?name="+name+"%202", "", worker).body, `"id"`)
		var keys []apiKey
		if err := json.Unmarshal([]byte(a.must("api-keys", "list", "--scope", "minted", "--json")), &keys); err != nil {
			t.Fatal(err)
		}
		minted := 0
		for _, k := range keys {
			if k.Name == name {
				minted++
			}
		}
		if counters != 2*b2i(row.holds) || minted != b2i(row.holds) {
			t.Errorf("end %q: %d rows and %d keys are there", row.end, counters, minted)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Every increment that was answered is counted once, and has its key; one that
// met too many others is 409 and did nothing.
func TestConflictingRequestsOverRowsAndKeysHappenOnce(t *testing.T) {
	t.Parallel()
	a := rowsApp(t, "")
	s := a.serve()
	worker := "X-API-Key: " + a.token("worker")
	s.want(201, nil, "POST", "/uncaught?op=insert&entity=Counter", `{"name":"c"}`, worker)
	var done, refused atomic.Int64
	seen := make([]atomic.Int64, 1000)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 10 {
				got, err := s.try("POST", "/increment/c", "", worker)
				switch {
				case err != nil:
					t.Error(err)
				case got.status == 200:
					done.Add(1)
					var n int
					if err := json.Unmarshal([]byte(got.body), &n); err != nil || n < 1 || n >= len(seen) {
						t.Errorf("answered %q", got.body)
						continue
					}
					seen[n].Add(1)
				case got.status == 409:
					refused.Add(1)
				default:
					t.Errorf("%d %s", got.status, got.body)
				}
			}
		})
	}
	callers.Wait()
	n := done.Load()
	if n == 0 || n+refused.Load() != 80 {
		t.Fatalf("%d done, %d refused", n, refused.Load())
	}
	for i := range seen {
		if want := int64(b2i(i >= 1 && int64(i) <= n)); seen[i].Load() != want {
			t.Errorf("the value %d was answered %d times, want %d", i, seen[i].Load(), want)
		}
	}
	var counters []struct{ N int64 }
	s.want(200, &counters, "POST", "/uncaught?name=c", "", worker)
	var keys []apiKey
	if err := json.Unmarshal([]byte(a.must("api-keys", "list", "--scope", "minted", "--json")), &keys); err != nil {
		t.Fatal(err)
	}
	if len(counters) != 1 || counters[0].N != n || int64(len(keys)) != n {
		t.Errorf("%d increments were answered, the counter is %v and there are %d keys", n, counters, len(keys))
	}
}

// Money neither appears nor vanishes, whoever transfers what at the same time,
// and no account goes below zero.
func TestTransfersKeepTheSum(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	a := rowsApp(t, "")
	s := a.serve()
	worker := "X-API-Key: " + a.token("worker")
	const accounts = 4
	for i := range accounts {
		s.want(201, nil, "POST", "/uncaught?op=insert&entity=Counter", fmt.Sprintf(`{"name":"a%d","n":100}`, i), worker)
	}
	var done atomic.Int64
	var callers sync.WaitGroup
	for c := range 6 {
		callers.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(c)))
			for range 20 {
				from := random.IntN(accounts)
				to := (from + 1 + random.IntN(accounts-1)) % accounts
				got, err := s.try("POST", fmt.Sprintf("/transfer?from=a%d&to=a%d&n=%d", from, to, random.IntN(80)), "", worker)
				switch {
				case err != nil || got.status != 204 && got.status != 409 && got.status != 422:
					t.Errorf("%d %s %v", got.status, got.body, err)
				case got.status == 204:
					done.Add(1)
				}
			}
		})
	}
	callers.Wait()
	sum := 0
	for i := range accounts {
		var rows []struct{ N int }
		s.want(200, &rows, "POST", fmt.Sprintf("/uncaught?name=a%d", i), "", worker)
		if len(rows) != 1 || rows[0].N < 0 {
			t.Fatalf("account %d: %v", i, rows)
		}
		sum += rows[0].N
	}
	if sum != accounts*100 || done.Load() == 0 {
		t.Errorf("after %d transfers the sum is %d, want %d", done.Load(), sum, accounts*100)
	}
}

// evolving is a schema over rows; each step of the test changes it.
const evolving = `
app evolving
enum Colour { red, green, blue }
entity Thing {
  id: id
  name: string(1..40)
  colour: Colour = red
  size: int?
}
apiKeys { scopes: { worker: @system("worker") { @grant read, write, delete on Thing } } }
routes("/", auth: apiKey(worker), rateLimit: none) { POST /op -> op }
`

func TestASchemaChangesOverLiveRowsOrIsRefused(t *testing.T) {
	a := newApp(t, evolving, "", "echo")
	s := a.serve()
	worker := "X-API-Key: " + a.token("worker")
	op := func(name, args string) string {
		t.Helper()
		return s.want(200, nil, "POST", "/op", args, worker, "X-Op: "+name).body
	}
	for _, values := range []string{`{"name":"a","colour":"green","size":1}`, `{"name":"b"}`, `{"name":"b","colour":"red"}`} {
		op("insert", `{"into":"Thing","values":`+values+`}`)
	}
	reload := func(schema, says string) string {
		t.Helper()
		a.write("app.schema", schema)
		before := len(s.stderr.String())
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(patient); !strings.Contains(s.stderr.String()[before:], says); s.get("/none", "") {
			if time.Now().After(end) {
				t.Fatalf("no %q in the log:\n%s", says, s.stderr.String()[before:])
			}
		}
		return s.stderr.String()[before:]
	}
	replaced := func(from, to string) string {
		t.Helper()
		changed := strings.Replace(evolving, from, to, 1)
		if changed == evolving {
			t.Fatalf("%q is not in the schema", from)
		}
		return changed
	}
	count := func() string { return op("count", `{"from":"Thing"}`) }

	for code, schema := range map[string]string{
		"E601": replaced("size: int?", "size: string?"),
		"E602": replaced("size: int?", "size: int?\n  weight: int"),
		"E603": replaced("name: string(1..40)", "name: string(1..40) @unique"),
		"E605": replaced("red, green, blue", "red, blue"),
		"E604": strings.NewReplacer("app evolving", "app evolving\nauth { session cookie {} tenant: Org }\nentity Org { id: id }", "size: int?", "size: int?\n  org: Org @tenant").Replace(evolving),
	} {
		log := reload(schema, "stays")
		if !strings.Contains(log, code) {
			t.Errorf("%s: the log says\n%s", code, log)
		}
		if got := count(); got != `{"count":3}` {
			t.Errorf("after the refused %s the old schema counts %s", code, got)
		}
		for _, folder := range []string{"data"} {
			r := a.run("check", "--against", folder)
			if r.status != 3 || !strings.Contains(r.stdout, "app.schema") || !strings.Contains(r.stdout, "error["+code+"]") {
				t.Errorf("check --against for %s: exit status %d\n%s%s", code, r.status, r.stdout, r.stderr)
			}
		}
	}

	more := replaced("size: int?", "size: int? @index\n  weight: int = 7\n  note: text?")
	more = strings.Replace(more, "red, green, blue", "red, green, blue, black", 1)
	reload(more, `"msg":"reloaded"`)
	if got := op("query", `{"from":"Thing","select":["name","weight","note"],"where":[["size","=",1]]}`); got != `{"rows":[{"name":"a","weight":7,"note":null}],"nextCursor":null}` {
		t.Errorf("a row from before reads %s", got)
	}
	op("insert", `{"into":"Thing","values":{"name":"c","colour":"black","size":1,"weight":8}}`)
	if got := op("count", `{"from":"Thing","where":[["size","=",1]]}`); got != `{"count":2}` {
		t.Errorf("the new index finds %s", got)
	}
	if r := a.run("check", "--against", "data"); r.status != 0 {
		t.Errorf("check of what is served: exit status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	s.stop()

	a.write("app.schema", evolving) // without weight, note and black
	r := a.run("serve", "--listen", "127.0.0.1:0")
	if r.status != 3 || strings.Count(r.stderr, "error[E601]") != 2 {
		t.Errorf("a start with a schema that does not fit: exit status %d\n%s", r.status, r.stderr)
	}
	if r := a.run("check", "--against", "data"); r.status != 3 || !strings.Contains(r.stdout, "error[E601]") {
		t.Errorf("check without a server: exit status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	if r := a.run("check", "--against", "nowhere"); r.status != 4 {
		t.Errorf("check against no data: exit status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	a.write("app.schema", more)
	s = a.serve()
	if got := count(); got != `{"count":4}` {
		t.Errorf("after all that there are %s", got)
	}
}

func TestKeysOfAScopeThatIsGoneAreNamed(t *testing.T) {
	a := newApp(t, evolving, "", "echo")
	s := a.serve()
	key := a.key("create", "--scope", "worker", "--name", "left behind")
	a.write("app.schema", strings.ReplaceAll(evolving, "worker", "other"))
	r := a.run("check", "--against", "data")
	if r.status != 0 || !strings.Contains(r.stdout, "warning[W600]") || !strings.Contains(r.stdout, key.ID) {
		t.Errorf("exit status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	if r := a.run("check", "--strict", "--against", "data"); r.status != 3 {
		t.Errorf("strict: exit status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patient); !strings.Contains(s.stderr.String(), "W600"); s.get("/none", "") {
		if time.Now().After(end) {
			t.Fatalf("after a reload nothing tells of the key:\n%s", s.stderr.String())
		}
	}
	a.must("api-keys", "revoke", key.ID)
	if r := a.run("check", "--against", "data"); r.status != 0 || strings.Contains(r.stdout, "W600") {
		t.Errorf("after it was revoked: exit status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
}

// Requests go on while the schema changes under them: each is served by one
// release or by the next, none fails for it, and none is lost.
func TestRequestsGoOnWhileTheSchemaChanges(t *testing.T) {
	a := newApp(t, evolving, "", "echo")
	s := a.serve()
	worker := "X-API-Key: " + a.token("worker")
	stop := make(chan struct{})
	var made atomic.Int64
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got, err := s.try("POST", "/op", `{"into":"Thing","values":{"name":"n"}}`, worker, "X-Op: insert")
				if err != nil || got.status != 200 {
					t.Errorf("during a change: %d %s %v", got.status, got.body, err)
					return
				}
				made.Add(1)
			}
		})
	}
	for i := range 8 {
		added := ""
		for j := range i + 1 {
			added += fmt.Sprintf("\n  added%d: int = %d", j, j)
		}
		a.write("app.schema", strings.Replace(evolving, "size: int?", "size: int? @index"+added, 1))
		before := strings.Count(s.stderr.String(), `"msg":"reloaded"`)
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(patient); strings.Count(s.stderr.String(), `"msg":"reloaded"`) == before; s.get("/none", "") {
			if time.Now().After(end) {
				t.Fatalf("no reload in the log:\n%s", s.stderr.String())
			}
		}
	}
	close(stop)
	callers.Wait()
	if got := s.want(200, nil, "POST", "/op", `{"from":"Thing","where":[["added7","=",7]]}`, worker, "X-Op: count"); got.body != fmt.Sprintf(`{"count":%d}`, made.Load()) {
		t.Errorf("%d rows were made, %s are there", made.Load(), got.body)
	}
}

// An answer of 200 is on the disk: what a server that was killed had answered is
// there after the next start.
func TestRowsSurviveTheDeathOfTheServer(t *testing.T) {
	a := newApp(t, evolving, "", "echo")
	s := a.serve()
	worker := "X-API-Key: " + a.token("worker")
	var want bytes.Buffer
	for i := range 20 {
		got := s.want(200, nil, "POST", "/op", fmt.Sprintf(`{"into":"Thing","values":{"name":"n%02d","size":%d}}`, i, i), worker, "X-Op: insert")
		var made struct{ Rows []json.RawMessage }
		if err := json.Unmarshal([]byte(got.body), &made); err != nil || len(made.Rows) != 1 {
			t.Fatalf("%s: %v", got.body, err)
		}
		if i > 0 {
			want.WriteByte(',')
		}
		want.Write(made.Rows[0])
	}
	s.kill()
	s = a.serve()
	got := s.want(200, nil, "POST", "/op", `{"from":"Thing","orderBy":[["name","asc"]]}`, worker, "X-Op: query")
	if got.body != `{"rows":[`+want.String()+`],"nextCursor":null}` {
		t.Errorf("after the next start\n%s\nwant\n%s", got.body, want.String())
	}
}

// signature is what the payment provider sends with a body.
func signature(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
