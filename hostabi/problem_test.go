package hostabi_test

import (
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
)

func TestAProblemHasACodeAndMembersOfTheHandler(t *testing.T) {
	for _, tt := range []struct {
		args, code, detail, members string
		wrong                       string // a part of the error; empty: none
	}{
		{`{"status":402,"code":"no_credit","detail":"buy more","members":{ "balance": 3, "links": [ "/a" ] }}`, "no_credit", "buy more", `"balance":3,"links":["/a"]`, ""},
		{`{"status":409}`, "conflict", "", "", ""},
		{`{"status":422,"members":{}}`, "error", "", "", ""},
		{`{"status":422,"members":{"errors":[{"field":"a","message":"b"}]}}`, "error", "", `"errors":[{"field":"a","message":"b"}]`, ""},
		{`{"status":422,"members":{"errors":[{"field":"a"}]}}`, "", "", "", "members.errors must be"},
		{`{"status":422,"members":{"errors":null}}`, "", "", "", "members.errors must be"},
		{`{"status":422,"members":{"errors":[{"Field":"a","MESSAGE":"b"}]}}`, "", "", "", "members.errors must be"},
		{`{"status":422,"members":{"errors":[{"field":"a","message":"b","value":1}]}}`, "", "", "", "members.errors must be"},
		{`{"status":422,"members":{"errors":"no"}}`, "", "", "", "members.errors must be"},
		{`{"status":399}`, "", "", "", "from 400 to 599"},
		{`{"code":"x"}`, "", "", "", "from 400 to 599"},
		{`{"status":402,"code":"No Credit"}`, "", "", "", "snake_case"},
		{`{"status":402,"code":"` + strings.Repeat("a", 65) + `"}`, "", "", "", "snake_case"},
		{`{"status":402,"detail":"` + strings.Repeat("a", 8<<10+1) + `"}`, "", "", "", "8 KiB"},
		{`{"status":402,"members":[]}`, "", "", "", "must be an object"},
		{`{"status":402,"title":"x"}`, "", "", "", "unknown member"},
		{`{"status":402,"members":{"type":"x"}}`, "", "", "", "members.type is set by the host"},
		{`{"status":402,"members":{"title":"x"}}`, "", "", "", "members.title is set by the host"},
		{`{"status":402,"members":{"st\u0061tus":200}}`, "", "", "", "members.status is set by the host"},
		{`{"status":402,"members":{"detail":"x"}}`, "", "", "", "members.detail is set by the host"},
		{`{"status":402,"members":{"instance":"x"}}`, "", "", "", "members.instance is set by the host"},
		{`{"status":402,"members":{"code":"x"}}`, "", "", "", "members.code is set by the host"},
		{`{"status":402,"members":{"requestId":"x"}}`, "", "", "", "members.requestId is set by the host"},
		{`{"status":402,"members":{"request_id":"x"}}`, "", "", "", "members.request_id is set by the host"},
	} {
		g := newGuest(t, hostabi.Limits{})
		g.do("response_header", "content-type", "text/plain")
		g.do("response_header", "x-a", "b")
		result, n := g.op("problem", tt.args)
		message, _ := result["message"].(string)
		if tt.wrong != "" {
			if n != int32(abi.Invalid) || !strings.Contains(message, tt.wrong) || g.call.Response.Status != 0 {
				t.Errorf("%.100s: %d %q, which should say %q; answered %d", tt.args, n, message, tt.wrong, g.call.Response.Status)
			}
			continue
		}
		r := &g.call.Response
		if n < 0 || r.Status < 400 || r.Code != tt.code || r.Detail != tt.detail || string(r.Members) != tt.members || len(r.Headers) != 1 {
			t.Errorf("%s: %d %v, answered %+v", tt.args, n, result, r)
		}
		if _, n := g.op("problem", tt.args); n != int32(abi.Invalid) {
			t.Errorf("%s: a second answer is %d", tt.args, n)
		}
		if n := g.do("response_send", 200, "x"); n != int32(abi.Invalid) {
			t.Errorf("%s: another answer is %d", tt.args, n)
		}
	}
}
