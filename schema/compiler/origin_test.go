package compiler_test

import (
	"fmt"
	"strings"
	"testing"

	"runner.example/internal/diag"
	"runner.example/schema/compiler"
)

// TestOriginsAreThoseThatHandlersReach: what no setting lets a handler reach is an error under each.
func TestOriginsAreThoseThatHandlersReach(t *testing.T) {
	for origin, want := range map[string]struct{ public, private bool }{
		"https://api.example.com":      {true, true},
		"https://api.example.com:8443": {true, true},
		"http://10.0.0.1:8080":         {false, true},
		"http://100.64.0.1":            {false, true}, // carrier-grade NAT
		"https://127.0.0.1":            {false, true},
		"http://localhost:3000":        {false, true},
		"https://[fd00::1]":            {false, true},
		"http://localhost:99999":       {false, false},
		"http://10.0.0.1:0":            {false, false},
		"http://169.254.169.254":       {false, false},
		"http://100.100.100.200":       {false, false}, // a metadata service in a private range
		"http://[fd00:ec2::254]":       {false, false},
		"http://[::ffff:a9fe:a9fe]":    {false, false},
		"http://[fe80::1]":             {false, false},
		"http://0.0.0.0:8080":          {false, false},
		"http://224.0.0.1":             {false, false},
		"https://8.8.8.8":              {false, false},
	} {
		for _, private := range []bool{false, true} {
			text := fmt.Sprintf("outbound { allow: [%q] }", origin)
			s, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{AllowPrivate: private})
			accepted := want.public || private && want.private
			switch {
			case accepted && (s == nil || len(s.Outbound) != 1):
				t.Errorf("%s, allow_private %v: %v", origin, private, found)
			case !accepted && (len(found) != 1 || !strings.HasPrefix(found[0].String(), "app.schema:1:20: error[E520]")):
				t.Errorf("%s, allow_private %v is accepted: %v", origin, private, found)
			}
		}
		// A release of an older version can still be compared with the next one.
		text := fmt.Sprintf("outbound { allow: [%q] }", origin)
		if s, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Checked()); s == nil || len(s.Outbound) != 1 {
			t.Errorf("%s was checked before: %v", origin, found)
		}
	}
}

// TestAReleaseThatWasAcceptedStillCompiles: an upgrade cannot take away what is served. What older versions refused as well
// stays an error: a setting has changed since then.
func TestAReleaseThatWasAcceptedStillCompiles(t *testing.T) {
	const jwt = `auth { session jwt { issuer: "i" audience: "a" jwks: "%s" algorithms: [RS256] } }`
	for text, want := range map[string]string{
		`outbound { allow: ["https://api.example.com:99999"] }`:           "1:20: warning[E520]",
		`outbound { allow: ["https://api.example.com:"] }`:                "1:20: warning[E520]",
		`outbound { allow: ["http://169.254.169.254"] }`:                  "1:20: warning[E520]",
		fmt.Sprintf(jwt, "https://login.example.com:99999/keys"):          "1:54: warning[E530]",
		`outbound { allow: ["http://10.0.0.1"] }`:                         "1:20: error[E520]",
		`outbound { allow: ["https://api.example.com/path"] }`:            "1:20: error[E520]",
		fmt.Sprintf(jwt, "http://login.example.com/keys"):                 "1:54: error[E530]",
		`routes("/", auth: none, rateLimit: none) { GET /_live -> a }`:    "1:48: warning[E426]",
		`routes("/_files", auth: none, rateLimit: none) { GET /:a -> a }`: "1:54: warning[E426]",
	} {
		s, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{Accepted: true})
		if len(found) != 1 || !strings.HasPrefix(found[0].String(), "app.schema:"+want) || (s == nil) != found.HasErrors() {
			t.Errorf("%s: %v, want %s", text, found, want)
		}
		if s != nil && strings.HasPrefix(text, "outbound") && len(s.Outbound) != 1 {
			t.Errorf("%s: the origin is left out", text)
		}
	}
}
