package languages_test

import (
	"testing"
	"time"

	"runner.example/tests/harness"
)

func TestAnAppInPythonServes(t *testing.T) {
	harness.NeedPatches(t)
	a := harness.ExampleApp(t, "expenses")
	s := a.Serve()
	employee, office := "X-API-Key: "+a.Token("employees"), "X-API-Key: "+a.Token("office")
	submit := func(who, amount, spent string) string {
		var row struct{ ID, State, Amount string }
		s.Want(201, &row, "POST", "/v1/expenses", `{"employee":"`+who+`","what":"a train","spent":"`+spent+`","amount":"`+amount+`"}`, employee)
		if row.State != "submitted" || row.Amount != amount {
			t.Errorf("a new expense: %+v", row)
		}
		return row.ID
	}
	first, second, third := submit("ada", "12.50", "2026-02-03"), submit("ada", "0.10", "2026-02-28"), submit("bob", "7.00", "2026-02-01")
	submit("bob", "99.00", "2026-03-01")
	for _, id := range []string{first, second, third} {
		s.Want(200, nil, "POST", "/v1/expenses/"+id+"/decision", `{"approve":true}`, office)
	}
	s.Want(409, nil, "POST", "/v1/expenses/"+first+"/decision", `{"approve":false}`, office)
	s.Want(404, nil, "POST", "/v1/expenses/none/decision", `{"approve":false}`, office)
	s.Want(403, nil, "POST", "/v1/expenses/"+first+"/decision", `{"approve":false}`, employee)
	s.Want(400, nil, "POST", "/v1/expenses", `{"employee":"ada","what":"x","spent":"`+time.Now().AddDate(0, 0, 3).Format(time.DateOnly)+`","amount":"1.00"}`, employee)
	s.Want(400, nil, "POST", "/v1/expenses", `{"employee":"ada","what":"x","spent":"2026-01-01","amount":"1.005"}`, employee)

	report := s.Want(200, nil, "GET", "/v1/expenses/months/2026-02", "", office)
	if want := "employee,amount\r\nada,12.60\r\nbob,7.00\r\ntotal,19.60\r\n"; report.Body != want || report.Header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Errorf("the report: %q %s", report.Body, report.Header.Get("Content-Type"))
	}
	s.Want(400, nil, "GET", "/v1/expenses/months/2026-13", "", office)
	var page struct {
		Rows       []struct{ State string }
		NextCursor *string
	}
	s.Want(200, &page, "GET", "/v1/expenses?state=submitted", "", employee)
	if len(page.Rows) != 1 || page.NextCursor != nil {
		t.Errorf("what is not decided: %+v", page)
	}
}
