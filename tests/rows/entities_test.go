package rows_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// fields returns the names of a JSON object's members, in order.
func fields(t testing.TB, object string) string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(object))
	var names []string
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		t.Fatalf("not a JSON object: %s", object)
	}
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			t.Fatalf("not a JSON object: %s", object)
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
	a := harness.ExampleApp(t, "orders")
	s := a.Serve()
	key := func(scope string) string { return "X-API-Key: " + a.Token(scope) }
	reader, partner, ops := key("orders_read"), key("partner_sync"), key("ops_admin")
	cookie := func(user string, args ...string) string { return "Cookie: " + a.Session(user, args...).Cookie }
	admin, staff := cookie("ada", "--role", "admin"), cookie("bo", "--role", "staff")

	var acme struct{ ID string }
	got := s.Want(201, &acme, "POST", "/v1/partners", `{"code":"acme","name":"Acme"}`, ops)
	if names := fields(t, got.Body); names != "id code name active" || got.Header.Get("Location") != "/v1/partners/acme" {
		t.Errorf("a new partner: %q at %q", names, got.Header.Get("Location"))
	}
	place := func(number, total string) orderRow {
		t.Helper()
		var o orderRow
		body := fmt.Sprintf(`{"number":%q,"partner":%q,"total":%s}`, number, acme.ID, total)
		got := s.Want(201, &o, "POST", "/v1/orders", body, partner)
		if got.Header.Get("Location") != "/v1/orders/"+o.ID || o.Status != "draft" || o.Currency != "EUR" || o.Partner != acme.ID || o.CreatedAt.IsZero() {
			t.Errorf("a new order: %s at %q", got.Body, got.Header.Get("Location"))
		}
		return o
	}
	first, second := place("A-1", `"12.50"`), place("A-2", `7`)
	if second.Total != "7.00" {
		t.Errorf("a total of 7 is kept as %q", second.Total)
	}

	t.Run("a grant limits the fields that are read", func(t *testing.T) {
		var page orderPage
		s.Want(200, &page, "GET", "/v1/orders", "", reader)
		if len(page.Rows) != 2 || fields(t, string(page.Rows[0])) != "id number status total currency createdAt" {
			t.Errorf("a reader sees %s", page.Rows)
		}
		s.Want(200, &page, "GET", "/v1/orders", "", partner)
		if len(page.Rows) != 2 || fields(t, string(page.Rows[0])) != "id number partner status total currency paymentRef meta createdAt updatedAt" {
			t.Errorf("a partner sees %s", page.Rows)
		}
		if got := s.Want(200, nil, "GET", "/v1/orders/"+first.ID, "", reader); fields(t, got.Body) != "id number status total currency createdAt" {
			t.Errorf("a reader sees %s", got.Body)
		}
		s.Want(200, &page, "GET", "/v1/orders?status=paid", "", reader)
		if len(page.Rows) != 0 || page.NextCursor != nil {
			t.Errorf("paid orders before any is: %s", page.Rows)
		}
		if p := s.Want(400, nil, "GET", "/v1/orders?status=lost", "", reader).Problem(t); !strings.Contains(p.Detail, "status") {
			t.Errorf("an unknown status: %+v", p)
		}
		s.Want(400, nil, "GET", "/v1/orders?cursor=forged", "", reader)
	})
	t.Run("input is checked before the handler", func(t *testing.T) {
		p := s.Want(400, nil, "POST", "/v1/orders", `{"number":"","total":"x","status":"paid"}`, partner).Problem(t)
		if p.Code != "invalid_input" {
			t.Errorf("%+v", p)
		}
		p = s.Want(400, nil, "POST", "/v1/orders", `{"number":"A-9","partner":"nosuch","total":1}`, partner).Problem(t)
		if len(p.Errors) != 1 || p.Errors[0].Field != "partner" {
			t.Errorf("an id that is not a ULID: %+v", p)
		}
	})
	t.Run("a duplicate of a unique field is a conflict", func(t *testing.T) {
		body := fmt.Sprintf(`{"number":"A-1","partner":%q,"total":1}`, acme.ID)
		p := s.Want(409, nil, "POST", "/v1/orders", body, partner).Problem(t)
		if p.Code != "conflict" || !strings.Contains(p.Detail, "number") || strings.Contains(p.Detail, first.ID) {
			t.Errorf("%+v", p)
		}
		s.Want(409, nil, "POST", "/v1/partners", `{"code":"acme","name":"Another"}`, ops)
	})
	t.Run("a relation must name an existing row", func(t *testing.T) {
		s.Want(404, nil, "POST", "/v1/orders", `{"number":"A-9","partner":"01arz3ndektsv4rrffq69g5fav","total":1}`, partner)
	})
	t.Run("an update changes only allowed fields", func(t *testing.T) {
		var o orderRow
		s.Want(200, &o, "PATCH", "/v1/orders/"+first.ID, `{"status":"open","total":"13.00"}`, partner)
		if o.Status != "open" || o.Total != "13.00" || !o.UpdatedAt.After(first.UpdatedAt) || o.CreatedAt != first.CreatedAt {
			t.Errorf("%+v", o)
		}
		s.Want(400, nil, "PATCH", "/v1/orders/"+first.ID, `{"total":"-1.00"}`, partner)
		s.Want(400, nil, "PATCH", "/v1/orders/"+first.ID, `{"status":"lost"}`, partner)
		for _, nothing := range []string{``, `{}`, `{"number":"B","id":"b"}`} {
			if p := s.Want(400, nil, "PATCH", "/v1/orders/"+first.ID, nothing, partner).Problem(t); !strings.Contains(p.Detail, "nothing to change") {
				t.Errorf("%s: %+v", nothing, p)
			}
		}
		s.Want(400, nil, "PATCH", "/v1/orders/"+first.ID, `{`, partner)
		s.Want(404, nil, "PATCH", "/v1/orders/01arz3ndektsv4rrffq69g5fav", `{"status":"open"}`, partner)
		// The grant's condition applies to the new row too, and a policy to both rows.
		s.Want(403, nil, "PATCH", "/v1/orders/"+second.ID, `{"status":"cancelled"}`, partner)
		s.Want(200, nil, "PATCH", "/v1/orders/"+second.ID, `{"status":"shipped"}`, partner)
		s.Want(200, nil, "PATCH", "/v1/orders/"+second.ID, `{"meta":{"late":true}}`, partner)
		if p := s.Want(403, nil, "PATCH", "/v1/orders/"+second.ID, `{"total":"1.00"}`, partner).Problem(t); p.Code != "forbidden" {
			t.Errorf("%+v", p)
		}
	})
	t.Run("a signed webhook settles under the grants of its scope", func(t *testing.T) {
		body := `{"type":"payment.settled","order":"A-1","ref":"pay_1"}`
		for _, want := range []string{`{"settled":1}`, `{"settled":0}`} {
			if got := s.Want(200, nil, "POST", "/hooks/payments", body, "X-Signature: "+harness.Signature("demo-signing-secret", body)); got.Body != want {
				t.Errorf("%s, want %s", got.Body, want)
			}
		}
		const secret = "demo-signing-secret"
		for _, row := range []struct {
			status int
			body   string
			header string
		}{
			{400, body, ""},
			{401, body, harness.Signature("another", body)},
			{401, body + " ", harness.Signature(secret, body)},
			{401, body, strings.Replace(harness.Signature(secret, body), "sha256", "sha1", 1)},
			{401, body, harness.Signature(secret, body)[:70]},
			{401, body, "sha256="},
			{401, body, "sha256=zz"},
			{400, "Hello, World!", harness.Signature(secret, "Hello, World!")}, // signed, but not JSON
			{400, `{"type":"payment.settled"}`, harness.Signature(secret, `{"type":"payment.settled"}`)},
			{200, `{"type":"payment.failed","order":"A-2"}`, harness.Signature(secret, `{"type":"payment.failed","order":"A-2"}`)},
		} {
			headers := []string{}
			if row.header != "" {
				headers = append(headers, "X-Signature: "+row.header)
			}
			if got := s.Want(row.status, nil, "POST", "/hooks/payments", row.body, headers...); row.status == 200 && got.Body != `{"settled":0}` {
				t.Errorf("%s: %s", row.body, got.Body)
			}
		}
		var o orderRow
		if s.Want(200, &o, "GET", "/v1/orders/"+first.ID, "", partner); o.Status != "paid" || o.PaymentRef == nil || *o.PaymentRef != "pay_1" {
			t.Errorf("%+v", o)
		}
	})
	t.Run("declared webhooks are checked before the handler", func(t *testing.T) {
		paid, shipped := place("A-4", "1"), place("A-5", "2")
		stamp := fmt.Sprint(time.Now().Unix())
		event := `{"type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","metadata":{"order":"A-4"}}}}`
		stripe := func(secret string) string {
			return "Stripe-Signature: t=" + stamp + ",v1=" + hex.EncodeToString(harness.MAC([]byte(secret), stamp, ".", event))
		}
		s.Want(401, nil, "POST", "/hooks/stripe", event, stripe("another"))
		if got := s.Want(200, nil, "POST", "/hooks/stripe", event, stripe("whsec_demo")); got.Body != `{"settled":1}` {
			t.Errorf("%s", got.Body)
		}
		s.Want(204, nil, "POST", "/hooks/stripe", event, stripe("whsec_demo"))

		event = `{"type":"order.shipped","timestamp":"2026-01-02T03:04:05Z","data":{"number":"A-5"}}`
		erp := func(key, id string) []string {
			return []string{"Webhook-Id: " + id, "Webhook-Timestamp: " + stamp,
				"Webhook-Signature: v1," + base64.StdEncoding.EncodeToString(harness.MAC([]byte(key), id, ".", stamp, ".", event))}
		}
		s.Want(400, nil, "POST", "/hooks/erp", event)
		s.Want(401, nil, "POST", "/hooks/erp", event, erp("another", "msg_1")...)
		if got := s.Want(200, nil, "POST", "/hooks/erp", event, erp("demo-warehouse-secret", "msg_1")...); got.Body != `{"shipped":1}` {
			t.Errorf("%s", got.Body)
		}
		s.Want(204, nil, "POST", "/hooks/erp", event, erp("demo-warehouse-secret", "msg_1")...)
		for id, status := range map[string]string{paid.ID: "paid", shipped.ID: "shipped"} {
			var o orderRow
			if s.Want(200, &o, "GET", "/v1/orders/"+id, "", partner); o.Status != status {
				t.Errorf("%s is %s, want %s", o.Number, o.Status, status)
			}
		}
	})
	t.Run("a policy prevents deletion", func(t *testing.T) {
		s.Want(403, nil, "DELETE", "/v1/orders/"+first.ID, "", ops)
		s.Want(404, nil, "DELETE", "/v1/orders/01arz3ndektsv4rrffq69g5fav", "", ops)
		third := place("A-3", `"1.00"`)
		s.Want(204, nil, "DELETE", "/v1/orders/"+third.ID, "", ops)
		s.Want(404, nil, "GET", "/v1/orders/"+third.ID, "", partner)
	})
	t.Run("sessions read what their role may read", func(t *testing.T) {
		for name, who := range map[string]string{"admin": admin, "staff": staff, "ops": ops} {
			if got := s.Want(200, nil, "GET", "/v1/partners/acme", "", who); fields(t, got.Body) != "id code name active" {
				t.Errorf("%s sees of a partner %s", name, got.Body)
			}
		}
		s.Want(403, nil, "GET", "/v1/partners/acme", "", cookie("cy"))
		s.Want(404, nil, "GET", "/v1/partners/nobody", "", admin)
		if got := s.Want(200, nil, "GET", "/account/me", "", admin); got.Body != `{"userId":"ada","roles":["admin"],"user":null}` {
			t.Errorf("me: %s", got.Body)
		}
		a.Write("users.jsonl", `{"id":"bo","email":"bo@example.com","name":"Bo"}`)
		a.Must("data", "import", "User", "users.jsonl")
		if got := s.Want(200, nil, "GET", "/account/me", "", staff); got.Body != `{"userId":"bo","roles":["staff"],"user":{"id":"bo","email":"bo@example.com","name":"Bo"}}` {
			t.Errorf("me: %s", got.Body)
		}
		var made harness.APIKey
		s.Want(200, &made, "POST", "/_call/createPartnerKey", `{"scope":"orders_read","name":"mine"}`, admin)
		if p := s.Want(400, nil, "POST", "/_call/createPartnerKey", `{"name":""}`, admin).Problem(t); p.Code != "invalid_input" {
			t.Errorf("a key without a scope: %+v", p)
		}
		for _, wrong := range []string{`"orders_read","expiresIn":-1`, `"none"`} {
			s.Want(400, nil, "POST", "/_call/createPartnerKey", `{"name":"x","scope":`+wrong+`}`, admin)
		}
		s.Want(403, nil, "POST", "/_call/createPartnerKey", `{"name":"x","scope":"ops_admin"}`, admin)
		s.Want(403, nil, "POST", "/_call/createPartnerKey", `{"name":"x","scope":"orders_read"}`, staff)
		s.Want(200, nil, "GET", "/v1/orders", "", "X-API-Key: "+made.Token)
		var keys []harness.APIKey
		s.Want(200, &keys, "POST", "/_call/listPartnerKeys", `{"scope":"orders_read"}`, admin)
		if len(keys) != 2 || keys[1].ID != made.ID || keys[1].Token != "" {
			t.Errorf("the keys: %+v", keys)
		}
		old := made.Token
		s.Want(200, &made, "POST", "/_call/rotatePartnerKey", fmt.Sprintf(`{"id":%q}`, made.ID), admin)
		s.Want(200, nil, "GET", "/v1/orders", "", "X-API-Key: "+old)
		s.Want(200, &made, "POST", "/_call/rotatePartnerKey", fmt.Sprintf(`{"id":%q,"gracePeriod":0}`, made.ID), admin)
		s.Want(401, nil, "GET", "/v1/orders", "", "X-API-Key: "+old)
		s.Want(404, nil, "POST", "/_call/rotatePartnerKey", `{"id":"key_01arz3ndektsv4rrffq69g5fav"}`, admin)
		s.Want(200, nil, "POST", "/_call/revokePartnerKey", fmt.Sprintf(`{"id":%q}`, made.ID), admin)
		s.Want(401, nil, "GET", "/v1/orders", "", "X-API-Key: "+made.Token)
	})
	s.Stop()

	s = a.Serve()
	var o orderRow
	if s.Want(200, &o, "GET", "/v1/orders/"+first.ID, "", partner); o.Status != "paid" || o.Total != "13.00" {
		t.Errorf("after a restart: %+v", o)
	}
}

func TestTheInboxExampleStoresASignedEventOnce(t *testing.T) {
	t.Parallel()
	a := harness.ExampleApp(t, "inbox")
	s := a.Serve()
	reader := "X-API-Key: " + a.Token("events_read")
	sign := func(body string) string { return "X-Signature: " + harness.Signature("demo-signing-secret", body) }
	event := `{"id":"evt_1","type":"paid","data":{"n":[1.50]}}`
	for range 2 {
		s.Want(204, nil, "POST", "/hooks/events", event, sign(event))
	}
	s.Want(401, nil, "POST", "/hooks/events", event+" ", sign(event))
	s.Want(400, nil, "POST", "/hooks/events", event)
	long := strings.Replace(event, "evt_1", strings.Repeat("x", 65), 1)
	s.Want(400, nil, "POST", "/hooks/events", long, sign(long))
	var page struct {
		Rows       []struct{ ID, Delivery, Type string }
		NextCursor *string
	}
	for path, n := range map[string]int{"/v1/events": 1, "/v1/events?type=paid": 1, "/v1/events?type=lost": 0} {
		if s.Want(200, &page, "GET", path, "", reader); len(page.Rows) != n || page.NextCursor != nil {
			t.Errorf("%s: %+v, want %d rows", path, page, n)
		}
	}
	s.Want(200, &page, "GET", "/v1/events", "", reader)
	if got := s.Want(200, nil, "GET", "/v1/events/"+page.Rows[0].ID, "", reader); !strings.Contains(got.Body, `"payload":{"n":[1.50]}`) || page.Rows[0].Delivery != "evt_1" {
		t.Errorf("%s of %+v", got.Body, page)
	}
	s.Want(400, nil, "GET", "/v1/events?cursor=forged", "", reader)
	s.Want(404, nil, "GET", "/v1/events/01arz3ndektsv4rrffq69g5fav", "", reader)
}

func TestPagesOfOrdersAreCompleteAndBoundToTheirCaller(t *testing.T) {
	t.Parallel()
	a := harness.ExampleApp(t, "orders")
	s := a.Serve()
	ops, partner, reader := "X-API-Key: "+a.Token("ops_admin"), "X-API-Key: "+a.Token("partner_sync"), "X-API-Key: "+a.Token("orders_read")
	var acme struct{ ID string }
	s.Want(201, &acme, "POST", "/v1/partners", `{"code":"acme","name":"Acme"}`, ops)
	for i := range 120 {
		s.Want(201, nil, "POST", "/v1/orders", fmt.Sprintf(`{"number":"N-%d","partner":%q,"total":%d}`, i, acme.ID, i), partner)
	}
	seen, sizes, path := map[string]bool{}, []int{}, "/v1/orders"
	for {
		var page orderPage
		s.Want(200, &page, "GET", path, "", reader)
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
		s.Want(400, nil, "GET", path, "", partner) // another key's cursor
		s.Want(400, nil, "GET", path+"&status=open", "", reader)
	}
	if fmt.Sprint(sizes) != "[50 50 20]" || len(seen) != 120 {
		t.Errorf("pages of %d rows, %d orders", sizes, len(seen))
	}
}

func TestTheTrackerExampleIsolatesTenants(t *testing.T) {
	t.Parallel()
	a := harness.ExampleApp(t, "tracker")
	s := a.Serve()
	type org struct{ Org, User, owner, member string }
	found := func(slug string) org {
		t.Helper()
		var o org
		signedUp := s.Want(201, &o, "POST", "/signup", fmt.Sprintf(`{"slug":%q,"org":"Org %s","email":"%s@example.com","name":"Owner"}`, slug, slug, slug))
		o.owner = "Cookie: " + signedUp.Cookie(t)
		o.member = "Cookie: " + a.Session("member-of-"+slug, "--tenant", o.Org, "--role", "member").Cookie
		return o
	}
	red, blue := found("red"), found("blue")

	t.Run("a signup is committed completely or not at all", func(t *testing.T) {
		if got := s.Want(409, nil, "POST", "/signup", `{"slug":"red","org":"Again","email":"new@example.com","name":"N"}`); got.Header.Get("Set-Cookie") != "" {
			t.Error("a signup that failed signs in")
		}
		s.Want(409, nil, "POST", "/signup", `{"slug":"green","org":"Green","email":"red@example.com","name":"N"}`)
		s.Want(201, nil, "POST", "/signup", `{"slug":"green","org":"Green","email":"green@example.com","name":"N"}`)
	})

	var key harness.APIKey
	s.Want(200, &key, "POST", "/_call/createKey", `{"scope":"tasks_write","name":"red writes"}`, red.owner)
	writer := "X-API-Key: " + key.Token
	s.Want(200, &key, "POST", "/_call/createKey", `{"scope":"tasks_read","name":"blue reads"}`, blue.owner)
	blueReader := "X-API-Key: " + key.Token
	s.Want(200, &key, "POST", "/_call/createKey", `{"scope":"tasks_write","name":"blue writes"}`, blue.owner)
	blueWriter := "X-API-Key: " + key.Token

	var open, private struct{ ID, Owner string }
	s.Want(201, &open, "POST", "/api/projects", `{"key":"RED","name":"Open"}`, red.owner)
	s.Want(201, &private, "POST", "/api/projects", `{"key":"SEC","name":"Private","private":true}`, red.owner)
	s.Want(409, nil, "POST", "/api/projects", `{"key":"RED","name":"Twice"}`, red.owner)
	s.Want(201, nil, "POST", "/api/projects", `{"key":"RED","name":"Same key, other org"}`, blue.owner)
	if open.Owner != red.User {
		t.Errorf("the project belongs to %q, want %q", open.Owner, red.User)
	}

	var task struct{ ID string }
	got := s.Want(201, &task, "POST", "/api/v1/tasks", fmt.Sprintf(`{"project":%q,"title":"Paint"}`, open.ID), writer)
	if names := fields(t, got.Body); strings.Contains(names, "internalCost") || !strings.Contains(got.Body, `"org":"`+red.Org+`"`) {
		t.Errorf("a new task: %s", got.Body)
	}

	t.Run("rows of another tenant are not found", func(t *testing.T) {
		for _, row := range []struct{ method, path, body, who string }{
			{"GET", "/api/projects/" + open.ID, "", blue.owner},
			{"GET", "/api/projects/" + open.ID + "/tasks", "", blue.owner},
			{"GET", "/api/v1/tasks/" + task.ID, "", blueReader},
			{"PATCH", "/api/v1/tasks/" + task.ID, `{"state":"done"}`, blueWriter},
			{"POST", "/api/v1/tasks", fmt.Sprintf(`{"project":%q,"title":"planted"}`, open.ID), blueWriter},
		} {
			absent := strings.NewReplacer(open.ID, "01arz3ndektsv4rrffq69g5fav", task.ID, "01arz3ndektsv4rrffq69g5fav")
			there := s.Want(404, nil, row.method, row.path, row.body, row.who).Problem(t)
			nowhere := s.Want(404, nil, row.method, absent.Replace(row.path), absent.Replace(row.body), row.who).Problem(t)
			if there.Code != nowhere.Code || there.Detail != nowhere.Detail {
				t.Errorf("%s %s: %q, an absent one %q", row.method, row.path, there.Detail, nowhere.Detail)
			}
		}
		var page orderPage
		if s.Want(200, &page, "GET", "/api/v1/tasks?project="+open.ID, "", blueReader); len(page.Rows) != 0 {
			t.Errorf("blue lists red's tasks: %s", page.Rows)
		}
		if s.Want(200, &page, "GET", "/api/projects", "", blue.owner); len(page.Rows) != 1 {
			t.Errorf("blue lists %s", page.Rows)
		}
		var keys struct{ Keys []harness.APIKey }
		if s.Want(200, &keys, "POST", "/_call/listKeys", "", red.owner); len(keys.Keys) != 1 {
			t.Errorf("red lists keys %v", keys.Keys)
		}
	})
	t.Run("private rows are visible only to their owner", func(t *testing.T) {
		s.Want(200, nil, "GET", "/api/projects/"+private.ID, "", red.owner)
		s.Want(404, nil, "GET", "/api/projects/"+private.ID, "", red.member)
		var page orderPage
		if s.Want(200, &page, "GET", "/api/projects", "", red.member); len(page.Rows) != 1 {
			t.Errorf("a member lists %s", page.Rows)
		}
		s.Want(201, nil, "POST", "/api/v1/tasks", fmt.Sprintf(`{"project":%q,"title":"Hidden"}`, private.ID), writer)
		s.Want(404, nil, "GET", "/api/projects/"+private.ID+"/tasks", "", red.member)
	})
	t.Run("a change is limited to what the caller may write", func(t *testing.T) {
		s.Want(200, nil, "PATCH", "/api/v1/tasks/"+task.ID, `{"state":"doing","estimate":3}`, writer)
		s.Want(400, nil, "PATCH", "/api/v1/tasks/"+task.ID, `{"estimate":1001}`, writer)
		s.Want(404, nil, "PATCH", "/api/v1/tasks/"+task.ID, `{"assignee":"nobody"}`, writer)
		s.Want(200, nil, "PATCH", "/api/v1/tasks/"+task.ID, fmt.Sprintf(`{"assignee":%q}`, red.User), writer)
		if got := s.Want(200, nil, "PATCH", "/api/v1/tasks/"+task.ID, `{"assignee":null}`, writer); !strings.Contains(got.Body, `"assignee":null`) {
			t.Errorf("%s", got.Body)
		}
		s.Want(403, nil, "POST", "/api/v1/tasks", fmt.Sprintf(`{"project":%q,"title":"x"}`, open.ID), blueReader)
	})
	t.Run("a signed-out session is invalid", func(t *testing.T) {
		in := "Cookie: " + a.Session("ada", "--tenant", blue.Org, "--role", "admin").Cookie
		s.Want(200, nil, "POST", "/_call/listKeys", "", in)
		s.Want(403, nil, "POST", "/signout", "", in, "Sec-Fetch-Site: cross-site")
		s.Want(204, nil, "POST", "/signout", "", in)
		s.Want(401, nil, "POST", "/_call/listKeys", "", in)
	})
	t.Run("a key that only writes reads nothing", func(t *testing.T) {
		s.Want(200, &key, "POST", "/_call/createKey", `{"scope":"ingest","name":"events"}`, red.owner)
		events := "X-API-Key: " + key.Token
		if got := s.Want(201, nil, "POST", "/api/v1/events", `{"actor":"robot","action":"painted"}`, events); !strings.Contains(got.Body, `"id":"`) {
			t.Errorf("%s", got.Body)
		}
		s.Want(403, nil, "GET", "/api/v1/tasks", "", events)
		s.Want(403, nil, "POST", "/_call/createKey", `{"scope":"signup","name":"x"}`, red.owner)
		s.Want(403, nil, "POST", "/_call/createKey", `{"scope":"ingest","name":"x"}`, red.member)
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
entity Place { id: id name: string(1..40) city: string(1..40) @@unique(name, city) }
entity Account {
  id: id
  name: string(1..40)
  plan: string = "free"
  locked: bool = false
  @@deny update when old.name != new.name
  @@deny update when new.plan == "pro"
  @@deny update when old.locked
}
apiKeys {
  scopes: {
    worker: @system("worker") {
      @grant read, write, delete on Counter, Place, Account
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

func rowsApp(t *testing.T, toml string) *harness.App {
	t.Helper()
	a := harness.NewApp(t, rowsSchema, toml)
	a.Write("build/rows.wasm", harness.GoModule(t, harness.Testdata("handlers/rows")))
	return a
}

func TestUncaughtErrorsBecomeResponses(t *testing.T) {
	t.Parallel()
	a := rowsApp(t, "[sandbox]\nstore_operations = 50\n")
	s := a.Serve()
	worker, reader := "X-API-Key: "+a.Token("worker"), "X-API-Key: "+a.Token("reader")
	s.Want(201, nil, "POST", "/uncaught?op=insert&entity=Counter", `{"name":"a"}`, worker)
	s.Want(201, nil, "POST", "/uncaught?op=insert&entity=Counter", `{"name":"big","n":5000}`, worker)
	s.Want(201, nil, "POST", "/uncaught?op=insert&entity=Place", `{"name":"a","city":"b"}`, worker)
	s.Want(201, nil, "POST", "/uncaught?op=insert&entity=Account", `[{"name":"a"},{"name":"a","locked":true}]`, worker)
	s.Want(200, nil, "POST", "/uncaught?op=update&entity=Account&name=a", `{"plan":"team"}`, worker)
	inLog := map[string]string{} // the level, by request id
	for _, row := range []struct {
		query, body, who string
		status           int
		code, field      string
	}{
		{"op=get&id=01arz3ndektsv4rrffq69g5fav", "", worker, 404, "not_found", ""},
		{"op=get&id=%27", "", worker, 404, "not_found", ""},
		{"op=first&name=x", "", worker, 404, "not_found", ""},
		{"op=insert&entity=Counter", `{"name":"a"}`, worker, 409, "conflict", "name"},
		{"op=insert&entity=Place", `{"name":"a","city":"b"}`, worker, 409, "conflict", "name city"},
		{"op=insert&entity=Counter", `{"name":"b"}`, reader, 403, "forbidden", ""},
		{"op=insert&entity=Closed", `{}`, worker, 403, "forbidden", ""},
		{"op=insert&entity=Count", `{"name":"b"}`, worker, 400, "invalid_input", "Count"},
		{"op=insert&entity=Counter", `{"name":"b","id":"01arz3ndektsv4rrffq69g5fav"}`, worker, 400, "invalid_input", "id"},
		{"op=insert&entity=Counter", `{"name":"b","secret":"x"}`, worker, 400, "invalid_input", "secret"},
		{"op=insert&entity=Counter", `{"name":"b","n":1000001}`, worker, 400, "invalid_input", "n"},
		{"op=insert&entity=Counter", `{"name":"b","name":"c"}`, worker, 400, "invalid_input", "name"},
		{"op=insert&entity=Counter", `{"n":1}`, worker, 400, "invalid_input", "name"},
		{"op=insert&entity=Counter", "[" + strings.Repeat(`{"name":"b"},`, 1000) + `{"name":"b"}]`, worker, 422, "limit", ""},
		{"op=update&name=a", `{"nothing":1}`, worker, 400, "invalid_input", "nothing"},
		{"op=order&sort=-nothing", ``, worker, 400, "invalid_input", "nothing"},
		{"op=order", ``, worker, 500, "handler_failed", ""},
		{"op=problem", ``, worker, 402, "no_credit", "n"},
		{"op=reserved", ``, worker, 500, "handler_failed", ""},
		{"op=remove&name=a", ``, reader, 403, "forbidden", ""},
		{"op=update&entity=Account&name=a", `{"plan":"pro"}`, worker, 403, "forbidden", ""}, // what the new row breaks
		{"op=update&entity=Account&name=a", `{"name":"b"}`, worker, 403, "forbidden", ""},
		{"op=update&entity=Account&name=b", `{"plan":"pro"}`, worker, 404, "not_found", ""},
		{"op=spend", ``, worker, 500, "handler_failed", ""},
	} {
		p := s.Want(row.status, nil, "POST", "/uncaught?"+row.query, row.body, row.who).Problem(t)
		if p.Code != row.code {
			t.Errorf("%s %s: %s, want %s", row.query, row.body, p.Code, row.code)
		}
		var wrong []string
		for _, e := range p.Errors {
			wrong = append(wrong, e.Field)
		}
		if got := strings.Join(wrong, " "); got != row.field {
			t.Errorf("%s %.100s: the fields %q, want %q", row.query, row.body, got, row.field)
		}
		if hidden := row.status == 404 || row.status == 409; hidden && (strings.Contains(p.Detail, "Counter") || strings.Contains(p.Detail, "Place") || strings.Contains(p.Detail, "Account")) {
			t.Errorf("%s: the client learns of an entity: %q", row.query, p.Detail)
		}
		level := map[int]string{400: "WARN", 422: "WARN", 500: "ERROR"}[row.status] // the SDK reports what it cannot answer
		inLog[p.RequestID] = level
	}
	problem := s.Want(402, nil, "POST", "/uncaught?op=problem", "", worker).Body
	if !strings.HasPrefix(problem, `{"type":"about:blank","title":"Payment Required","status":402,"detail":"buy more","instance":"urn:ulid:`) || !strings.HasSuffix(problem, `"balance":3,"errors":[{"field":"n","message":"too much"}]}`) {
		t.Errorf("a problem of the handler is %s", problem)
	}
	rows := func(name, who string) string {
		return s.Want(200, nil, "POST", "/uncaught?name="+name, "", who).Body
	}
	if got := rows("a", worker); !strings.Contains(got, `"name":"a"`) || !strings.Contains(got, `"name":"big"`) || strings.Contains(got, `"secret"`) {
		t.Errorf("a worker finds %s", got)
	}
	if got := rows("big", reader); got != "[]" {
		t.Errorf("a reader finds %s", got)
	}
	s.Stop()
	for id, want := range inLog {
		level := ""
		for line := range strings.Lines(s.Stderr.String()) {
			var record struct{ Level, RequestID string }
			if json.Unmarshal([]byte(line), &record) == nil && record.RequestID == id {
				level = record.Level
			}
		}
		if level != want {
			t.Errorf("request %s is in the log as %q, want %q", id, level, want)
		}
	}
}

// The rows and keys that one request writes are committed together or not at all.
func TestRowsAndKeysOfARequestCommitTogether(t *testing.T) {
	t.Parallel()
	a := rowsApp(t, "")
	s := a.Serve()
	worker := "X-API-Key: " + a.Token("worker")
	for _, row := range []struct {
		end    string
		status int
		holds  bool
	}{{"", 204, true}, {"refuse", 400, false}, {"keep", 400, true}, {"error", 500, false}, {"exit", 500, false}, {"conflict", 409, false}} {
		name := "order-" + row.end
		s.Want(row.status, nil, "POST", "/order?end="+row.end+"&name="+name, "", worker)
		counters := strings.Count(s.Want(200, nil, "POST", "/uncaught?name="+name+"%201", "", worker).Body, `"id"`) +
			strings.Count(s.Want(200, nil, "POST", "/uncaught?name="+name+"%202", "", worker).Body, `"id"`)
		var keys []harness.APIKey
		if err := json.Unmarshal([]byte(a.Must("api-keys", "list", "--scope", "minted", "--json")), &keys); err != nil {
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

// Every successful increment is counted once and has its key. One with too many conflicts
// is 409 and changes nothing.
func TestConflictingRequestsOverRowsAndKeysAreCommittedOnce(t *testing.T) {
	t.Parallel()
	a := rowsApp(t, "")
	s := a.Serve()
	worker := "X-API-Key: " + a.Token("worker")
	s.Want(201, nil, "POST", "/uncaught?op=insert&entity=Counter", `{"name":"c"}`, worker)
	var done, refused atomic.Int64
	seen := make([]atomic.Int64, 1000)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 10 {
				got, err := s.Try("POST", "/increment/c", "", worker)
				switch {
				case err != nil:
					t.Error(err)
				case got.Status == 200:
					done.Add(1)
					var n int
					if err := json.Unmarshal([]byte(got.Body), &n); err != nil || n < 1 || n >= len(seen) {
						t.Errorf("answered %q", got.Body)
						continue
					}
					seen[n].Add(1)
				case got.Status == 409:
					refused.Add(1)
				default:
					t.Errorf("%d %s", got.Status, got.Body)
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
	s.Want(200, &counters, "POST", "/uncaught?name=c", "", worker)
	var keys []harness.APIKey
	if err := json.Unmarshal([]byte(a.Must("api-keys", "list", "--scope", "minted", "--json")), &keys); err != nil {
		t.Fatal(err)
	}
	if len(counters) != 1 || counters[0].N != n || int64(len(keys)) != n {
		t.Errorf("%d increments were answered, the counter is %v and there are %d keys", n, counters, len(keys))
	}
}

// Concurrent transfers keep the sum of all accounts, and no account goes below zero.
func TestTransfersKeepTheSum(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	a := rowsApp(t, "")
	s := a.Serve()
	worker := "X-API-Key: " + a.Token("worker")
	const accounts = 4
	for i := range accounts {
		s.Want(201, nil, "POST", "/uncaught?op=insert&entity=Counter", fmt.Sprintf(`{"name":"a%d","n":100}`, i), worker)
	}
	var done atomic.Int64
	var callers sync.WaitGroup
	for c := range 6 {
		callers.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(c)))
			for range 20 {
				from := random.IntN(accounts)
				to := (from + 1 + random.IntN(accounts-1)) % accounts
				got, err := s.Try("POST", fmt.Sprintf("/transfer?from=a%d&to=a%d&n=%d", from, to, random.IntN(80)), "", worker)
				switch {
				case err != nil || got.Status != 204 && got.Status != 409 && got.Status != 422:
					t.Errorf("%d %s %v", got.Status, got.Body, err)
				case got.Status == 204:
					done.Add(1)
				}
			}
		})
	}
	callers.Wait()
	sum := 0
	for i := range accounts {
		var rows []struct{ N int }
		s.Want(200, &rows, "POST", fmt.Sprintf("/uncaught?name=a%d", i), "", worker)
		if len(rows) != 1 || rows[0].N < 0 {
			t.Fatalf("account %d: %v", i, rows)
		}
		sum += rows[0].N
	}
	if sum != accounts*100 || done.Load() == 0 {
		t.Errorf("after %d transfers the sum is %d, want %d", done.Load(), sum, accounts*100)
	}
}

// evolving is a schema that the tests change over live rows.
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

func TestASchemaChangeIsActivatedOverRowsOrRefused(t *testing.T) {
	a := harness.NewApp(t, evolving, "", "echo")
	s := a.Serve()
	worker := "X-API-Key: " + a.Token("worker")
	op := func(name, args string) string {
		t.Helper()
		return s.Want(200, nil, "POST", "/op", args, worker, "X-Op: "+name).Body
	}
	for _, values := range []string{`{"name":"a","colour":"green","size":1}`, `{"name":"b"}`, `{"name":"b","colour":"red"}`} {
		op("insert", `{"into":"Thing","values":`+values+`}`)
	}
	reload := func(schema, says string) string {
		t.Helper()
		a.Write("app.schema", schema)
		before := len(s.Stderr.String())
		if err := s.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(harness.Timeout); !strings.Contains(s.Stderr.String()[before:], says); s.Get("/none", "") {
			if time.Now().After(end) {
				t.Fatalf("no %q in the log:\n%s", says, s.Stderr.String()[before:])
			}
		}
		return s.Stderr.String()[before:]
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
		"E606": replaced("name: string(1..40)", "name: string(2..40)"),
		"E604": strings.NewReplacer("app evolving", "app evolving\nauth { session cookie {} tenant: Org }\nentity Org { id: id }", "size: int?", "size: int?\n  org: Org @tenant").Replace(evolving),
	} {
		log := reload(schema, "previous release kept")
		if !strings.Contains(log, code) {
			t.Errorf("%s: the log says\n%s", code, log)
		}
		if got := count(); got != `{"count":3}` {
			t.Errorf("after the refused %s the old schema counts %s", code, got)
		}
		for _, directory := range []string{"data"} {
			r := a.Run("check", "--against", directory)
			if r.Status != 3 || !strings.Contains(r.Stdout, "app.schema") || !strings.Contains(r.Stdout, "error["+code+"]") || strings.Contains(r.Stdout, "rows have null") {
				t.Errorf("check --against for %s: exit status %d\n%s%s", code, r.Status, r.Stdout, r.Stderr)
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
	if r := a.Run("check", "--against", "data"); r.Status != 0 {
		t.Errorf("check of the active schema: exit status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	s.Stop()

	a.Write("app.schema", evolving) // without weight, note and black
	r := a.Run("serve", "--listen", "127.0.0.1:0")
	if r.Status != 3 || strings.Count(r.Stderr, "error[E601]") != 2 {
		t.Errorf("a start with a refused schema: exit status %d\n%s", r.Status, r.Stderr)
	}
	if r := a.Run("check", "--against", "data"); r.Status != 3 || !strings.Contains(r.Stdout, "error[E601]") {
		t.Errorf("check without a server: exit status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	if r := a.Run("check", "--against", "nowhere"); r.Status != 4 {
		t.Errorf("check against a missing data directory: exit status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	a.Write("app.schema", more)
	s = a.Serve()
	if got := count(); got != `{"count":4}` {
		t.Errorf("after all changes there are %s", got)
	}
}

func TestKeysOfARemovedScopeAreReported(t *testing.T) {
	a := harness.NewApp(t, evolving, "", "echo")
	s := a.Serve()
	key := a.Key("create", "--scope", "worker", "--name", "left behind")
	a.Write("app.schema", strings.ReplaceAll(evolving, "worker", "other"))
	r := a.Run("check", "--against", "data")
	if r.Status != 0 || !strings.Contains(r.Stdout, "warning[W600]") || !strings.Contains(r.Stdout, key.ID) {
		t.Errorf("exit status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	if r := a.Run("check", "--strict", "--against", "data"); r.Status != 3 {
		t.Errorf("strict: exit status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	if err := s.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(harness.Timeout); !strings.Contains(s.Stderr.String(), "W600"); s.Get("/none", "") {
		if time.Now().After(end) {
			t.Fatalf("after the reload the log does not name the key:\n%s", s.Stderr.String())
		}
	}
	a.Must("api-keys", "revoke", key.ID)
	if r := a.Run("check", "--against", "data"); r.Status != 0 || strings.Contains(r.Stdout, "W600") {
		t.Errorf("after it was revoked: exit status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
}

// While the schema changes, each request is served by the previous release or the next one.
// None fails because of the change.
func TestRequestsContinueDuringSchemaChanges(t *testing.T) {
	a := harness.NewApp(t, evolving, "", "echo")
	s := a.Serve()
	worker := "X-API-Key: " + a.Token("worker")
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
				got, err := s.Try("POST", "/op", `{"into":"Thing","values":{"name":"n"}}`, worker, "X-Op: insert")
				if err != nil || got.Status != 200 {
					t.Errorf("during a change: %d %s %v", got.Status, got.Body, err)
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
		a.Write("app.schema", strings.Replace(evolving, "size: int?", "size: int? @index"+added, 1))
		before := strings.Count(s.Stderr.String(), `"msg":"reloaded"`)
		if err := s.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(harness.Timeout); strings.Count(s.Stderr.String(), `"msg":"reloaded"`) == before; s.Get("/none", "") {
			if time.Now().After(end) {
				t.Fatalf("no reload in the log:\n%s", s.Stderr.String())
			}
		}
	}
	close(stop)
	callers.Wait()
	if got := s.Want(200, nil, "POST", "/op", `{"from":"Thing","where":[["added7","=",7]]}`, worker, "X-Op: count"); got.Body != fmt.Sprintf(`{"count":%d}`, made.Load()) {
		t.Errorf("%d rows were created, %s are stored", made.Load(), got.Body)
	}
}

// A status of 200 means that the commit is on disk: it survives a killed server.
func TestCommittedRowsSurviveACrash(t *testing.T) {
	a := harness.NewApp(t, evolving, "", "echo")
	s := a.Serve()
	worker := "X-API-Key: " + a.Token("worker")
	var want bytes.Buffer
	for i := range 20 {
		got := s.Want(200, nil, "POST", "/op", fmt.Sprintf(`{"into":"Thing","values":{"name":"n%02d","size":%d}}`, i, i), worker, "X-Op: insert")
		var made struct{ Rows []json.RawMessage }
		if err := json.Unmarshal([]byte(got.Body), &made); err != nil || len(made.Rows) != 1 {
			t.Fatalf("%s: %v", got.Body, err)
		}
		if i > 0 {
			want.WriteByte(',')
		}
		want.Write(made.Rows[0])
	}
	s.Kill()
	s = a.Serve()
	got := s.Want(200, nil, "POST", "/op", `{"from":"Thing","orderBy":[["name","asc"]]}`, worker, "X-Op: query")
	if got.Body != `{"rows":[`+want.String()+`],"nextCursor":null}` {
		t.Errorf("after the next start\n%s\nwant\n%s", got.Body, want.String())
	}
}

// The list of orders reads one page, however many orders there are.
func TestTheOrdersExampleListsOrdersByAnIndex(t *testing.T) {
	t.Parallel()
	a := harness.ExampleApp(t, "orders")
	a.Write("partners.jsonl", `{"id":"01arz3ndektsv4rrffq69g5fav","code":"acme","name":"Acme"}`+"\n")
	var orders strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&orders, `{"number":"A-%d","partner":"01arz3ndektsv4rrffq69g5fav","total":"1.00","status":%q}`+"\n", i, []string{"open", "paid"}[i%2])
	}
	a.Write("orders.jsonl", orders.String())
	a.Must("data", "import", "Partner", "partners.jsonl")
	a.Must("data", "import", "Order", "orders.jsonl")
	a.Env = append(a.Env, "RUNNER_SANDBOX_ROWS=200")
	reader := "X-API-Key: " + a.Token("orders_read")
	s := a.Serve()
	for _, path := range []string{"/v1/orders?", "/v1/orders?status=paid&"} {
		var page orderPage
		s.Want(200, &page, "GET", path, "", reader)
		if len(page.Rows) != 50 || page.NextCursor == nil {
			t.Fatalf("%s: %d rows, cursor %v", path, len(page.Rows), page.NextCursor)
		}
		s.Want(200, &page, "GET", path+"cursor="+*page.NextCursor, "", reader)
	}
}
