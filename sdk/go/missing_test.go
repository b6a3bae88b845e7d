package runner_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	runner "runner.example/sdk/go"
	"runner.example/sdk/go/runnertest"
)

// nullWriter writes itself as null, as types of databases do.
type nullWriter struct{}

func (nullWriter) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// latin1 writes itself as text that is not UTF-8.
type latin1 struct{}

func (latin1) MarshalText() ([]byte, error) { return []byte("caf\xe9"), nil }

// ownError is an error with a form in JSON.
type ownError struct{}

func (ownError) Error() string                { return "own" }
func (ownError) MarshalText() ([]byte, error) { return []byte("own"), nil }

type latinError struct{ latin1 }

func (*latinError) Error() string { return "latin" }

func TestANilListIsAnEmptyListOfIn(t *testing.T) {
	var ids []string
	sent, result := sending(t, map[string]any{"query": map[string]any{}}, func(ctx *runner.Context) (runner.Response, error) {
		return runner.NoContent(), runner.Query("User").Where("id", "in", ids).All(ctx, nil)
	})
	if want := `query {"from":"User","where":[["id","in",[]]]}`; result.Status != 204 || len(sent) != 1 || sent[0] != want {
		t.Errorf("%d %q, want %s", result.Status, sent, want)
	}
	for _, value := range []any{nil, []byte(nil), json.RawMessage(nil), (*[]string)(nil)} {
		var refused error
		sent, _ := sending(t, nil, func(ctx *runner.Context) (runner.Response, error) {
			refused = runner.Query("User").Where("id", "in", value).All(ctx, nil)
			return runner.NoContent(), nil
		})
		if refused == nil || !strings.Contains(refused.Error(), "id: the value of in is nil") || len(sent) > 0 {
			t.Errorf("%T: %v, sent %q", value, refused, sent)
		}
	}
}

func TestAConditionWithoutAValueIsAnErrorAndNeverNull(t *testing.T) {
	var body map[string]any
	var text *string
	for what, value := range map[string]any{
		"is nil":                               nil,
		"is nil: a pointer":                    text,
		"is nil: a member":                     body["token"],
		"is nil: raw":                          json.RawMessage(nil),
		"is nil: raw null":                     json.RawMessage("null"),
		"is nil: bytes":                        []byte(nil),
		"is nil: a list":                       []string(nil),
		"is nil: a map":                        map[string]int(nil),
		"is nil: a type":                       nullWriter{},
		"is NaN":                               math.NaN(),
		"is +Inf":                              math.Inf(1),
		"has NaN at [1]":                       []float64{1, math.NaN()},
		"is text that is not UTF-8":            "caf\xe9",
		"has text that is not UTF-8":           []string{"a", "\xff"},
		"is text that is not UTF-8: of a type": latin1{},
		"is a func()":                          func() {},
		"is a chan int":                        make(chan int),
		"is no JSON":                           json.Number("x"),
	} {
		is, _, _ := strings.Cut(what, ":")
		condition := runner.Field("token", "=", value)
		for name, run := range map[string]func(ctx *runner.Context) error{
			"query": func(ctx *runner.Context) error { return runner.Query("User").Match(condition).All(ctx, nil) },
			"where": func(ctx *runner.Context) error { return runner.Query("User").Where("token", "=", value).All(ctx, nil) },
			"or":    func(ctx *runner.Context) error { return runner.Query("User").Match(runner.Or(condition)).All(ctx, nil) },
			"not": func(ctx *runner.Context) error {
				return runner.Query("User").Match(runner.Not(condition)).All(ctx, nil)
			},
			"and": func(ctx *runner.Context) error {
				return runner.Query("User").Match(runner.And(condition, condition)).All(ctx, nil)
			},
			"included": func(ctx *runner.Context) error {
				return runner.Query("User").Include("keys", runner.Select().Match(condition)).All(ctx, nil)
			},
			"looked up": func(ctx *runner.Context) error {
				return runner.Get("User", "1").Include("keys", runner.Select().Match(condition)).Row(ctx, nil)
			},
			"count": func(ctx *runner.Context) error {
				_, err := runner.Query("User").Match(condition).Count(ctx)
				return err
			},
			"aggregate": func(ctx *runner.Context) error {
				return runner.Aggregate("User").Match(condition).Count().All(ctx, nil)
			},
			"remove": func(ctx *runner.Context) error { _, err := runner.Remove("User").Match(condition).Run(ctx); return err },
			"update": func(ctx *runner.Context) error {
				_, err := runner.Update("User", map[string]string{"password": "x"}).Match(condition).Run(ctx)
				return err
			},
		} {
			var refused error
			sent, _ := sending(t, nil, func(ctx *runner.Context) (runner.Response, error) {
				refused = run(ctx)
				return runner.NoContent(), nil
			})
			var failure *runner.HostError
			want := "token: the value of = " + is
			if !errors.As(refused, &failure) || failure.Code != "invalid" || !strings.HasPrefix(failure.Message, want) || !strings.HasSuffix(failure.Message, "compare with runner.Null") || len(sent) > 0 {
				t.Errorf("%s with %s: %v, sent %q, want %q", name, what, refused, sent, want)
			}
		}
	}
}

func TestNullIsComparedOnlyOnPurpose(t *testing.T) {
	empty := ""
	for want, value := range map[string]any{`null`: runner.Null, `""`: "", `0`: 0, `false`: false, `[]`: []string{}, `"2026-01-02T03:04:05Z"`: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} {
		sent, result := sending(t, map[string]any{"query": map[string]any{}}, func(ctx *runner.Context) (runner.Response, error) {
			return runner.NoContent(), runner.Query("User").Where("token", "!=", value).All(ctx, nil)
		})
		if want = `query {"from":"User","where":[["token","!=",` + want + `]]}`; result.Status != 204 || len(sent) != 1 || sent[0] != want {
			t.Errorf("%v: %d %q, want %s", value, result.Status, sent, want)
		}
	}
	sent, _ := sending(t, map[string]any{"query": map[string]any{}}, func(ctx *runner.Context) (runner.Response, error) {
		return runner.NoContent(), runner.Query("User").Where("token", "=", &empty).Limit(0).All(ctx, nil)
	})
	if want := `query {"from":"User","where":[["token","=",""]],"limit":0}`; len(sent) != 1 || sent[0] != want {
		t.Errorf("%q, want %s, which the host refuses", sent, want)
	}
}

func TestAValueWithoutAFormInJSONIsNamed(t *testing.T) {
	type line struct {
		Price  float64 `json:"price,omitempty"`
		Hidden float64 `json:"-"`
		Note   string
	}
	nan, late := math.NaN(), time.Unix(1<<60, 0)
	for want, run := range map[string]func(ctx *runner.Context) error{
		"insert: values.price is NaN": func(ctx *runner.Context) error {
			return runner.Insert("Line", map[string]any{"a": 1, "price": nan}).Row(ctx, nil)
		},
		"insert: values[1].price is -Inf": func(ctx *runner.Context) error {
			return runner.Insert("Line", []line{{Hidden: nan}, {Price: math.Inf(-1)}}).Rows(ctx, nil)
		},
		"insert: values.Note is text that is not UTF-8": func(ctx *runner.Context) error {
			return runner.Insert("Line", &line{Note: "a\xffb"}).Row(ctx, nil)
		},
		"update: set.data.a[1].b is NaN": func(ctx *runner.Context) error {
			_, err := runner.Update("Line", map[string]any{"data": map[string]any{"a": []any{1, map[string]float64{"b": nan}}}}).Where("id", "=", "1").Run(ctx)
			return err
		},
		"update: set.at is no JSON (json: error calling MarshalJSON for type *time.Time: Time.MarshalJSON: year outside of range [0,9999])": func(ctx *runner.Context) error {
			_, err := runner.Update("Line", struct {
				At *time.Time `json:"at"`
			}{&late}).Where("id", "=", "1").Run(ctx)
			return err
		},
		"get: id is text that is not UTF-8": func(ctx *runner.Context) error { return runner.Get("Line", "\xff").Row(ctx, nil) },
		"jobs.enqueue: params.amount is NaN": func(ctx *runner.Context) error {
			_, err := ctx.Client.Jobs.Enqueue("bill", map[string]any{"amount": nan}, runner.JobOptions{})
			return err
		},
		"jobs.enqueue: key is text that is not UTF-8": func(ctx *runner.Context) error {
			_, err := ctx.Client.Jobs.Enqueue("bill", nil, runner.JobOptions{Key: "\xc3"})
			return err
		},
		"apiKeys.create: metadata.f is a func()": func(ctx *runner.Context) error {
			_, err := ctx.Client.APIKeys.Create(runner.APIKeyOptions{Scope: "s", Metadata: map[string]any{"f": func() {}}})
			return err
		},
		"insert: values.meta.cause is an error, of which err.Error() is the text": func(ctx *runner.Context) error {
			return runner.Insert("Line", map[string]any{"meta": map[string]any{"cause": errors.New("x")}}).Row(ctx, nil)
		},
		"insert: values is an error, of which err.Error() is the text": func(ctx *runner.Context) error {
			return runner.Insert("Line", errors.Join(errors.New("x"))).Row(ctx, nil)
		},
		"insert: values.Causes[1] is an error, of which err.Error() is the text": func(ctx *runner.Context) error {
			return runner.Insert("Line", struct{ Causes []error }{[]error{nil, fmt.Errorf("y: %w", io.EOF)}}).Row(ctx, nil)
		},
		"insert: values.by.a is an error, of which err.Error() is the text": func(ctx *runner.Context) error {
			return runner.Insert("Line", map[string]any{"by": map[string]error{"a": io.EOF}}).Row(ctx, nil)
		},
		"insert: values.total is an empty json.Number": func(ctx *runner.Context) error {
			return runner.Insert("Line", map[string]any{"total": json.Number("")}).Row(ctx, nil)
		},
		"insert: values[0].Total is an empty json.Number": func(ctx *runner.Context) error {
			return runner.Insert("Line", []struct{ Total json.Number }{{}}).Row(ctx, nil)
		},
		"insert: values.totals[1] is an empty json.Number": func(ctx *runner.Context) error {
			return runner.Insert("Line", map[string]any{"totals": [2]json.Number{"1"}}).Row(ctx, nil)
		},
		"x.y: n is NaN": func(ctx *runner.Context) error { return ctx.Call("x.y", map[string]any{"n": nan}, nil) },
	} {
		var refused error
		sent, _ := sending(t, nil, func(ctx *runner.Context) (runner.Response, error) {
			refused = run(ctx)
			return runner.NoContent(), nil
		})
		var failure *runner.HostError
		if !errors.As(refused, &failure) || failure.Code != "invalid" || failure.Message != want+": check it first, or use nil on purpose" || len(sent) > 0 {
			t.Errorf("%v, sent %q, want %q", refused, sent, want)
		}
	}
	// An error with a form of its own, no error, and a number are written.
	sent, _ := sending(t, map[string]any{"insert": map[string]any{}}, func(ctx *runner.Context) (runner.Response, error) {
		var none *latinError
		values := map[string]any{"a": ownError{}, "b": error(nil), "c": none, "d": map[string]error{"e": nil}, "f": json.Number("1.50"), "g": struct {
			N json.Number `json:"n,omitempty"`
		}{}}
		return runner.NoContent(), runner.Insert("Line", values).Row(ctx, nil)
	})
	if want := `insert {"into":"Line","values":{"a":"own","b":null,"c":null,"d":{"e":null},"f":1.50,"g":{}}}`; len(sent) != 1 || sent[0] != want {
		t.Errorf("%q, want %s", sent, want)
	}
	// U+FFFD is a character like others, and so is its escape.
	sent, _ = sending(t, map[string]any{"insert": map[string]any{}}, func(ctx *runner.Context) (runner.Response, error) {
		return runner.NoContent(), runner.Insert("Line", map[string]any{"a": "\ufffd", "b": json.RawMessage(`"\ufffd"`), "c": `\ufffd`, "d": nil}).Row(ctx, nil)
	})
	if want := `insert {"into":"Line","values":{"a":"` + "\ufffd" + `","b":"\ufffd","c":"\\ufffd","d":null}}`; len(sent) != 1 || sent[0] != want {
		t.Errorf("%q, want %s", sent, want)
	}
}

func TestABodyThatIsNotUnicodeIsNotRead(t *testing.T) {
	handler := func(_ *runner.Context, req *runner.Request) (runner.Response, error) {
		body, err := runner.Body[map[string]any](req)
		return runner.OK(body), err
	}
	for body, status := range map[string]int{
		"{\"a\":\"caf\xe9\"}": 400, `{"a":"\ud800"}`: 400, `{"a":"\udc00\ud800"}`: 400, `{"\ud83dx":1}`: 400, "\"\xed\xa0\x80\"": 400,
		`{"a":"\ud83d\ude00 \\ud800 ` + "\ufffd" + `\ufffd é"}`: 200, `{}`: 200,
	} {
		result := runnertest.Run(t, handler, runnertest.Request{Body: body})
		if result.Status != status || status == 400 && result.Code != "invalid_json" {
			t.Errorf("%q: %d %s, want %d", body, result.Status, result.Code, status)
		}
	}
}
