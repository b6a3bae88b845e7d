package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// handlerCall is a request for the handlers of testdata/component/handlers.wat.
func handlerCall(body string) (*hostabi.Call, *bytes.Buffer) {
	log := new(bytes.Buffer)
	call := newCall(context.Background(), log)
	call.Request.Path = []byte("/things/\xff7")
	call.Request.Params = []abi.Pair{{Name: []byte("x-id"), Value: []byte("7")}, {Name: []byte("x-name"), Value: []byte("ä")}}
	call.Request.Body = []byte(body)
	return call, log
}

// TestFunctionsOfAComponentAreHandlers: by the names that they have in a schema, with the request as a parameter.
func TestFunctionsOfAComponentAreHandlers(t *testing.T) {
	m := loadAs(t, newEngine(t, sandbox.Options{Instances: 1}), "build/x.wasm", componentFile(t, "handlers"))
	const all = "countUses count_uses digest2 digestBody digest_2 digest_body echo late outside spin wrong"
	if got := strings.Join(m.Handlers(), " "); got != all || m.Command() != "" {
		t.Errorf("its handlers are %s, and by itself %q", got, m.Command())
	}
	const digest = `{"hex":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","base64":"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="}`
	large := strings.Repeat("0123456789abcdef", 8<<10)
	for _, row := range []struct {
		handler, body, want string
	}{
		{"echo", large, "200  " + large},
		{"echo", "", "200  "},
		{"digestBody", `{"algorithm":"SHA-256","data":""}`, "200  " + digest},
		{"digest_body", `{"algorithm":"SHA-256","data":""}`, "200  " + digest},
		{"digest2", `{"algorithm":"SHA-256","data":""}`, "200  " + digest},
		{"digest_2", `{"data":""}`, "500 handler_failed "},
		{"digestBody", `{"data":""}`, "500 handler_failed "},
		{"wrong", "", "500 handler_failed "},
	} {
		call, log := handlerCall(row.body)
		err := m.Run(call, row.handler)
		r := &call.Response
		if got := fmt.Sprintf("%d %s %s", r.Status, r.Code, r.Body); err != nil || got != row.want {
			t.Errorf("%s: %v, %.300s, want %.300s", row.handler, err, got, row.want)
		}
		if row.handler == "echo" {
			var headers string
			for _, h := range r.Headers {
				headers += fmt.Sprintf("%s: %s\n", h.Name, h.Value)
			}
			if !strings.HasPrefix(headers, "x-id: 7\nx-name: ä\n") || !strings.Contains(log.String(), "/things/\ufffd7") {
				t.Errorf("headers %s, log %s", headers, log)
			}
		}
		failure, _ := call.Failures()
		if (failure != nil) != (r.Code != "") {
			t.Errorf("%s: %d, and it failed with %v", row.handler, r.Status, failure)
		} else if row.handler == "wrong" && !strings.Contains(failure.String(), "answer with status 700: argument") {
			t.Errorf("it failed with %v", failure)
		} else if row.handler == "digestBody" && failure != nil && !strings.Contains(failure.String(), "invalid: digest: member") {
			t.Errorf("it failed with %v", failure)
		}
	}
}

// TestARequestOfAComponentAllocatesNothing: its strings are written and read without a Go value for each.
func TestARequestOfAComponentAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	m := loadAs(t, newEngine(t, sandbox.Options{Instances: 1}), "build/x.wasm", componentFile(t, "handlers"))
	call, _ := handlerCall("twelve bytes")
	call.Request.Path = []byte("/things/7") // the other one is not UTF-8
	once := func() {
		if err := m.Run(call, "countUses"); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		call.Request.Headers = append(call.Request.Headers, abi.Pair{Name: []byte("x-more"), Value: []byte("more")})
	}
	if n := testing.AllocsPerRun(2000, once); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestAHandlerOfAComponentIsAsNewInEachRequest: also after one that never ends, or that breaks a rule.
func TestAHandlerOfAComponentIsAsNewInEachRequest(t *testing.T) {
	m := loadAs(t, newEngine(t, sandbox.Options{Instances: 1, NoBreaker: true}), "build/x.wasm", componentFile(t, "handlers"))
	for i := range 60 {
		handler := []string{"countUses", "late", "count_uses", "outside", "spin"}[i%5]
		call, _ := handlerCall("")
		timeout := plenty
		if handler == "spin" {
			timeout = time.Millisecond
		}
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		call.Context = ctx
		err := m.Run(call, handler)
		cancel()
		want := map[string]string{
			"late": "calls out while it allocates memory for a value, or after it has returned", "outside": "result of the handler: 36 bytes at 0xfffffff8 are outside of memory",
		}[handler]
		switch {
		case handler == "spin":
			if fault.CodeOf(err) != fault.HandlerTimeout {
				t.Fatalf("run %d: %v", i, err)
			}
		case want != "":
			if fault.CodeOf(err) != fault.HandlerFailed || !strings.Contains(fault.Of(err).Cause.Error(), want) {
				t.Fatalf("run %d of %s: %v", i, handler, fault.Of(err).Cause)
			}
		case err != nil || string(call.Response.Body) != "11":
			t.Fatalf("run %d: %v, %q", i, err, call.Response.Body)
		}
		if idle, err := m.Restored(); err != nil || idle != 1 {
			t.Fatalf("after run %d: %d sandboxes, %v", i, idle, err)
		}
	}
}

// TestAHandlerOfAComponentHasTheLimitsOfTheABI: when a budget is spent, it can still answer.
func TestAHandlerOfAComponentHasTheLimitsOfTheABI(t *testing.T) {
	m := loadAs(t, newEngine(t, sandbox.Options{Instances: 1}), "build/x.wasm", componentFile(t, "handlers"))
	for _, row := range []struct {
		handler string
		calls   int
		want    string
	}{
		{"digestBody", 2, "200 "}, {"digestBody", 1, "limit: a request may call the host at most 1 times"},
		{"digest2", 1, "200 "}, // its answer counts, and is possible
		{"countUses", 1, "200 "},
	} {
		call, _ := handlerCall(`{"algorithm":"SHA-256","data":""}`)
		call.Host = hostabi.NewHost(hostabi.Host{Logger: call.Host.Logger, Limits: hostabi.Limits{HostCalls: row.calls}})
		if err := m.Run(call, row.handler); err != nil {
			t.Fatal(err)
		}
		failure, _ := call.Failures()
		got := fmt.Sprint(call.Response.Status, " ")
		if failure != nil {
			got = failure.Message
		}
		if got != row.want {
			t.Errorf("%s with %d calls: %s, want %s", row.handler, row.calls, got, row.want)
		}
	}
}

func TestComponentsWithOtherTypesThanRunnerAppAreRefused(t *testing.T) {
	e := newEngine(t, sandbox.Options{})
	for name, want := range map[string]string{
		"mistyped":  "exports late: has another type than a handler, func(request: request) -> result<response, error> of runner:app: ",
		"other-wit": "imports digest of runner:app/crypto@1.0.0 with another type than the runner has: ",
	} {
		_, err := e.LoadAs(context.Background(), "build/x.wasm", componentFile(t, name), sandbox.Settings{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		t.Log(err)
	}
}

// TestAHandlerOfAComponentHasOneNameInASchema: it could not tell which of the two was called.
func TestAHandlerOfAComponentHasOneNameInASchema(t *testing.T) {
	m := loadAs(t, newEngine(t, sandbox.Options{Instances: 1}), "build/x.wasm", componentFile(t, "handlers"))
	named := func(names ...string) func(string) bool {
		return func(name string) bool { return strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ") }
	}
	for _, names := range [][]string{{"countUses", "digest_body"}, {"count_uses", "digestBody", "echo"}, {}} {
		if err := m.CheckNames(named(names...)); err != nil {
			t.Errorf("%s: %v", names, err)
		}
	}
	err := m.CheckNames(named("countUses", "count_uses"))
	if err == nil || !strings.Contains(err.Error(), "build/x.wasm: has one handler for countUses and count_uses of the schema") {
		t.Errorf("both: %v", err)
	}
}
