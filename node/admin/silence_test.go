package admin

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/internal/fault"
)

// An exchange ends when the server has been silent for the limit. Bytes in both directions begin the time
// anew, and a caller that is slow with what has arrived does not end it.
func TestAnExchangeEndsOnlyWhenTheServerIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := limitSilence(t.Context(), time.Minute)
		defer limit.stop()
		sent := limit.sent(strings.NewReader(strings.Repeat("x", 8)))
		for range 8 {
			time.Sleep(50 * time.Second)
			if _, err := io.ReadFull(sent, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		answer, server := io.Pipe()
		received := limit.received(answer)
		for range 8 {
			go func() {
				time.Sleep(50 * time.Second)
				_, _ = server.Write([]byte("x"))
			}()
			if _, err := received.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour) // the caller writes it to a slow pipe
		}
		if limit.ctx.Err() != nil {
			t.Error("the exchange has ended:", context.Cause(limit.ctx))
		}
		context.AfterFunc(limit.ctx, func() { server.CloseWithError(errors.New("cut off")) })
		began := time.Now()
		_, err := received.Read(make([]byte, 1))
		if waited := time.Since(began); err == nil || waited != time.Minute {
			t.Errorf("%v after %s", err, waited)
		}
		if err := limit.explain(err); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "the server has not answered for 1m") {
			t.Error(err)
		}
	})
}

func TestAnExchangeThatHasEndedIsNotExplainedBySilence(t *testing.T) {
	broken := errors.New("broken")
	ctx, cancel := context.WithCancelCause(t.Context())
	limit := limitSilence(ctx, time.Minute)
	if err := limit.explain(broken); err != broken {
		t.Error(err)
	}
	cancel(context.Canceled) // an interrupt
	if err := limit.explain(broken); err != broken {
		t.Error(err)
	}
	limit.stop()
	if err := limit.explain(broken); err != broken {
		t.Error(err)
	}
}
