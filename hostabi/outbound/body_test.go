package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"runner.example/hostabi/outbound"
	"runner.example/internal/fairqueue"
)

// heldService sends a head and "one", and "two" after a value of more. A client that leaves before is gone.
func heldService(t *testing.T) (w *world, more chan struct{}, gone chan string) {
	more, gone = make(chan struct{}), make(chan string, 10)
	w = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/held" {
			return
		}
		fmt.Fprint(rw, "one")
		rw.(http.Flusher).Flush()
		select {
		case <-more:
			fmt.Fprint(rw, "two")
		case <-r.Context().Done():
			gone <- r.URL.Path
		}
	})
	w.options.Connections = 1
	return w, more, gone
}

func (w *world) open(ctx context.Context, c *outbound.Client, path string) (*outbound.Response, *outbound.Body, error) {
	return c.Open(ctx, fairqueue.Parties{"asker"}, w.request("GET", w.url("example.com", path), ""))
}

func TestTheHeadOfAResponseComesBeforeItsBody(t *testing.T) {
	w, more, _ := heldService(t)
	c := w.client()
	response, body, err := w.open(t.Context(), c, "/held")
	if err != nil {
		t.Fatal(err)
	}
	if response.Status != 200 || response.Body != nil || body.Length() != -1 {
		t.Errorf("%+v, length %d", response, body.Length())
	}
	first := make([]byte, 3)
	if _, err := io.ReadFull(body, first); err != nil || string(first) != "one" {
		t.Errorf("%q %v", first, err)
	}
	more <- struct{}{}
	if rest, err := io.ReadAll(body); err != nil || string(rest) != "two" {
		t.Errorf("%q %v", rest, err)
	}
	body.Close()
	if _, err := w.get(c, w.url("example.com", "/")); err != nil || w.conns.Load() != 1 {
		t.Errorf("the connection is not used again: %v", err)
	}
}

func TestAConnectionIsHeldUntilTheBodyIsClosed(t *testing.T) {
	w, _, gone := heldService(t)
	c := w.client()
	_, body, err := w.open(t.Context(), c, "/held")
	if err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := w.open(soon, c, "/held"); errorOf(err).Detail != "no connection is free; try again" {
		t.Errorf("while it is open: %v", err)
	}
	body.Close()
	<-gone
	if _, err := w.get(c, w.url("example.com", "/")); err != nil {
		t.Errorf("after it: %v", err)
	}
}

func TestABodyEndsWithItsContext(t *testing.T) {
	w, _, gone := heldService(t)
	c := w.client()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, body, err := w.open(ctx, c, "/held")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(body, make([]byte, 3)); err != nil {
		t.Error(err)
	}
	time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
	if _, err := body.Read(make([]byte, 3)); err != cause {
		t.Errorf("the read ends with %v", err)
	}
	<-gone
	body.Close()
	if _, err := w.get(c, w.url("example.com", "/")); err != nil {
		t.Errorf("after it: %v", err)
	}
}
