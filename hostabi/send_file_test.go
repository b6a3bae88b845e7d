package hostabi_test

import (
	"fmt"
	"testing"
	"time"

	"runner.example/hostabi"
)

func TestARunAnswersWithAFile(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.call.SendsFiles = true
	id := g.must("file.create", `{"name":"größe.html","data":"<!DOCTYPE html><p>hello"}`)["id"].(string)
	for _, wrong := range []string{
		`{}`, `{"id":1}`, `{"id":%q,"status":99}`, `{"id":%q,"status":204}`, `{"id":%q,"status":206}`, `{"id":%q,"status":304}`, `{"id":%q,"status":600}`,
		`{"id":%q,"disposition":"form-data"}`, `{"id":%q,"name":"a/b"}`, `{"id":%q,"name":""}`, `{"id":%q,"name":"\u202egpj.exe"}`, `{"id":%q,"cache":"a\nb"}`, `{"id":%q,"other":1}`,
	} {
		args := wrong
		if len(wrong) > 10 {
			args = fmt.Sprintf(wrong, id)
		}
		if got, n := g.op("file.send", args); n != invalid || g.call.Response.Status != 0 {
			t.Errorf("%s: %d %v", args, n, got)
		}
	}
	if got, n := g.op("file.send", `{"id":"01h0000000000000000000000a"}`); n != notFound {
		t.Errorf("a file that the run does not know: %v", got)
	}
	g.must("file.send", fmt.Sprintf(`{"id":%q,"status":201,"cache":"private"}`, id))
	r := &g.call.Response
	headers := ""
	for _, h := range r.Headers {
		headers += fmt.Sprintf("%s: %s\n", h.Name, h.Value)
	}
	if want := "cache-control: private\ncontent-type: text/html; charset=utf-8\n" +
		`content-disposition: attachment; filename="gr__e.html"; filename*=UTF-8''gr%C3%B6%C3%9Fe.html` + "\nx-content-type-options: nosniff\n"; headers != want {
		t.Errorf("headers\n%s, want\n%s", headers, want)
	}
	if r.Status != 201 || r.File == nil || r.File.Size != 23 || time.Since(r.File.Modified) > time.Hour {
		t.Errorf("answer %d %+v", r.Status, r.File)
	}
	if got, n := g.op("file.send", fmt.Sprintf(`{"id":%q}`, id)); n != invalid {
		t.Errorf("a second answer: %v", got)
	}
	if g.call.Begin(); r.File != nil {
		t.Error("the next run has the answer of the last one")
	}
	id = g.must("file.create", `{"name":"a.html","data":"<!DOCTYPE html><script>1</script>"}`)["id"].(string)
	g.must("file.send", fmt.Sprintf(`{"id":%q,"disposition":"inline"}`, id))
	if last := r.Headers[len(r.Headers)-1]; string(last.Name) != "content-security-policy" || string(last.Value) != "sandbox" {
		t.Errorf("a page is inline with %s: %s", last.Name, last.Value)
	}
	g.call.Begin()
	g.call.SendsFiles = false
	id = g.must("file.create", `{"name":"a","data":"a"}`)["id"].(string)
	if got, n := g.op("file.send", fmt.Sprintf(`{"id":%q}`, id)); n != denied {
		t.Errorf("a run that cannot answer with a file: %v", got)
	}
}
