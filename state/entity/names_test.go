package entity_test

import (
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
)

func TestErrorsDoNotNameFieldsHiddenFromTheCaller(t *testing.T) {
	h := newFixture(t, `app a
entity Note {
  id: id
  k: text = "k"
  open: text?
  secret: text = "s" @hidden
  @@unique(k, secret)
  @@unique(open)
  @@allow all to session
}
entity Needs {
  id: id
  n: int
  inner: int @hidden
  @@allow all to session
}
apiKeys { scopes: { s: @system("s") { @grant insert on Note fields (k, open, secret) } } }
auth { session cookie {} }
routes("/", auth: session, rateLimit: none) { GET /x -> x }`)
	h.must(reader, "insert", `{"into":"Note","values":{"open":"o"}}`)
	scoped := &caller.Caller{Kind: caller.APIKey, Scope: "s", Capability: "s", KeyID: "k"}
	for _, row := range []struct {
		who        *caller.Caller
		code       fault.Code
		into, give string
		want       string
	}{
		{reader, fault.Conflict, "Note", `{}`, "another Note has the same value in a unique field"},
		{reader, fault.Conflict, "Note", `{"k":"l","open":"o"}`, "open must be unique: another Note has the same value"},
		{scoped, fault.Conflict, "Note", `{}`, "k, secret must be unique together: another Note has the same values"},
		{reader, fault.Invalid, "Note", `{"k":"` + strings.Repeat("l", 20_000) + `"}`, "too long for an index: all indexed fields together may take 16384 bytes"},
		{reader, fault.Invalid, "Needs", `{"n":1}`, "values: the caller may not write a required field"},
		{reader, fault.Invalid, "Needs", `{}`, "values.n: is required"},
	} {
		_, err := h.do(row.who, "insert", `{"into":"`+row.into+`","values":`+row.give+`}`)
		if f := fault.Of(err); err == nil || f.Code != row.code || f.Detail != row.want {
			t.Errorf("%s %.40s: %v, want %s %q", row.into, row.give, err, row.code, row.want)
		}
	}
}
