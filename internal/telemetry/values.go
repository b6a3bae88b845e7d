package telemetry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// minValue is the smallest length of a value that is hidden: shorter ones may be words.
const minValue = 8

// Values are texts that a Redactor hides, plain and quoted, but not in encodings such as
// base64. nil and the zero value have none. They are safe for concurrent use.
type Values struct {
	mu    sync.Mutex
	forms atomic.Pointer[[][]byte] // their forms in a log, the longest first
}

// Add adds texts, each of their lines separately because logs are written by line. Lines of
// less than 8 bytes are not hidden. Values are never removed: a replaced secret stays
// secret.
func (v *Values) Add(texts ...string) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	var forms [][]byte
	if known := v.forms.Load(); known != nil {
		forms = slices.Clone(*known)
	}
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); len(line) >= minValue {
				forms = appendForms(forms, line)
			}
		}
	}
	if len(forms) == 0 {
		return
	}
	slices.SortFunc(forms, func(a, b []byte) int { return cmp.Or(len(b)-len(a), bytes.Compare(a, b)) })
	forms = slices.CompactFunc(forms, bytes.Equal)
	v.forms.Store(&forms)
}

// Hide returns text without the values and without the secrets that Redact finds.
func (v *Values) Hide(text string) string { return string(Redact(v.hide([]byte(text)))) }

// hide returns text with every value in it replaced: text itself if there is none.
func (v *Values) hide(text []byte) []byte {
	if v == nil {
		return text
	}
	forms := v.forms.Load()
	if forms == nil {
		return text
	}
	for _, form := range *forms {
		if bytes.Contains(text, form) {
			text = bytes.ReplaceAll(text, form, []byte(hidden))
		}
	}
	return text
}

// appendForms appends the forms of a line in a log: plain, with doubled backslashes, quoted as
// by Go, and as a JSON string with <, > and & escaped or not. It appends each of these also
// quoted by Go and by JSON, for text that a handler wrote in one of these forms.
func appendForms(forms [][]byte, line string) [][]byte {
	for _, form := range [][]byte{
		[]byte(line), []byte(strings.ReplaceAll(line, `\`, `\\`)), quotedAsGo(line), quoted(line, false), quoted(line, true),
	} {
		forms = append(forms, form, quotedAsGo(string(form)), quoted(string(form), false))
	}
	return forms
}

// quotedAsGo returns the inside of a Go string literal.
func quotedAsGo(text string) []byte {
	inside := strconv.Quote(text)
	return []byte(inside[1 : len(inside)-1])
}

// quoted returns the inside of a JSON string.
func quoted(text string, html bool) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(text); err != nil {
		panic("BUG: a string is not valid JSON: " + err.Error())
	}
	inside := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	return inside[1 : len(inside)-1]
}
