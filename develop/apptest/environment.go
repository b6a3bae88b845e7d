package apptest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"runner.example/hostabi/recording"
	"runner.example/keystore"
	"runner.example/runtime"
	"runner.example/state/store"
)

// environment is the app with a store, as one test sees it. Any goroutine may use it.
type environment struct {
	app      *suite
	store    *store.Store
	keys     *keystore.Keystore
	runtime  *runtime.Runtime
	calendar *calendar
	log      *testLog
	fetches  *fetches
	seeds    *seeds
	pipes    *pipes
	served   chan error
	http     *http.Transport

	mu      sync.Mutex
	clients []*client
	jobs    sync.Mutex // one run of jobs at a time
}

// fork returns an environment that begins as w is now, with a log of its own. Its random values follow from the name.
func (w *environment) fork(ctx context.Context, name string) (_ *environment, err error) {
	f := &environment{app: w.app, calendar: w.calendar.fork(), log: &testLog{}, fetches: newFetches(), seeds: newSeeds(w.app.Seed, name)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("begin a test: %w", err), f.close())
		}
	}()
	logger := f.log.logger()
	if f.store, err = w.store.Fork(store.ForkOptions{Clock: f.calendar.Now, Logger: w.app.Logger}); err != nil {
		return nil, err
	}
	if f.keys, err = w.keys.Fork(ctx, f.store, f.calendar.machine()); err != nil {
		return nil, err
	}
	f.runtime, err = w.runtime.Fork(ctx, runtime.ForkOptions{
		Store: f.store, Keystore: f.keys, Logger: logger, Calendar: f.calendar.Now, Sleep: f.calendar.move,
		Outbound: f.fetches, TokenKeys: w.app.issuer.keys(), Observe: w.app.seen.observe, Seeds: f.seeds.next,
		Trace: func(r *recording.Recording) { f.log.trace(r) },
	})
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	for _, c := range w.clients {
		f.clients = append(f.clients, c.fork())
	}
	w.mu.Unlock()
	f.serve()
	return f, nil
}

// serve serves requests on pipes.
func (w *environment) serve() {
	w.pipes, w.served = newPipes(), make(chan error, 1)
	w.http = &http.Transport{DialTLSContext: w.pipes.dial, // in plain text: a proxy before a server would speak TLS
		DisableCompression: true, MaxIdleConnsPerHost: 16}
	go func() { w.served <- w.runtime.Serve(w.pipes) }()
}

// close cuts off the requests that are still under way, and frees the environment.
func (w *environment) close() error {
	var all []error
	w.fetches.close()
	if w.pipes != nil {
		all = append(all, w.pipes.Close())
		w.http.CloseIdleConnections()
		if err := <-w.served; err != nil && !errors.Is(err, net.ErrClosed) {
			all = append(all, err)
		}
	}
	if w.runtime != nil {
		all = append(all, w.runtime.Close())
	}
	if w.keys != nil {
		all = append(all, w.keys.Close())
	}
	if w.store != nil {
		all = append(all, w.store.Close())
	}
	return errors.Join(all...)
}

// setTime sets the calendar. Back in time, credentials that were created later are not valid any more, as on a server:
// the clients of the environment get new ones with their next request.
func (w *environment) setTime(ctx context.Context, to time.Time) error {
	if !w.calendar.set(to) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.clients {
		c.expire()
	}
	_, err := w.keys.AcceptClock(ctx, operator)
	return err
}

// send sends a request as a client, and returns the answer. The time moves by a tick.
func (w *environment) send(ctx context.Context, number int, r sentRequest) (answer, error) {
	w.mu.Lock()
	if number < 0 || number >= len(w.clients) {
		w.mu.Unlock()
		return answer{}, fmt.Errorf("BUG: unknown client %d", number)
	}
	c := w.clients[number]
	w.mu.Unlock()
	request, err := r.http(ctx, w.app.host)
	if err != nil {
		return answer{}, err
	}
	if err := c.sign(ctx, w, request); err != nil {
		return answer{}, err
	}
	defer w.calendar.move(tick)
	got, err := w.http.RoundTrip(request)
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: read the answer: %w", r.Method, r.Path, err)
	}
	c.keep(request, got)
	return answerOf(got, body), nil
}
