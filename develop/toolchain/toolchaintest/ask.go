package toolchaintest

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/outbound"
	"runner.example/internal/caller"
	"runner.example/runtime/sandbox"
)

// Answer is the result of a request.
type Answer struct {
	Status       int
	Body, Detail string
	Code         string
	Headers      string // name: value, one per line
	// Log has the lines of the log, and what the run has failed with.
	Log string
	Err error
}

// Patient are limits that a handler here does not reach on a slow machine.
var Patient = hostabi.Limits{CPU: time.Minute}

// Ask calls a handler of the module.
func Ask(t testing.TB, m *sandbox.Module, handler string, request abi.Request) Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return AskWithin(t, ctx, m, handler, request)
}

// AskWithin calls a handler with a context.
func AskWithin(t testing.TB, ctx context.Context, m *sandbox.Module, handler string, request abi.Request) Answer {
	t.Helper()
	var log bytes.Buffer
	call := NewCall(ctx, &request, slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	err := m.Run(call, handler)
	a := Answer{
		Status: call.Response.Status, Body: string(call.Response.Body), Detail: call.Response.Detail,
		Code: call.Response.Code, Log: log.String() + Reports(call), Err: err,
	}
	for _, h := range call.Response.Headers {
		a.Headers += string(h.Name) + ": " + string(h.Value) + "\n"
	}
	return a
}

// Reports returns what a run has failed with, and what else its code has thrown.
func Reports(call *hostabi.Call) string {
	var out strings.Builder
	write := func(what string, f *hostabi.Failure) {
		fmt.Fprintf(&out, "%s: %s: %s\n", what, f.Kind, f.Message)
		for _, frame := range f.Frames {
			fmt.Fprintf(&out, "    at %s\n", frame)
		}
	}
	failure, others := call.Failures()
	for i := range others {
		write("uncaught", &others[i])
	}
	if failure != nil {
		write("failed", failure)
	}
	return out.String()
}

// NewCall completes a request and returns its call.
func NewCall(ctx context.Context, request *abi.Request, log slog.Handler) *hostabi.Call {
	request.ID, request.Route = "01request", "/x/:id"
	if request.Method == nil {
		request.Method, request.Path = []byte("GET"), []byte("/x/1")
	}
	return &hostabi.Call{Input: hostabi.Input{
		Context: ctx,
		Host:    hostabi.NewHost(hostabi.Host{Logger: slog.New(log), Limits: Patient}),
		Request: request,
		Caller:  caller.Caller{Kind: caller.Anonymous},
		Attempt: 1,
	}}
}

// Reaching returns an origin that stands for the server, and makes hosts whose handlers may send requests to it.
func Reaching(t *testing.T, server *httptest.Server) (origin string, host func(*slog.Logger) *hostabi.Host) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	origin = "https://api.example.com:" + port
	origins, err := outbound.ParseOrigins([]string{origin})
	if err != nil {
		t.Fatal(err)
	}
	loopback := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	client := outbound.New(outbound.Options{
		AllowPrivate: true, Roots: roots,
		Resolve: func(context.Context, string) ([]netip.Addr, error) { return loopback, nil },
	})
	t.Cleanup(client.Close)
	return origin, func(logger *slog.Logger) *hostabi.Host {
		return hostabi.NewHost(hostabi.Host{Logger: logger, Limits: Patient, Origins: origins, Outbound: client})
	}
}
