package etcdlog_test

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runner.example/state/store/etcdlog"
)

// records is a log whose records a test waits for.
type records struct {
	slog.Handler
	all chan slog.Record
}

func newRecords() *records {
	return &records{slog.DiscardHandler, make(chan slog.Record, 1000)}
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }

func (r *records) Handle(_ context.Context, record slog.Record) error {
	select {
	case r.all <- record:
	default:
	}
	return nil
}

// wait waits for a record, and returns its fields.
func (r *records) wait(t *testing.T, message, contains string) string {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case record := <-r.all:
			var fields strings.Builder
			record.Attrs(func(a slog.Attr) bool { fields.WriteString(a.String() + " "); return true })
			if record.Message == message && strings.Contains(fields.String(), contains) {
				return fields.String()
			}
		case <-late:
			t.Fatalf("no record %q with %q came in a minute", message, contains)
		}
	}
}

func run(t *testing.T, o etcdlog.ServerOptions) *etcdlog.Server {
	t.Helper()
	s, err := etcdlog.RunServer(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func isReady(s *etcdlog.Server) bool {
	select {
	case <-s.Ready():
		return true
	default:
		return false
	}
}

// A server that is started before the others waits for them. Its data directory tells it who they are.
func TestAServerStartsWithoutTheOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	t.Parallel()
	dir := t.TempDir()
	one := options(t, dir, 1)[0]
	first := start(t, one)
	c := dial(t, nil, one.ClientURL)
	addresses := freeAddresses(t, "http", 2)
	id, members, err := c.AddLearner(t.Context(), addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	first.Close()

	logged := newRecords()
	two := etcdlog.ServerOptions{
		Dir: filepath.Join(dir, "n2"), Self: etcdlog.Member{Name: "n2", PeerURL: addresses[0]}, Members: members,
		ClientURL: addresses[1], Joins: true, Election: time.Second, Logger: slog.New(logged),
	}
	second := run(t, two)
	logged.wait(t, "etcd server failed; retrying", "no etcd server answers")
	if err := second.Err(); err == nil || isReady(second) {
		t.Errorf("without the others, the second server has %v", err)
	}
	first = start(t, one)
	<-second.Ready()
	if second.Err() != nil {
		t.Errorf("a ready server has %v", second.Err())
	}
	for err := c.Promote(t.Context(), id); err != nil; err = c.Promote(t.Context(), id) {
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	first.Close()
	second.Close()
	if second.Err() != nil {
		t.Errorf("a closed server has %v", second.Err())
	}

	two.Members = nil // its directory has them
	place, err := net.Listen("tcp", strings.TrimPrefix(one.Self.PeerURL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	second = run(t, two)
	conn, err := place.Accept() // it looks for the other one
	if err != nil {
		t.Fatal(err)
	}
	if second.Err() != nil || isReady(second) {
		t.Errorf("half of the servers: the second one has %v, ready %v", second.Err(), isReady(second))
	}
	conn.Close()
	place.Close()
	one.Members = nil
	first = run(t, one)
	<-first.Ready()
	<-second.Ready()
}

func TestAnAttemptToStartAServerEndsWithClose(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	addresses := freeAddresses(t, "http", 2)
	s := run(t, etcdlog.ServerOptions{
		Dir: filepath.Join(t.TempDir(), "n2"), Self: etcdlog.Member{Name: "n2", PeerURL: addresses[0]},
		Members:   []etcdlog.Member{{Name: "n1", PeerURL: "http://" + silent.Addr().String()}},
		ClientURL: addresses[1], Joins: true, Election: time.Second,
	})
	conn, err := silent.Accept() // it asks, and gets no answer
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if n, err := conn.Read(make([]byte, 1<<10)); n == 0 || err != nil {
		t.Errorf("it asked with %d bytes, %v", n, err)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.Close()
		s.Close()
	}()
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("after Close it has sent %d bytes, %v", n, err)
	}
	<-closed
}

// A port that is in use now may be free later.
func TestAServerWaitsForItsPort(t *testing.T) {
	t.Parallel()
	o := options(t, t.TempDir(), 1)[0]
	used, err := net.Listen("tcp", strings.TrimPrefix(o.ClientURL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	logged := newRecords()
	o.Logger = slog.New(logged)
	s := run(t, o)
	logged.wait(t, "etcd server failed; retrying", "address already in use")
	used.Close()
	<-s.Ready()
}
