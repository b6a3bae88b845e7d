package front_test

import (
	"fmt"
	"strings"
	"testing"

	"runner.example/runtime/front"
)

func TestAHandlerSeesQueryAndHeadersInOneForm(t *testing.T) {
	s := newStage()
	startOn(t, s, front.Options{}, mirror)
	for _, row := range []struct{ name, target, headers, want string }{
		{"pairs in order", "/?b=1&a=2&b=3", "", "?b=1 ?a=2 ?b=3"},
		{"a name alone", "/?a&b=", "", "?a= ?b="},
		{"a value with =", "/?a=b=c", "", "?a=b=c"},
		{"empty pairs", "/?&&a=1&", "", "?a=1"},
		{"escapes and blanks", "/?a%20b=c+d%2Be%26", "", "?a b=c d+e&"},
		{"UTF-8", "/?a=%C3%A4\xc3\xa4", "", "?a=ää"},
		{"a path in a query", "/?u=http://a/../b//c", "", "?u=http://a/../b//c"},
		{"no pair in an empty query", "/?", "", ""},
		{"100 pairs", "/?" + strings.Repeat("a&", 99) + "a", "", strings.TrimSpace(strings.Repeat("?a= ", 100))},
		{"names in small letters", "/", "X-One: A\r\n", "x-one=A"},
		{"blanks around a value", "/", "X: \t a b \t\r\n", "x=a b"},
		{"lines of one name", "/", "X: a\r\nY: b\r\nx: c\r\nX:\r\n", "x=a, c,  y=b"},
		{"cookies", "/", "Cookie: a=1\r\nX: b\r\nCookie: b=2; c=3\r\n", "cookie=a=1; b=2; c=3 x=b"},
		{"headers of the hop", "/", "Connection: X-Mine, keep-alive\r\nX-Mine: 1\r\nKeep-Alive: 1\r\nTE: trailers\r\nTrailer: x\r\nUpgrade: h2c\r\nProxy-Connection: x\r\nProxy-Authorization: x\r\nProxy-Authenticate: x\r\nX: 1\r\n", "x=1"},
		{"reserved names", "/", "X-Runner-User: me\r\nx_runner_user: me\r\nX-Runner_User: me\r\nX-Runners: 1\r\n", "x-runners=1"},
		{"a twin", "/", "X_Forwarded_For: 1\r\nX-Forwarded_For: 2\r\nX-Forwarded-For: 3\r\n", "x-forwarded-for=3"},
		{"no twin", "/", "X_Forwarded_For: 1\r\n", "x_forwarded_for=1"},
		{"credentials pass on a route without auth", "/", "Authorization: Bearer a\r\nX-API-Key: b\r\nCookie: __Host-session=c\r\n", "authorization=Bearer a x-api-key=b cookie=__Host-session=c"},
	} {
		got := summary(t, s.play("GET "+row.target+" HTTP/1.1\r\nHost: a\r\n"+row.headers+"\r\n", 0))
		want := strings.ReplaceAll(fmt.Sprintf("200 GET / %s []", row.want), "  []", " []")
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s:\n got %q\nwant %q", row.name, got, want)
		}
	}
	for _, row := range []struct{ name, target string }{
		{"101 pairs", "/?" + strings.Repeat("a&", 101)},
		{"an escape that is none", "/?a=%zz"},
		{"an escape that is cut", "/?a=%2"},
		{"not UTF-8", "/?a=%ff"},
	} {
		got := summary(t, s.play("GET "+row.target+" HTTP/1.1\r\nHost: a\r\n\r\n"+second, 0))
		if len(got) != 2 || got[0] != "400 invalid_request" || got[1] != "200 GET /second []" {
			t.Errorf("%s: got %q", row.name, got)
		}
	}
}

func TestStrippedCredentialsAreNotInTheHeaders(t *testing.T) {
	s := newStage()
	startOn(t, s, front.Options{}, func(x *front.Exchange) {
		x.StripCredentials("__Host-session")
		mirror(x)
	})
	for _, row := range []struct{ headers, want string }{
		{"Authorization: Bearer secret\r\nX-API-Key: secret\r\nX: 1\r\n", "x=1"},
		{"authorization: secret\r\nAUTHORIZATION: secret\r\n", ""},
		{"Cookie: a=1; __Host-session=secret; b=2\r\n", "cookie=a=1; b=2"},
		{"Cookie: a=1;__Host-session=secret\r\nCookie: __Host-session =secret\r\n", "cookie=a=1"},
		{"Cookie: __Host-session=secret\r\n", ""},
		{"Cookie: __Host-session2=mine\r\n", "cookie=__Host-session2=mine"},
	} {
		got := summary(t, s.play("GET / HTTP/1.1\r\nHost: a\r\n"+row.headers+"\r\n", 0))
		want := strings.ReplaceAll("200 GET / "+row.want+" []", "  []", " []")
		if len(got) != 1 || got[0] != want {
			t.Errorf("%q: got %q, want %q", row.headers, got, want)
		}
	}
}

func TestCredentialsAreReturnedUnchanged(t *testing.T) {
	s := newStage()
	startOn(t, s, front.Options{}, func(x *front.Exchange) {
		c := x.Credentials()
		x.Send(text(200, fmt.Sprintf("%d %s, %d %s", c.AuthorizationLines, c.Authorization, c.APIKeyLines, c.APIKey)))
	})
	for _, row := range []struct{ headers, want string }{
		{"", "0 , 0 "},
		{"Authorization: Bearer a\r\n", "1 Bearer a, 0 "},
		{"x-api-key: b\r\n", "0 , 1 b"},
		{"X-API-Key: b\r\nAuthorization:\r\n", "1 , 1 b"},
		{"Authorization: a\r\nauthorization: b\r\nX-API-Key: c\r\nX-Api-Key: d\r\n", "2 b, 2 d"},
	} {
		got := summary(t, s.play("GET / HTTP/1.1\r\nHost: a\r\n"+row.headers+"\r\n", 0))
		if len(got) != 1 || got[0] != "200 "+row.want {
			t.Errorf("%q: got %q, want %q", row.headers, got, row.want)
		}
	}
}

func TestCookiesAndHeadersAreFoundAndCounted(t *testing.T) {
	s := newStage()
	startOn(t, s, front.Options{}, func(x *front.Exchange) {
		cookie, cookies := x.Cookie("__Host-session")
		header, lines := x.Header("origin")
		x.Send(text(200, fmt.Sprintf("%d %s, %d %s", cookies, cookie, lines, header)))
	})
	for _, row := range []struct{ headers, want string }{
		{"", "0 , 0 "},
		{"Cookie: __Host-session=v\r\nOrigin: https://a\r\n", "1 v, 1 https://a"},
		{"Cookie: a=1;__Host-session = v ; b=2\r\nORIGIN:\r\n", "1 v, 1 "},
		{"Cookie: __Host-session=a=b\r\n", "1 a=b, 0 "},
		{"Cookie: __Host-session=\"v\"\r\n", "1 \"v\", 0 "},
		{"Cookie: __Host-session\r\n", "1 , 0 "},
		{"Cookie: __Host-session=a; __Host-session=b\r\nOrigin: a\r\nOrigin: b\r\n", "2 b, 2 b"},
		{"Cookie: __Host-session=a\r\nCookie: x=1; __Host-session=b\r\n", "2 b, 0 "},
		{"Cookie: __Host-session2=a; x__Host-session=b; __host-session=c; x=__Host-session=d\r\n", "0 , 0 "},
	} {
		got := summary(t, s.play("GET / HTTP/1.1\r\nHost: a\r\n"+row.headers+"\r\n", 0))
		if len(got) != 1 || got[0] != "200 "+row.want {
			t.Errorf("%q: got %q, want %q", row.headers, got, row.want)
		}
	}
}

func TestOnlyTheNamedCookieIsStripped(t *testing.T) {
	for _, row := range []struct{ name, headers, want string }{
		{"sid", "Cookie: sid=secret; __Host-session=mine; a=1\r\n", "cookie=__Host-session=mine; a=1"},
		{"sid", "Cookie: a=1; sid\r\nCookie:  sid = secret ;b=2\r\n", "cookie=a=1; b=2"},
		{"", "Authorization: secret\r\nCookie: __Host-session=mine\r\n", "cookie=__Host-session=mine"},
	} {
		s := newStage()
		startOn(t, s, front.Options{}, func(x *front.Exchange) {
			x.StripCredentials(row.name)
			mirror(x)
		})
		got := summary(t, s.play("GET / HTTP/1.1\r\nHost: a\r\n"+row.headers+"\r\n", 0))
		if want := "200 GET / " + row.want + " []"; len(got) != 1 || got[0] != want {
			t.Errorf("%q without %q: got %q, want %q", row.headers, row.name, got, want)
		}
	}
}

func TestNothingOfOneRequestIsLeftForTheNext(t *testing.T) {
	s := newStage()
	startOn(t, s, front.Options{}, func(x *front.Exchange) {
		if x.Realm != "" || x.Private || x.Status() != 0 || x.Request.Route != "" || len(x.Request.Params) > 0 ||
			len(x.Request.Query) > 0 && string(x.Request.Method) == "GET" || len(x.Request.Headers) > 0 || len(x.Request.Body) > 0 {
			t.Errorf("an exchange begins with %+v", x)
		}
		x.Realm, x.Private, x.Request.Route = "r", true, "/:p"
		x.Request.Params = append(x.Request.Params, x.Request.Headers...)
		if string(x.Request.Method) == "POST" {
			x.StripCredentials("__Host-session")
		}
		mirror(x)
	})
	s.play("POST /?q=secret HTTP/1.1\r\nHost: a\r\nX-Secret: secret\r\nX-Secret: secret\r\nContent-Length: 6\r\n\r\nsecret"+
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0)
	out := string(s.play("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: mine\r\n\r\n", 0))
	if strings.Contains(out, "secret") || !strings.Contains(out, "authorization=mine") {
		t.Errorf("%q", out)
	}
}
