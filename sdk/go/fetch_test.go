package runner_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	runner "runner.example/sdk/go"
	"runner.example/sdk/go/runnertest"
)

func TestAHandlerSignsAndCompares(t *testing.T) {
	handler := func(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
		digest, err := ctx.Digest(runner.SHA256, []byte("abc"))
		if err != nil {
			return runner.Response{}, err
		}
		given, err := ctx.HMAC(runner.SHA512, []byte("key\xff"), []byte("data\xff"))
		if err != nil {
			return runner.Response{}, err
		}
		named, err := ctx.HMACWithSecret(runner.SHA512, "KEY", []byte("data\xff"))
		if err != nil {
			return runner.Response{}, err
		}
		same, err := ctx.TimingSafeEqual(given, named)
		if err != nil {
			return runner.Response{}, err
		}
		other, err := ctx.TimingSafeEqual(given, digest)
		return runner.OK([]string{hex.EncodeToString(digest), fmt.Sprint(same, other, len(given))}), err
	}
	result := runnertest.Run(t, handler, runnertest.Request{Secrets: map[string]string{"KEY": "key\xff"}})
	const want = `["ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","true false 64"]`
	if result.Status != 200 || string(result.Body) != want {
		t.Errorf("%d %s %v", result.Status, result.Body, result.Logs)
	}
}

func TestCryptographyThatIsRefusedIsAnError(t *testing.T) {
	for what, do := range map[string]func(*runner.Context) ([]byte, error){
		"invalid": func(ctx *runner.Context) ([]byte, error) { return ctx.Digest("MD5", nil) },
		"denied":  func(ctx *runner.Context) ([]byte, error) { return ctx.HMACWithSecret(runner.SHA256, "NONE", nil) },
	} {
		runnertest.Run(t, func(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
			sum, err := do(ctx)
			var failure *runner.HostError
			if !errors.As(err, &failure) || failure.Code != what || sum != nil {
				t.Errorf("%x, %v, want %s", sum, err, what)
			}
			return runner.NoContent(), nil
		}, runnertest.Request{})
	}
}

func TestAFetchHasTheFormOfTheABI(t *testing.T) {
	var asked string
	request := runnertest.Request{Calls: map[string]func(json.RawMessage) (any, error){
		"fetch": func(args json.RawMessage) (any, error) {
			asked = string(args)
			return json.RawMessage(`{"status":418,"headers":[["x-a","1"],["x-a","2"]],"body":{"base64":"/wA="}}`), nil
		},
	}}
	for _, row := range []struct {
		request runner.FetchRequest
		want    string
	}{
		{runner.FetchRequest{URL: "https://a.example"}, `{"url":"https://a.example"}`},
		{runner.FetchRequest{Method: "PUT", URL: "u", Headers: []runner.Pair{{Name: "a", Value: "b"}}, Body: []byte("é"), Timeout: 1500 * time.Millisecond, Redirect: "manual", PublicOnly: true},
			`{"body":"é","headers":[["a","b"]],"method":"PUT","publicOnly":true,"redirect":"manual","timeout":1.5,"url":"u"}`},
		{runner.FetchRequest{URL: "u", Method: "POST", Body: []byte{0xff}}, `{"body":{"base64":"/w=="},"method":"POST","url":"u"}`},
	} {
		runnertest.Run(t, func(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
			response, err := ctx.Fetch(row.request)
			if err != nil || response.Status != 418 || string(response.Body) != "\xff\x00" || response.Header("X-A") != "1" || len(response.Headers) != 2 {
				t.Errorf("%+v %v", response, err)
			}
			return runner.NoContent(), nil
		}, request)
		if asked != row.want {
			t.Errorf("asked for %s, want %s", asked, row.want)
		}
	}
}

func TestResultsOfFetchesHaveTheOrderOfTheFetches(t *testing.T) {
	handler := func(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
		results := ctx.FetchAll(runner.FetchRequest{URL: "1"}, runner.FetchRequest{URL: "no"}, runner.FetchRequest{URL: "3"})
		var failure *runner.HostError
		if len(results) != 3 || string(results[0].Body) != "1" || string(results[2].Body) != "3" || !errors.As(results[1].Err, &failure) || failure.Code != "denied" {
			t.Errorf("%+v", results)
		}
		var number int
		if err := results[2].JSON(&number); err != nil || number != 3 {
			t.Errorf("%d %v", number, err)
		}
		return runner.NoContent(), nil
	}
	runnertest.Run(t, handler, runnertest.Request{Calls: map[string]func(json.RawMessage) (any, error){
		"fetch": func(args json.RawMessage) (any, error) {
			var a struct{ URL string }
			if err := json.Unmarshal(args, &a); err != nil {
				return nil, err
			}
			if a.URL == "no" {
				return nil, &runner.HostError{Code: "denied", Message: "not declared"}
			}
			return map[string]any{"status": 200, "headers": []any{}, "body": a.URL}, nil
		},
	}})
}
