package conformance_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"runner.example/hostabi/abi"
)

// recorder listens to calls of the host's functions. An engine created without it has no
// cost for that. One guest runs at a time.
type recorder struct {
	names map[string]string // of ids, in this case
	lines []string
	quiet bool // the last call has no line, or shows no errno

	service string // its origin
}

// computed are the operations without effects, which an SDK may compute itself.
var computed = []string{"digest", "hmac", "timingSafeEqual", "crypto.importKey", "crypto.sign", "crypto.verify"}

// isTraced reports whether calls of a function have lines.
func isTraced(name string) bool {
	return !strings.HasPrefix(name, "request_") && name != "context" && name != "call_result"
}

// listening returns the context for an engine with the recorder.
func (r *recorder) listening(ctx context.Context) context.Context {
	return experimental.WithFunctionListenerFactory(ctx, experimental.FunctionListenerFactoryFunc(
		func(f api.FunctionDefinition) experimental.FunctionListener {
			if f.ModuleName() != abi.Module || !isTraced(f.Name()) {
				return nil
			}
			return r
		}))
}

// Before writes the line of a call, before the call changes the guest's memory.
func (r *recorder) Before(_ context.Context, m api.Module, f api.FunctionDefinition, words []uint64, _ experimental.StackIterator) {
	var numbers []int
	var texts []string
	at := 0
	for _, p := range function(f.Name()).Params {
		switch p.Kind {
		case abi.Number:
			numbers = append(numbers, int(api.DecodeI32(words[at])))
			at++
		case abi.Text, abi.Bytes:
			b, ok := m.Memory().Read(api.DecodeU32(words[at]), api.DecodeU32(words[at+1]))
			if !ok {
				b = []byte("<outside of memory>")
			}
			texts = append(texts, string(b))
			at += 2
		default:
			at += 2
		}
	}
	r.call(f.Name(), numbers, texts)
}

// function returns a function of the host; it has no parameters if there is none of that name.
func function(name string) abi.Function {
	all := abi.Functions()
	if i := slices.IndexFunc(all, func(f abi.Function) bool { return f.Name == name }); i >= 0 {
		return all[i]
	}
	return abi.Function{}
}

// message writes the line of a message in the host's file. A message that is not one of a function is an operation.
func (r *recorder) message(message, answer []byte) {
	head, payload, _ := strings.Cut(string(message), "\n")
	words := strings.Fields(head)
	name := words[0]
	var texts []string
	var numbers []int
	for _, word := range words[1 : len(words)-1] {
		n, _ := strconv.Atoi(word)
		numbers = append(numbers, n)
	}
	count := 0
	for _, p := range function(name).Params {
		if p.Kind == abi.Text || p.Kind == abi.Bytes {
			count++
		}
	}
	if function(name).Name == "" {
		name, texts = "call", []string{name, payload}
	} else {
		texts = strings.SplitN(payload, "\n", count)
	}
	if !isTraced(name) {
		return
	}
	r.call(name, numbers, texts)
	if status, _, _ := strings.Cut(string(answer), " "); status != "ok" && !r.quiet {
		r.lines[len(r.lines)-1] += " -> " + status
	}
}

// call writes the line of a call.
func (r *recorder) call(name string, numbers []int, texts []string) {
	r.quiet = false
	line := name
	switch name {
	case "log":
		if numbers[0] == 4 { // a report: each language has its own words
			r.quiet = true
			return
		}
		levels := []string{"debug", "info", "warn", "error"}
		line = "log " + levels[min(numbers[0], 3)] + " " + r.plain(texts[0])
	case "call_wait", "call_take":
		r.quiet = true
		return
	case "call", "call_start":
		if r.quiet = slices.Contains(computed, texts[0]); r.quiet {
			return
		}
		line = "call " + texts[0] + " " + r.json(texts[1])
		if texts[0] == "fetch" {
			line, r.quiet = "call fetch "+r.fetch(texts[1]), true
		}
		if texts[0] == "password.verify" { // the errno may be that of call_take
			r.quiet = true
		}
	case "response_header":
		line = "header " + strings.ToLower(texts[0]) + " " + r.plain(texts[1])
	case "response_send":
		line = strings.TrimSpace("send " + strconv.Itoa(numbers[0]) + " " + r.body(texts[0]))
	case "response_send_result":
		line = fmt.Sprintf("result %d %s", numbers[0], []string{"all", "rows", "row"}[numbers[1]])
	case "response_begin":
		line = fmt.Sprintf("begin %d", numbers[0])
	case "response_write":
		line = "write " + strconv.QuoteToASCII(texts[0])
	case "response_error":
		line = fmt.Sprintf("error %d %s %s", numbers[0], cmpOr(texts[0], "-"), r.plain(texts[1]))
	}
	r.lines = append(r.lines, strings.TrimSpace(line))
}

func cmpOr(text, or string) string {
	if text == "" {
		return or
	}
	return text
}

// After adds an errno.
func (r *recorder) After(_ context.Context, _ api.Module, _ api.FunctionDefinition, results []uint64) {
	if len(results) > 0 && api.DecodeI32(results[0]) < 0 && !r.quiet {
		r.lines[len(r.lines)-1] += " -> " + abi.Errno(api.DecodeI32(results[0])).String()
	}
}

// Abort is called when the run ends within a call; the result shows what happened.
func (r *recorder) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}

// begin starts a case: it removes the ids of the previous one.
func (r *recorder) begin() { r.names, r.lines = map[string]string{}, nil }

// take returns the lines since the last call. A failure is one line in every language.
func (r *recorder) take(failed bool) []string {
	lines := r.lines
	r.lines = nil
	if n := len(lines); n > 0 && strings.HasPrefix(lines[n-1], "error 500 handler_failed") {
		failed, lines = true, lines[:n-1]
	}
	if !failed {
		return lines
	}
	for len(lines) > 0 && strings.HasPrefix(lines[len(lines)-1], "log error ") {
		lines = lines[:len(lines)-1]
	}
	return append(lines, "failed")
}

var (
	anID   = regexp.MustCompile(`\b(?:key_|ses_|job_)?[0-9a-hjkmnp-tv-z]{26}\b`)
	aHash  = regexp.MustCompile(`\$argon2id\$[^"\\]*`)
	aTime  = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z`)
	aPlace = regexp.MustCompile(`<id\d+>`)
)

// plain replaces the parts of a text that differ from run to run.
func (r *recorder) plain(text string) string {
	text = anID.ReplaceAllStringFunc(text, func(id string) string {
		if r.names[id] == "" {
			r.names[id] = fmt.Sprintf("<id%d>", len(r.names)+1)
		}
		return r.names[id]
	})
	text = aHash.ReplaceAllString(text, "<hash>")
	return aTime.ReplaceAllString(text, "<time>")
}

// filled replaces names of ids by the ids.
func (r *recorder) filled(text string) string {
	text = strings.ReplaceAll(text, "<service>", r.service)
	return aPlace.ReplaceAllStringFunc(text, func(name string) string {
		for id, of := range r.names {
			if of == name {
				return id
			}
		}
		return name
	})
}

// body returns JSON in canonical form, or a quoted string.
func (r *recorder) body(text string) string {
	if text == "" {
		return ""
	}
	if slices.Contains(r.lines, "header content-type application/octet-stream") || !json.Valid([]byte(text)) {
		return strconv.QuoteToASCII(text)
	}
	return r.json(text)
}

// json writes JSON in canonical form, and other text unchanged.
func (r *recorder) json(text string) string {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return "<no JSON> " + strconv.QuoteToASCII(text)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(r.same(value, "")); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// fetch writes the arguments of a request without optional members.
func (r *recorder) fetch(text string) string {
	var args map[string]any
	if err := json.Unmarshal([]byte(text), &args); err != nil {
		return r.json(text)
	}
	if args["method"] == "GET" {
		delete(args, "method")
	}
	if headers, ok := args["headers"].([]any); ok && len(headers) == 0 {
		delete(args, "headers")
	}
	delete(args, "headerBytes") // only TypeScript has headers by byte
	delete(args, "stream")      // and bodies that it hands on as they come
	if body, ok := args["body"].(map[string]any); ok {
		encoded, _ := body["base64"].(string)
		if decoded, err := base64.StdEncoding.DecodeString(encoded); err == nil && utf8.Valid(decoded) {
			args["body"] = string(decoded)
		}
	}
	if args["url"], _ = strings.CutPrefix(fmt.Sprint(args["url"]), r.service); !strings.HasPrefix(fmt.Sprint(args["url"]), "https:") {
		args["url"] = "<service>" + fmt.Sprint(args["url"])
	}
	again, err := json.Marshal(args)
	if err != nil {
		return err.Error()
	}
	return r.json(string(again))
}

// same replaces the parts of a JSON value that differ from run to run.
func (r *recorder) same(value any, member string) any {
	switch v := value.(type) {
	case string:
		switch member {
		case "cursor", "nextCursor":
			return "<cursor>"
		}
		return r.plain(v)
	case []any:
		for i := range v {
			v[i] = r.same(v[i], "")
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			v[name] = r.same(v[name], name)
		}
	}
	return value
}
