package router_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"runner.example/runtime/router"
)

// sampleRoutes is a set of routes with every kind of neighbourhood in it.
var sampleRoutes = []router.Route{
	0:  {"GET", "/"},
	1:  {"GET", "/a/b/d"},
	2:  {"GET", "/a/:x/c"},
	3:  {"GET", "/a/:x"},
	4:  {"POST", "/a/:other"},
	5:  {"GET", "/files/*path"},
	6:  {"GET", "/files/:one/meta"},
	7:  {"DELETE", "/files/:one"},
	8:  {"HEAD", "/own/:x"},
	9:  {"GET", "/own/fixed"},
	10: {"OPTIONS", "/own/:x"},
	11: {"PUT", "/:x/:y/z"},
	12: {"PATCH", "/*all"},
	13: {"GET", "/trail/"},
	14: {"GET", "/..x"},
	15: {"POST", "/only/post"},
	16: {"GET", "/deep/:a/:b/*c"},
	17: {"GET", "/deep/:a/two/:b"},
}

func TestTheMoreLiteralRouteWins(t *testing.T) {
	r := router.New(sampleRoutes)
	rows := []struct {
		method, target string
		route          int
		params         []string
	}{
		{"GET", "/", 0, nil},
		{"GET", "/a/b/d", 1, nil},
		{"GET", "/a/b/c", 2, []string{"x=b"}},
		{"GET", "/a/b", 3, []string{"x=b"}},
		{"POST", "/a/b", 4, []string{"other=b"}},
		{"GET", "/files/x", 5, []string{"path=x"}},
		{"GET", "/files/x/y/z", 5, []string{"path=x/y/z"}},
		{"GET", "/files/x/", 5, []string{"path=x/"}},
		{"GET", "/files/x/meta", 6, []string{"one=x"}},
		{"GET", "/files/x/meta/", 5, []string{"path=x/meta/"}},
		{"HEAD", "/a/b/d", 1, nil},
		{"HEAD", "/own/fixed", 8, []string{"x=fixed"}},
		{"GET", "/own/fixed", 9, nil},
		{"OPTIONS", "/own/fixed", 10, []string{"x=fixed"}},
		{"PUT", "/a/b/z", 11, []string{"x=a", "y=b"}},
		{"PATCH", "/a/b/z", 12, []string{"all=a/b/z"}},
		{"GET", "/trail/", 13, nil},
		{"GET", "/..x", 14, nil},
		{"GET", "/deep/1/two/3", 17, []string{"a=1", "b=3"}},
		{"GET", "/deep/1/two/3/4", 16, []string{"a=1", "b=two", "c=3/4"}},
		{"GET", "/a/;v=1", 3, []string{"x=;v=1"}},
	}
	for _, row := range rows {
		want := found{Outcome: router.Found, Route: row.route, Params: row.params}
		if diff := cmp.Diff(want, ask(r, row.method, row.target)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", row.method, row.target, diff)
		}
	}
}

func TestARouteOfAnyMethodHasEverythingBelowItsPath(t *testing.T) {
	r := router.New([]router.Route{
		0: {"ANY", "/shop/*"},
		1: {"GET", "/shop/health"},
		2: {"POST", "/shop/:id"},
		3: {"ANY", "/t/:tenant/*"},
		4: {"ANY", "/*rest"},
		5: {"GET", "/shop"},
		6: {"ANY", "/one"},
		7: {"DELETE", "/files/*"},
	})
	for _, row := range []struct {
		method, target string
		route          int
		params         []string
	}{
		{"GET", "/shop", 5, nil},
		{"HEAD", "/shop", 5, nil},
		{"POST", "/shop", 0, nil},
		{"GET", "/shop/", 0, nil},
		{"GET", "/shop/a/b", 0, nil},
		{"GET", "/shop/health", 1, nil},
		{"HEAD", "/shop/health", 1, nil},
		{"PUT", "/shop/health", 0, nil},
		{"POST", "/shop/5", 2, []string{"id=5"}},
		{"PATCH", "/shop/5", 0, nil},
		{"DELETE", "/t/a/x/y", 3, []string{"tenant=a"}},
		{"GET", "/t/a", 3, []string{"tenant=a"}},
		{"GET", "/t/a/", 3, []string{"tenant=a"}},
		{"GET", "/t", 4, []string{"rest=t"}},
		{"GET", "/one", 6, nil},
		{"PUT", "/one", 6, nil},
		{"DELETE", "/files", 7, nil},
		{"DELETE", "/files/x", 7, nil},
		{"GET", "/files/x", 4, []string{"rest=files/x"}},
	} {
		want := found{Outcome: router.Found, Route: row.route, Params: row.params}
		if diff := cmp.Diff(want, ask(r, row.method, row.target)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", row.method, row.target, diff)
		}
	}
	if got := ask(r, "OPTIONS", "/shop/x"); got.Outcome != router.Options {
		t.Errorf("OPTIONS: %v", got)
	}
	if got := ask(r, "GET", "/"); got.Outcome != router.NotFound {
		t.Errorf("a rest with a name, and nothing left: %v", got)
	}
	if got := ask(router.New([]router.Route{{"ANY", "/*"}}), "GET", "/"); got.Outcome != router.Found {
		t.Errorf("everything below /: %v", got)
	}
}

func TestParametersAreDecodedOnceAfterTheMatch(t *testing.T) {
	r := router.New(sampleRoutes)
	rows := []struct{ target, param string }{
		{"/a/%41", "x=A"},
		{"/a/%252F", "x=%2F"},
		{"/a/%2525", "x=%25"},
		{"/a/a+b", "x=a+b"},
		{"/a/%20", "x= "},
		{"/a/%3F%23", "x=?#"},
		{"/a/%C3%A9", "x=é"},
		{"/a/\xC3%A9", "x=é"},
		{"/a/é", "x=é"},
		{"/a/%2e%2e%2e", "x=..."},
		{"/files/%61/b%20c", "path=a/b c"},
		{"/files/%252F/b", "path=%2F/b"},
	}
	for _, row := range rows {
		got := ask(r, "GET", row.target)
		if diff := cmp.Diff([]string{row.param}, got.Params); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.target, diff)
		}
	}
}

func TestAnEncodedSegmentIsNotTheLiteralOne(t *testing.T) {
	r := router.New(sampleRoutes)
	if got := ask(r, "POST", "/only/pos%74"); got.Outcome != router.MethodNotAllowed {
		t.Errorf("POST /only/pos%%74 gave %v, want MethodNotAllowed", got)
	}
	if got := ask(r, "GET", "/own/f%69xed"); got.Outcome == router.Found {
		t.Errorf("GET /own/f%%69xed gave route %d", got.Route)
	}
}

// TestAnEncodingDoesNotHideTheRouteThatAHandlerSees asks for a part of an application that a route of its own protects.
func TestAnEncodingDoesNotHideTheRouteThatAHandlerSees(t *testing.T) {
	r := router.New([]router.Route{
		{"ANY", "/shop/*"}, {"ANY", "/shop/admin/*"}, {"GET", "/users/:name"}, {"GET", "/users/me"},
	})
	for _, target := range []string{"/shop/%61dmin", "/shop/adm%69n/", "/shop/%61%64%6D%69%6e/users", "/users/m%65"} {
		for _, method := range []string{"GET", "HEAD"} {
			if got := ask(r, method, target); got.Outcome != router.BadPath {
				t.Errorf("%s %s gave %v, want BadPath", method, target, got)
			}
		}
	}
	for target, route := range map[string]int{"/shop/%61dmins": 0, "/shop/a%20b": 0, "/shop/admin/%61": 1, "/users/%6De%20": 2, "/users/me": 3} {
		if got := ask(r, "GET", target); got.Outcome != router.Found || got.Route != route {
			t.Errorf("GET %s gave %v, want route %d", target, got, route)
		}
	}
}

func TestInvalidPathsAreBadEvenWithoutARoute(t *testing.T) {
	r := router.New(sampleRoutes)
	for _, target := range []string{
		"", "*", "a/b", "http://host/a", "//host", "//", "/a//b", "/a//", "/files///x",
		"/.", "/..", "/a/./b", "/a/../b", "/files/..", "/%2e", "/%2E%2e", "/.%2e/x", "/nowhere/%2e.",
		"/a%2Fb", "/a/%2f", "/files/%2F", "/%5C", "/%5c", `/\`, `/a\b`,
		"/a/\x00", "/a/%00", "/a/\r\n", "/a/%0d%0a", "/a/\x7f", "/a/%7F", "/a/%C2%85", "/a/\xC2\x85", "/a/\t", "/a/ b",
		"/%", "/%2", "/%zz", "/%a", "/a/%4g", "/a/%%", "/a/%u0041",
		"/a/\xff", "/a/%ff", "/a/%C3", "/a/%ED%A0%80", "/a/%C0%AF", "/a/#x", "/a?x",
	} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "DELETE"} {
			if got := ask(r, method, target); got.Outcome != router.BadPath {
				t.Errorf("%s %q gave %v, want BadPath", method, target, got)
			}
		}
	}
}

func TestNeitherAParameterNorARestIsEverEmpty(t *testing.T) {
	r := router.New(sampleRoutes)
	for _, target := range []string{"/a/", "/files/", "/deep/1/2/", "/files", "/a"} {
		if got := ask(r, "GET", target); got.Outcome == router.Found {
			t.Errorf("GET %s gave route %d with %v", target, got.Route, got.Params)
		}
	}
	if got := ask(r, "PATCH", "/"); got.Outcome != router.MethodNotAllowed {
		t.Errorf("PATCH / gave %v, want MethodNotAllowed", got)
	}
}

func TestParametersAndRestsDoNotMatchReservedPaths(t *testing.T) {
	r := router.New([]router.Route{
		{"GET", "/:page"}, {"POST", "/:a/:b"}, {"PUT", "/*all"}, {"POST", "/_call/make"}, {"OPTIONS", "/:a/:b"},
	})
	for _, target := range []string{"/_health", "/_health/", "/_health/x", "/_files", "/_files/x", "/_call", "/_call/", "/_call/other", "/_call/make/", "/%5Fhealth", "/%5f%68%65%61%6c%74%68", "/%5Fcall/make", "/_cal%6c/x"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "OPTIONS"} {
			if got := ask(r, method, target); got.Outcome != router.NotFound {
				t.Errorf("%s %s gave %+v, want NotFound", method, target, got)
			}
		}
	}
	for target, want := range map[string]found{
		"/_call/make": {Outcome: router.Found, Route: 3},
		"/_calls/x":   {Outcome: router.Found, Route: 1, Params: []string{"a=_calls", "b=x"}},
		"/%5Fcalls/x": {Outcome: router.Found, Route: 1, Params: []string{"a=_calls", "b=x"}},
		"/x/_call":    {Outcome: router.Found, Route: 1, Params: []string{"a=x", "b=_call"}},
	} {
		if diff := cmp.Diff(want, ask(r, "POST", target)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
	want := found{Outcome: router.MethodNotAllowed, Allow: "POST, OPTIONS"}
	if diff := cmp.Diff(want, ask(r, "GET", "/_call/make")); diff != "" {
		t.Errorf("GET of a function (-want +got):\n%s", diff)
	}
}

func TestAPathOfOtherMethodsListsThem(t *testing.T) {
	r := router.New(sampleRoutes)
	rows := []struct {
		method, target string
		outcome        router.Outcome
		allow          string
	}{
		{"POST", "/a/b/d", router.MethodNotAllowed, "GET, HEAD, PATCH, OPTIONS"},
		{"DELETE", "/only/post", router.MethodNotAllowed, "POST, PATCH, OPTIONS"},
		{"HEAD", "/only/post", router.MethodNotAllowed, "POST, PATCH, OPTIONS"},
		{"POST", "/files/x", router.MethodNotAllowed, "GET, HEAD, PATCH, DELETE, OPTIONS"},
		{"OPTIONS", "/files/x", router.Options, "GET, HEAD, PATCH, DELETE, OPTIONS"},
		{"OPTIONS", "/", router.Options, "GET, HEAD, OPTIONS"},
		{"BREW", "/", router.MethodNotAllowed, "GET, HEAD, OPTIONS"},
		{"get", "/", router.MethodNotAllowed, "GET, HEAD, OPTIONS"},
		{"GET", "/nowhere", router.MethodNotAllowed, "PATCH, OPTIONS"},
	}
	for _, row := range rows {
		want := found{Outcome: row.outcome, Allow: row.allow}
		if diff := cmp.Diff(want, ask(r, row.method, row.target)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", row.method, row.target, diff)
		}
	}
	if got := ask(router.New(sampleRoutes[:12]), "OPTIONS", "/nowhere"); got.Outcome != router.NotFound {
		t.Errorf("OPTIONS of an unknown path gave %v, want NotFound", got)
	}
}

func TestARouterWithoutRoutesFindsNothing(t *testing.T) {
	if got := ask(router.New(nil), "GET", "/"); got.Outcome != router.NotFound {
		t.Errorf("got %v, want NotFound", got)
	}
}

func TestRoutesThatASchemaCannotHoldPanic(t *testing.T) {
	for name, routes := range map[string][]router.Route{
		"unknown method":   {{"get", "/"}},
		"relative":         {{"GET", "a"}},
		"one shape":        {{"GET", "/:a"}, {"GET", "/:b"}},
		"rest before more": {{"GET", "/*a/b"}},
		"two rests":        {{"GET", "/*a"}, {"GET", "/*b"}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			router.New(routes)
		})
	}
}

// segments are few, so that random templates and random targets meet.
var segments = []string{"a", "b", "c", "ab", "_call", ":x", ":y"}

func routesGen() *rapid.Generator[[]router.Route] {
	route := rapid.Custom(func(t *rapid.T) router.Route {
		path, names := "", 0
		for _, s := range rapid.SliceOfN(rapid.SampledFrom(segments), 0, 5).Draw(t, "segments") {
			if s[0] == ':' {
				s = fmt.Sprintf("%s%d", s, names)
				names++
			}
			path += "/" + s
		}
		if rapid.IntRange(0, 4).Draw(t, "rest") == 0 {
			path += "/*all"
		}
		if path == "" {
			path = "/"
		}
		return router.Route{Method: rapid.SampledFrom([]string{"GET", "HEAD", "POST", "OPTIONS"}).Draw(t, "method"), Path: path}
	})
	return rapid.Map(rapid.SliceOfN(route, 0, 40), distinct)
}

func TestRandomRoutesAgreeWithANaiveRouter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		routes := routesGen().Draw(t, "routes")
		r := router.New(routes)
		for range 20 {
			target := ""
			for _, s := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "ab", "_call", "_files", "_health", "%5Fcall", "_healt%68", "%61", "x", "", "..", "%2e"}), 1, 6).Draw(t, "target") {
				target += "/" + s
			}
			method := rapid.SampledFrom([]string{"GET", "HEAD", "POST", "PUT", "OPTIONS"}).Draw(t, "method")
			if diff := cmp.Diff(oracle(routes, method, target), ask(r, method, target)); diff != "" {
				t.Fatalf("%s %s (-slow +router):\n%s", method, target, diff)
			}
		}
	})
}

func TestAnOptionsRequestFindsTheRoutesOfOtherMethods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := router.New(routesGen().Draw(t, "routes"))
		target := "/" + rapid.SampledFrom([]string{"a", "a/b", "a/b/c", "ab", "_call", "", ".."}).Draw(t, "target")
		var options, other router.Match
		r.Match([]byte("OPTIONS"), []byte(target), &options)
		for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS", "BREW"} {
			route, ok := options.RouteOf([]byte(method))
			found := r.Match([]byte(method), []byte(target), &other) == router.Found
			if ok != found || ok && route != other.Route {
				t.Fatalf("%s of %s: route %d, %v; Match found %d, %v", method, target, route, ok, other.Route, found)
			}
		}
	})
}

func FuzzRouteEqualsOracle(f *testing.F) {
	for _, target := range []string{"/", "/a/b/d", "/a/%41/c", "/files/%2e%2e/x", "/deep/1/two/3/4", "//", "/a/\xC3%A9", "/%", "/_call/x", "/_health", "/%5Fcall/x", "/%5f%48ealth"} {
		f.Add("GET", target)
		f.Add("OPTIONS", target)
	}
	r := router.New(sampleRoutes)
	f.Fuzz(func(t *testing.T, method, target string) {
		if diff := cmp.Diff(oracle(sampleRoutes, method, target), ask(r, method, target)); diff != "" {
			t.Fatalf("%q %q (-slow +router):\n%s", method, target, diff)
		}
	})
}

// thousand is an API of 1,000 routes.
func thousand() []router.Route {
	var routes []router.Route
	for i := range 200 {
		base := fmt.Sprintf("/v1/resource%d", i)
		routes = append(routes,
			router.Route{"GET", base}, router.Route{"POST", base}, router.Route{"GET", base + "/:id"},
			router.Route{"DELETE", base + "/:id"}, router.Route{"GET", base + "/:id/items/:item"})
	}
	return routes
}

var targets = []string{"/v1/resource7", "/v1/resource199/4711", "/v1/resource80/4%37/items/12", "/v1/nowhere", "/v1/resource5//"}

func TestAMatchAllocatesNothing(t *testing.T) {
	r, method, m := router.New(thousand()), []byte("GET"), &router.Match{}
	for _, target := range targets {
		raw := []byte(target)
		if n := testing.AllocsPerRun(5000, func() { r.Match(method, raw, m) }); n != 0 {
			t.Errorf("GET %s: %v allocations, want 0", target, n)
		}
	}
}

func BenchmarkMatchAmongThousandRoutes(b *testing.B) {
	r, method, m := router.New(thousand()), []byte("GET"), &router.Match{}
	for _, target := range targets {
		raw := []byte(target)
		b.Run(target, func(b *testing.B) {
			for b.Loop() {
				r.Match(method, raw, m)
			}
		})
	}
}
