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

// minValue is how many bytes a value has that is hidden: shorter ones are words too.
const minValue = 8

// Values are texts that no Redactor which knows them lets through, as they are or quoted:
// an encoding such as base64 is another text. nil and the zero value have none. Any number
// of goroutines may use them.
type Values struct {
	mu    sync.Mutex
	forms atomic.Pointer[[][]byte] // as they stand in a log, the longest first
}

// Add adds texts, each line of one for itself since logs are written by line. A line of
// less than 8 bytes is not hidden. What was added stays: a secret that was replaced is
// one still.
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

// hide returns text with every value in it replaced: text itself when there is none.
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

// appendForms appends a line as logs hold it: as it is, with its backslashes doubled, as Go
// quotes it and as a JSON string, by both habits about <, > and &; and each of these once
// more as Go and as JSON quote it, for what a handler wrote in one of these forms.
func appendForms(forms [][]byte, line string) [][]byte {
	for _, form := range [][]byte{
		[]byte(line), []byte(strings.ReplaceAll(line, `\`, `\\`)), quotedAsGo(line), quoted(line, false), quoted(line, true),
	} {
		forms = append(forms, form, quotedAsGo(string(form)), quoted(string(form), false))
	}
	return forms
}

// quotedAsGo is the inside of a string of Go.
func quotedAsGo(text string) []byte {
	inside := strconv.Quote(text)
	return []byte(inside[1 : len(inside)-1])
}

// quoted is the inside of a JSON string.
func quoted(text string, html bool) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(text); err != nil {
		panic("BUG: a string is no JSON: " + err.Error())
	}
	inside := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	return inside[1 : len(inside)-1]
}
