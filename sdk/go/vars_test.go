package runner_test

import (
	"testing"
	"time"

	runner "runner.example/sdk/go"
	"runner.example/sdk/go/runnertest"
)

func TestAVariableHasTheTypeThatTheHandlerAsksFor(t *testing.T) {
	result := runnertest.Run(t, func(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
		origin, err := runner.Var[string](ctx, "ORIGIN")
		if err != nil || origin != "https://mail.example.com" {
			t.Errorf("%q, %v", origin, err)
		}
		if size, err := runner.Var[uint8](ctx, "SIZE"); err != nil || size != 20 {
			t.Errorf("%d, %v", size, err)
		}
		if open, err := runner.Var[bool](ctx, "OPEN"); err != nil || !open {
			t.Errorf("%t, %v", open, err)
		}
		if idle, err := runner.Var[time.Duration](ctx, "IDLE"); err != nil || idle != 1500*time.Millisecond {
			t.Errorf("%s, %v", idle, err)
		}
		if _, err := runner.Var[bool](ctx, "SIZE"); err == nil {
			t.Error("an int is a bool")
		}
		_, err = runner.Var[string](ctx, "NOPE")
		return runner.NoContent(), err
	}, runnertest.Request{Vars: map[string]any{"ORIGIN": "https://mail.example.com", "SIZE": 20, "OPEN": true, "IDLE": 1.5}})
	if result.Status != 500 || result.Code != "handler_failed" {
		t.Errorf("a variable that is not declared: %d %s %q", result.Status, result.Code, result.Logs)
	}
}
