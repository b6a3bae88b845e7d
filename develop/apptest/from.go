package apptest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"runner.example/hostabi/recording"
	"runner.example/internal/caller"
	"runner.example/schema"
)

// FromRecording returns the text of a test file that repeats a recorded run: with the rows that it read, and its request. What
// it should answer is left to the author: as written, the test fails as the run did. name is the name of the file.
func FromRecording(r *recording.Recording, s *schema.Schema) (name string, text []byte) {
	f := &fromRecording{recording: r, imports: map[string]bool{"expect": true, "test": true}}
	f.rows(s)
	switch r.Kind {
	case "job":
		f.job()
	case "call":
		f.call()
	default:
		f.request()
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "// Repeats %s %s, as it was recorded: say what it should answer instead.\n", r.Kind, r.ID)
	fmt.Fprintf(&out, "import { %s } from \"@runner/test\";\n\n", strings.Join(slices.Sorted(maps.Keys(f.imports)), ", "))
	fmt.Fprintf(&out, "test(%s, async () => {\n%s});\n", script(r.Handler+" as in "+r.ID), f.body.String())
	return "test/" + notInFiles.ReplaceAllString(r.Handler, "_") + "-" + r.ID + ".test.ts", out.Bytes()
}

var notInFiles = regexp.MustCompile(`[^A-Za-z0-9_]+`)

type fromRecording struct {
	recording *recording.Recording
	imports   map[string]bool
	body      bytes.Buffer
}

func (f *fromRecording) line(format string, args ...any) {
	fmt.Fprintf(&f.body, "  "+format+"\n", args...)
}

// script returns a value as it is written in TypeScript.
func script(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "undefined"
	}
	return strings.TrimSpace(out.String())
}

// rows inserts the rows that the run read before it wrote any.
func (f *fromRecording) rows(s *schema.Schema) {
	type key struct{ entity, id string }
	rows, order := map[key]map[string]json.RawMessage{}, []key(nil)
	for i := range f.recording.Events {
		e := &f.recording.Events[i]
		if e.Name != "query" && e.Name != "get" || e.Error != nil {
			continue
		}
		var asked struct {
			From string `json:"from"`
		}
		var read struct {
			Rows []map[string]json.RawMessage `json:"rows"`
			Row  map[string]json.RawMessage   `json:"row"`
		}
		if json.Unmarshal(e.Args, &asked) != nil || json.Unmarshal(e.Result, &read) != nil {
			continue
		}
		if read.Row != nil {
			read.Rows = append(read.Rows, read.Row)
		}
		for _, row := range read.Rows {
			k := key{asked.From, string(row["id"])}
			if rows[k] == nil {
				rows[k] = map[string]json.RawMessage{}
				order = append(order, k)
			}
			maps.Copy(rows[k], row)
		}
	}
	if len(order) == 0 {
		return
	}
	f.imports["rows"] = true
	f.line("// The rows that the handler read. What it did not select is missing here.")
	for _, k := range order {
		row := rows[k]
		if e := s.Entity(k.entity); e != nil {
			maps.DeleteFunc(row, func(name string, _ json.RawMessage) bool { // rows of other entities
				field := e.Field(name)
				return field == nil || field.Type.Kind == schema.ToMany
			})
		}
		f.line("await rows(%s).insert(%s);", script(k.entity), script(row))
	}
	f.body.WriteString("\n")
}

// was describes what the run did, which the author replaces.
func (f *fromRecording) was() {
	f.line("// It was: %s", strings.ReplaceAll(f.recording.Outcome.Describe(), "\n", " "))
}

func (f *fromRecording) request() {
	r := f.recording
	f.imports["as"] = true
	f.line("const caller = %s;", f.caller())
	path := string(r.Request.Path)
	if r.Request.RawQuery != nil {
		path += "?" + string(*r.Request.RawQuery)
	}
	init := map[string]any{"method": string(r.Request.Method)}
	headers := [][2]string{}
	for _, h := range r.Request.Headers {
		if name := http.CanonicalHeaderKey(string(h[0])); !slices.Contains(notRepeated, name) {
			headers = append(headers, [2]string{string(h[0]), string(h[1])})
		}
	}
	if len(headers) > 0 {
		init["headers"] = headers
	}
	body := r.Request.Body
	if r.Request.Sent != nil {
		body = *r.Request.Sent
	}
	if len(body) > 0 {
		init["body"] = string(body)
	}
	f.line("const answer = await caller.fetch(%s, %s);", script(path), script(init))
	f.was()
	f.line("expect(answer.status).toBe(200);")
}

// notRepeated are headers of a request that the test's own has.
var notRepeated = []string{
	"Accept", "Accept-Encoding", "Authorization", "Connection", "Content-Length", "Cookie", "Host", "User-Agent", "X-Api-Key",
}

// caller returns the call that makes a client like the caller of the run.
func (f *fromRecording) caller() string {
	c := &f.recording.Caller
	options := map[string]any{}
	if c.Tenant != "" {
		options["tenant"] = c.Tenant
	}
	switch c.Kind {
	case caller.APIKey.String():
		if len(c.Metadata) > 0 {
			options["metadata"] = c.Metadata
		}
		if len(options) == 0 {
			return fmt.Sprintf("as.key(%s)", script(c.Scope))
		}
		return fmt.Sprintf("as.key(%s, %s)", script(c.Scope), script(options))
	case caller.Session.String():
		if len(c.Claims) > 0 {
			return fmt.Sprintf("as.jwt(%s)", c.Claims)
		}
		options["user"], options["roles"] = c.User, append([]string{}, c.Roles...)
		return fmt.Sprintf("as.session(%s)", script(options))
	}
	return "as.anonymous()"
}

// options are the third argument of a call or a job.
func (f *fromRecording) options() string {
	if tenant := f.recording.Caller.Tenant; tenant != "" {
		return ", " + script(map[string]string{"tenant": tenant})
	}
	return ""
}

func (f *fromRecording) params() string { return cmp.Or(string(f.recording.Request.Body), "{}") }

func (f *fromRecording) job() {
	f.imports["jobs"] = true
	f.line("await jobs.enqueue(%s, %s%s);", script(f.recording.Handler), f.params(), f.options())
	f.line("const [ran] = await jobs.run();")
	f.was()
	f.line("expect(ran.state).toBe(\"done\");")
}

func (f *fromRecording) call() {
	f.imports["call"] = true
	f.line("const answer = await call(%s, %s%s);", script(f.recording.Handler), f.params(), f.options())
	f.was()
	f.line("expect(answer.status).toBe(200);")
}
