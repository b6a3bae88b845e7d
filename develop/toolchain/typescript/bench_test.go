package typescript_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/runtime/sandbox"
)

const helloFile = `import { created, noContent, ok, type RouteRequest } from "@runner/sdk";
export function hello() { return ok({ message: "hello" }); }
export function greet(req: RouteRequest) { return ok({ name: req.params.name, agent: req.headers["user-agent"], page: req.query.page ?? "1" }); }
export function nothing() { return noContent(); }
export function read(req: RouteRequest) {
  const { item } = req.body<Order>(), given = [req.params.name, req.query.page, req.headers.host, req.headers.accept, item];
  return ok({ message: given.includes(undefined!) ? "no" : "hello" });
}
interface Order { item: string; qty: number }
export function hundred(req: RouteRequest) { const rows = req.body<(Order & { price: number; total: number })[]>(); for (const row of rows) row.total = row.qty * row.price; return ok(rows); }
export function order(req: RouteRequest) { const { item, qty } = req.body<Order>(); return created({ id: 7, item, qty }); }
export async function later() { await null; return ok({ message: "hello" }); }
export function fails(req: RouteRequest) { return ok({ street: JSON.parse(req.params.name).street }); }
export function compute() { const fib = (n: number): number => (n < 2 ? n : fib(n - 1) + fib(n - 2)); return ok(fib(18)); }
`

// BenchmarkCall measures one request to a handler in TypeScript without HTTP: medians of
// the guest's own time, of restoring the sandbox, and of the number of changed pages.
func BenchmarkCall(b *testing.B) {
	dir := toolchaintest.App(b, map[string]string{"handlers/hello.ts": helloFile})
	modules, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "app", CacheDir: toolchaintest.EngineCache(b)})
	if err != nil {
		b.Fatal(err)
	}
	engine := toolchaintest.NewEngine(b, sandbox.Options{})
	m := toolchaintest.Load(b, engine, filepath.Join(dir, modules[0].File))
	pair := func(name, value string) abi.Pair { return abi.Pair{Name: []byte(name), Value: []byte(value)} }
	request := abi.Request{
		ID: "01request", Route: "/v1/hello/:name", Method: []byte("POST"), Path: []byte("/v1/hello/ada"),
		Params:  []abi.Pair{pair("name", "ada")},
		Query:   []abi.Pair{pair("page", "2")},
		Headers: []abi.Pair{pair("host", "127.0.0.1:8080"), pair("user-agent", "curl/8.5.0"), pair("accept", "*/*"), pair("content-type", "application/json")},
		Body:    []byte(`{"item":"lamp","qty":3}`),
	}
	for _, handler := range []string{"nothing", "hello", "read", "greet", "order", "hundred", "later", "compute", "fails"} {
		class, request := 2, request
		if handler == "hundred" {
			request.Body = []byte(hundredRows())
		}
		if handler == "fails" {
			class = 5
		}
		b.Run(handler, func(b *testing.B) {
			call := &hostabi.Call{Input: hostabi.Input{
				Context: context.Background(),
				Host:    hostabi.NewHost(hostabi.Host{Logger: slog.New(slog.DiscardHandler), Limits: hostabi.Limits{CPU: time.Hour}}),
				Request: &request, Caller: caller.Caller{Kind: caller.Anonymous}, Attempt: 1,
			}}
			var all []sandbox.Usage
			for b.Loop() {
				usage, err := m.Measure(call, handler)
				if err != nil || call.Response.Status/100 != class {
					b.Fatal(call.Response.Status, err)
				}
				all = append(all, usage)
			}
			median := func(of func(sandbox.Usage) float64) float64 {
				list := make([]float64, len(all))
				for i, u := range all {
					list[i] = of(u)
				}
				slices.Sort(list)
				return list[len(list)/2]
			}
			b.ReportMetric(median(func(u sandbox.Usage) float64 { return float64(u.Time) }), "guest-ns")
			b.ReportMetric(median(func(u sandbox.Usage) float64 { return float64(u.Restore) }), "restore-ns")
			b.ReportMetric(median(func(u sandbox.Usage) float64 { return float64(u.ChangedPages) }), "pages")
			b.ReportMetric(median(func(u sandbox.Usage) float64 { return float64(u.Fuel) }), "fuel")
			b.ReportMetric(median(func(u sandbox.Usage) float64 { return float64(u.HostCalls) }), "calls")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkBuild is runner build with a compiled engine. BenchmarkLoad loads the result
// while another TypeScript module is loaded.
func BenchmarkBuild(b *testing.B) {
	dir, cache := toolchaintest.App(b, map[string]string{"handlers/hello.ts": helloFile}), b.TempDir()+"/cache"
	again := func() {
		if _, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "app", CacheDir: cache}); err != nil {
			b.Fatal(err)
		}
	}
	again()
	n, began := 0, time.Now()
	for b.Loop() {
		again()
		n++
	}
	b.ReportMetric(float64(time.Since(began).Microseconds())/1000/float64(n), "build-ms")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkLoad(b *testing.B) {
	engine := toolchaintest.NewEngine(b, sandbox.Options{})
	var paths []string
	for _, text := range []string{helloFile, helloFile + "export const other = () => 1;\n"} {
		dir := toolchaintest.App(b, map[string]string{"handlers/hello.ts": text})
		modules, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "app", CacheDir: toolchaintest.EngineCache(b)})
		if err != nil {
			b.Fatal(err)
		}
		paths = append(paths, filepath.Join(dir, modules[0].File))
	}
	toolchaintest.Load(b, engine, paths[0])
	n, took := 0, time.Duration(0)
	for b.Loop() {
		began := time.Now()
		m := toolchaintest.Load(b, engine, paths[1])
		took += time.Since(began)
		n++
		if err := m.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(took.Microseconds())/1000/float64(n), "load-ms")
	b.ReportMetric(0, "ns/op")
}
