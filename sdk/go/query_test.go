package runner_test

import (
	"encoding/json"
	"strings"
	"testing"

	runner "runner.example/sdk/go"
	"runner.example/sdk/go/runnertest"
)

type order struct {
	ID    string `json:"id"`
	Total string `json:"total"`
}

// sending runs a handler body against answers and gives what it sent, one line
// for each operation.
func sending(t *testing.T, answers map[string]any, body func(ctx *runner.Context) (runner.Response, error)) (sent []string, result runnertest.Result) {
	t.Helper()
	calls := map[string]func(json.RawMessage) (any, error){}
	for op, answer := range answers {
		calls[op] = func(args json.RawMessage) (any, error) {
			if !json.Valid(args) {
				t.Errorf("%s is sent %s, which is not JSON", op, args)
			}
			sent = append(sent, op+" "+string(args))
			if err, ok := answer.(error); ok {
				return nil, err
			}
			return answer, nil
		}
	}
	result = runnertest.Run(t, func(ctx *runner.Context, _ *runner.Request) (runner.Response, error) { return body(ctx) },
		runnertest.Request{Calls: calls})
	return sent, result
}

func TestOperationsAreSentAsBuilt(t *testing.T) {
	open := runner.Query("Order").Where("status", "=", "open")
	rows := []struct {
		run  func(ctx *runner.Context) error
		want string
	}{
		{func(ctx *runner.Context) error { return runner.Query("Order").All(ctx, nil) }, `query {"from":"Order"}`},
		{func(ctx *runner.Context) error { return runner.Select("id").From("Order").All(ctx, nil) }, `query {"from":"Order","select":["id"]}`},
		{func(ctx *runner.Context) error {
			return open.Select("id", "total").Where("total", ">", 10).OrderBy("createdAt", "desc").OrderBy("id").Limit(20).All(ctx, nil)
		}, `query {"from":"Order","where":[["status","=","open"],["total",">",10]],"select":["id","total"],"orderBy":[["createdAt","desc"],["id","asc"]],"limit":20}`},
		{func(ctx *runner.Context) error {
			_, err := open.Page(ctx, nil, "next")
			return err
		}, `query {"from":"Order","where":[["status","=","open"]],"cursor":"next"}`},
		{func(ctx *runner.Context) error { return open.FirstOrFail(ctx, nil) },
			`query {"from":"Order","where":[["status","=","open"]],"limit":1}`},
		{func(ctx *runner.Context) error {
			_, err := open.OrderBy("id").Limit(3).Count(ctx)
			return err
		}, `count {"from":"Order","where":[["status","=","open"]]}`},
		{func(ctx *runner.Context) error {
			return runner.Query("Order").Match(
				runner.Or(runner.Field("status", "in", []string{"open", "paid"}), runner.Not(runner.Field("ref", "=", runner.Null))),
			).All(ctx, nil)
		}, `query {"from":"Order","where":[["or",["status","in",["open","paid"]],["not",["ref","=",null]]]]}`},
		{func(ctx *runner.Context) error {
			a, b, c := runner.Field("a", "=", 1), runner.Field("b", "=", 2), runner.Field("c", "=", 3)
			return runner.Query("Order").Match(runner.And(a, runner.And(b, c)), runner.Or(runner.And(a, b), c), runner.Not(runner.And(a, b))).All(ctx, nil)
		}, `query {"from":"Order","where":[["a","=",1],["b","=",2],["c","=",3],["or",[["a","=",1],["b","=",2]],["c","=",3]],["not",[["a","=",1],["b","=",2]]]]}`},
		{func(ctx *runner.Context) error {
			return runner.Query("Order").Match(runner.Or(runner.Field("a", "=", "x").IgnoreCase())).Include("partner", runner.Select("name")).
				Include("lines", runner.Select().Where("a", "=", 1).OrderBy("a").Limit(3).Include("order", runner.Select())).All(ctx, nil)
		}, `query {"from":"Order","where":[["or",["a","=","x","ignoreCase"]]],"include":{"partner":{"select":["name"]},"lines":{"where":[["a","=",1]],"orderBy":[["a","asc"]],"limit":3,"include":{"order":{}}}}}`},
		{func(ctx *runner.Context) error {
			return runner.Get("Order", "1").Include("partner", runner.Select()).Row(ctx, nil)
		}, `get {"from":"Order","id":"1","include":{"partner":{}}}`},
		{func(ctx *runner.Context) error {
			return runner.Aggregate("Order").Where("a", ">", 1).GroupBy("b", "c").Sum("d").Sum("e").Avg("d").Min("a").Max("a").Count().All(ctx, nil)
		}, `aggregate {"from":"Order","where":[["a",">",1]],"groupBy":["b","c"],"count":true,"sum":["d","e"],"avg":["d"],"min":["a"],"max":["a"]}`},
		{func(ctx *runner.Context) error {
			_, err := runner.Remove("Order").Run(ctx)
			return err
		}, `delete {"from":"Order"}`},
		{func(ctx *runner.Context) error {
			_, err := runner.Remove("Order").Every().Run(ctx)
			return err
		}, `delete {"from":"Order","where":[]}`},
		{func(ctx *runner.Context) error {
			_, err := runner.Update("Order", map[string]int{"a": 1}).Every().Run(ctx)
			return err
		}, `update {"in":"Order","set":{"a":1},"where":[]}`},
		{func(ctx *runner.Context) error { return runner.Get("Order", "a\"b").Row(ctx, nil) }, `get {"from":"Order","id":"a\"b"}`},
		{func(ctx *runner.Context) error { return runner.Get("Order", "1", "id", "total").Row(ctx, nil) },
			`get {"from":"Order","id":"1","select":["id","total"]}`},
		{func(ctx *runner.Context) error { return runner.Insert("Order", order{"", "1.00"}).Row(ctx, nil) },
			`insert {"into":"Order","values":{"id":"","total":"1.00"}}`},
		{func(ctx *runner.Context) error {
			return runner.Insert("Order", []map[string]any{{"n": 1}, {"n": 2}}).Rows(ctx, nil)
		},
			`insert {"into":"Order","values":[{"n":1},{"n":2}]}`},
		{func(ctx *runner.Context) error {
			_, err := runner.Update("Order", map[string]any{"status": "paid"}).Where("id", "=", "1").Match(runner.Not(runner.Field("a", "<", 1.5))).Run(ctx)
			return err
		}, `update {"in":"Order","set":{"status":"paid"},"where":[["id","=","1"],["not",["a","<",1.5]]]}`},
		{func(ctx *runner.Context) error {
			_, err := runner.Remove("Order").Where("id", "=", "1").Match(runner.Field("a", "!=", true)).Run(ctx)
			return err
		}, `delete {"from":"Order","where":[["id","=","1"],["a","!=",true]]}`},
	}
	answers := map[string]any{}
	for _, op := range []string{"query", "count", "aggregate", "get", "insert", "update", "delete"} {
		answers[op] = map[string]any{"count": 0, "rows": []any{}}
	}
	for _, row := range rows {
		sent, result := sending(t, answers, func(ctx *runner.Context) (runner.Response, error) { return runner.NoContent(), row.run(ctx) })
		if len(sent) != 1 || sent[0] != row.want || result.Status != 204 {
			t.Errorf("sent %q and answered %d, want %s", sent, result.Status, row.want)
		}
	}
}

func TestAStepDoesNotChangeTheSelection(t *testing.T) {
	base := runner.Query("Order").Select("id").Where("a", "=", 1).Where("b", "=", 2).OrderBy("a").OrderBy("b").OrderBy("c")
	_ = base.Where("c", "=", 3).Select("x").OrderBy("d").Limit(1)
	first, second := base.Where("c", "=", 4), base.Where("c", "=", 5)
	sent, _ := sending(t, map[string]any{"count": map[string]int{"count": 0}}, func(ctx *runner.Context) (runner.Response, error) {
		for _, q := range []runner.Selection{base, first, second} {
			if _, err := q.Count(ctx); err != nil {
				return runner.Response{}, err
			}
		}
		return runner.NoContent(), nil
	})
	want := []string{
		`count {"from":"Order","where":[["a","=",1],["b","=",2]]}`,
		`count {"from":"Order","where":[["a","=",1],["b","=",2],["c","=",4]]}`,
		`count {"from":"Order","where":[["a","=",1],["b","=",2],["c","=",5]]}`,
	}
	for i := range want {
		if i >= len(sent) || sent[i] != want[i] {
			t.Errorf("%d: sent %q, want %s", i, sent, want[i])
		}
	}
}

func TestResultsAreDecodedIntoTheHandlersValue(t *testing.T) {
	two := map[string]any{"rows": []order{{"1", "1.00"}, {"2", "2.00"}}, "count": 2, "nextCursor": "more"}
	sending(t, map[string]any{"query": two, "insert": two, "update": two, "delete": two, "count": two, "get": map[string]any{"row": order{"7", "7.00"}}},
		func(ctx *runner.Context) (runner.Response, error) {
			check := func(what string, err error, got, want any) {
				t.Helper()
				a, _ := json.Marshal(got)
				b, _ := json.Marshal(want)
				if err != nil || string(a) != string(b) {
					t.Errorf("%s: %s, %v, want %s", what, a, err, b)
				}
			}
			both, first := []order{{"1", "1.00"}, {"2", "2.00"}}, order{"1", "1.00"}
			var all, page, inserted, updated []order
			var one, made, row order
			check("all", runner.Query("Order").All(ctx, &all), all, both)
			next, err := runner.Query("Order").Page(ctx, &page, "")
			check("page", err, []any{page, next}, []any{both, "more"})
			check("first", runner.Query("Order").FirstOrFail(ctx, &one), one, first)
			check("get", runner.Get("Order", "7").Row(ctx, &row), row, order{"7", "7.00"})
			check("insert of rows", runner.Insert("Order", both).Rows(ctx, &inserted), inserted, both)
			check("insert of a row", runner.Insert("Order", first).Row(ctx, &made), made, first)
			n, err := runner.Update("Order", first).Rows(ctx, &updated)
			check("update", err, []any{n, updated}, []any{2, both})
			n, err = runner.Update("Order", first).Run(ctx)
			check("update without rows", err, n, 2)
			n, err = runner.Remove("Order").Run(ctx)
			check("remove", err, n, 2)
			n, err = runner.Query("Order").Count(ctx)
			check("count", err, n, 2)
			return runner.NoContent(), nil
		})
}

func TestAResultCanBeSentWithoutDecoding(t *testing.T) {
	some := map[string]any{"rows": []map[string]int{{"n": 1}, {"n": 2}}, "nextCursor": nil}
	none := map[string]any{"rows": []int{}, "nextCursor": nil}
	rows := []struct {
		answer   any
		response runner.Response
		status   int
		body     string
	}{
		{some, runner.OK(runner.Rows), 200, `[{"n":1},{"n":2}]`},
		{some, runner.OK(runner.Result), 200, `{"nextCursor":null,"rows":[{"n":1},{"n":2}]}`},
		{some, runner.Created(runner.Row, "/x/1"), 201, `{"n":1}`},
		{none, runner.OK(runner.Rows), 200, `[]`},
		{none, runner.OK(runner.Row), 404, ``},
		{none, runner.Created(runner.Row), 500, ``},
		{map[string]string{"id": "job"}, runner.Created(runner.Row), 500, ``},
		{map[string]any{"row": map[string]int{"n": 3}}, runner.OK(runner.Row), 200, `{"n":3}`},
		{map[string]any{"row": map[string]int{"n": 3}}, runner.OK(runner.Rows), 500, ``},
		{&runner.HostError{Code: "denied", Message: "m"}, runner.OK(runner.Rows), 403, ``},
	}
	for _, row := range rows {
		_, result := sending(t, map[string]any{"query": row.answer}, func(ctx *runner.Context) (runner.Response, error) {
			return row.response, runner.Query("Order").All(ctx, nil)
		})
		if result.Status != row.status || string(result.Body) != row.body {
			t.Errorf("%v: got %d %q, want %d %q", row.answer, result.Status, result.Body, row.status, row.body)
		}
	}
	_, result := sending(t, map[string]any{"insert": map[string]any{"row": map[string]int{"n": 1}}, "jobs.enqueue": map[string]any{"id": "1"}}, func(ctx *runner.Context) (runner.Response, error) {
		if err := runner.Insert("Order", map[string]int{"n": 1}).Row(ctx, nil); err != nil {
			return runner.Response{}, err
		}
		return runner.Created(runner.Row), ctx.Call("jobs.enqueue", map[string]any{}, nil)
	})
	if result.Status != 500 || len(result.Logs) != 1 || !strings.Contains(result.Logs[0], "the result of the last operation has no row: run the operation that returns it last") {
		t.Errorf("the row before the last operation: %d, logs %q", result.Status, result.Logs)
	}
	if result := answerOf(t, runner.OK(runner.Rows)); result.Status != 500 || len(result.Logs) != 1 {
		t.Errorf("rows without an operation: %d, logs %q", result.Status, result.Logs)
	}
}

func TestANotFoundErrorAnswers404(t *testing.T) {
	_, result := sending(t, map[string]any{"query": map[string]any{"rows": []int{}}}, func(ctx *runner.Context) (runner.Response, error) {
		var row order
		return runner.OK(row), runner.Query("Order").FirstOrFail(ctx, &row)
	})
	if result.Status != 404 || result.Code != "not_found" {
		t.Errorf("first of none: %d %q", result.Status, result.Code)
	}
}

func TestInvalidJSONFailsBeforeAnythingIsSent(t *testing.T) {
	never := func() {}
	for what, run := range map[string]func(ctx *runner.Context) error{
		"where": func(ctx *runner.Context) error { return runner.Query("Order").Where("a", "=", never).All(ctx, nil) },
		"nested": func(ctx *runner.Context) error {
			return runner.Query("Order").Match(runner.Or(runner.Field("a", "=", never))).All(ctx, nil)
		},
		"count": func(ctx *runner.Context) error {
			_, err := runner.Query("Order").Where("a", "=", never).Count(ctx)
			return err
		},
		"values": func(ctx *runner.Context) error { return runner.Insert("Order", never).Row(ctx, nil) },
		"set": func(ctx *runner.Context) error {
			_, err := runner.Update("Order", never).Run(ctx)
			return err
		},
		"remove": func(ctx *runner.Context) error {
			_, err := runner.Remove("Order").Where("a", "=", never).Run(ctx)
			return err
		},
	} {
		sent, result := sending(t, map[string]any{"query": 1, "count": 1, "insert": 1, "update": 1, "delete": 1},
			func(ctx *runner.Context) (runner.Response, error) { return runner.NoContent(), run(ctx) })
		if len(sent) != 0 || result.Status != 500 {
			t.Errorf("%s: sent %q, answered %d", what, sent, result.Status)
		}
	}
}
