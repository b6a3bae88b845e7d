package recording

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A name in place of a value is ‹NAME›, or ‹NAME:2› for a value in an encoding, with the number of the form.
const (
	nameOpen  = "‹"
	nameClose = "›"
)

// shortest is the minimum length in bytes of a secret that is replaced everywhere. shortestEncoded is that of a secret
// that is replaced in encodings too, and of a credential. Shorter values may be words of other texts: they are replaced
// only where they are known to be secret.
const (
	shortest        = 4
	shortestEncoded = 8
)

// named is a value with its name.
type named struct {
	name, value string
	credential  bool
}

// isShort reports whether the value is replaced only where it is known to be secret.
func (v named) isShort() bool {
	return len(v.value) < shortest || v.credential && len(v.value) < shortestEncoded
}

// forms returns the value in the encodings that guests use. A form is empty if it equals an earlier one.
func (v named) forms() []string {
	text := v.value
	all := []string{text, "", "", "", "", "", "", "", "", "", ""}
	if len(text) < shortestEncoded {
		all[1] = quoted(text, false)
		return emptyDuplicates(all)
	}
	all[1], all[2] = quoted(text, false), quoted(text, true)
	all[3], all[4] = url.QueryEscape(text), hex.EncodeToString([]byte(text))
	for shift := range 3 { // the characters that depend on the value alone, at each place in groups of three bytes
		padded := append(make([]byte, shift), text...)
		from, to := (8*shift+5)/6, 8*len(padded)/6
		all[5+shift] = base64.StdEncoding.EncodeToString(padded)[from:to]
		all[8+shift] = base64.URLEncoding.EncodeToString(padded)[from:to]
	}
	return emptyDuplicates(all)
}

// emptyDuplicates empties the forms that are equal to an earlier one.
func emptyDuplicates(all []string) []string {
	for i := range all {
		if slices.Contains(all[:i], all[i]) {
			all[i] = ""
		}
	}
	return all
}

// quoted returns the inside of a JSON string.
func quoted(text string, html bool) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(html)
	if e.Encode(text) != nil {
		return ""
	}
	inside := strings.TrimSuffix(out.String(), "\n")
	return inside[1 : len(inside)-1]
}

// mark returns the text that replaces a form of the value.
func (v named) mark(form int) string {
	if form == 0 {
		return nameOpen + v.name + nameClose
	}
	return nameOpen + v.name + ":" + strconv.Itoa(form) + nameClose
}

// hideReplacer replaces values by names.
func hideReplacer(all []named) *strings.Replacer {
	type pair struct{ from, to string }
	var pairs []pair
	for _, v := range all {
		if v.isShort() {
			continue
		}
		for i, form := range v.forms() {
			if form != "" {
				pairs = append(pairs, pair{form, v.mark(i)})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return len(b.from) - len(a.from) }) // the first that matches is taken
	var list []string
	for _, p := range pairs {
		list = append(list, p.from, p.to)
	}
	return strings.NewReplacer(list...)
}

// showReplacer replaces names by values.
func showReplacer(all []named) *strings.Replacer {
	var list []string
	for _, v := range all {
		forms := v.forms()
		for i, form := range forms {
			if form == "" { // the value of this node needs no escape
				form = forms[0]
			}
			list = append(list, v.mark(i), form)
		}
	}
	return strings.NewReplacer(list...)
}

// credentialHeaders are the headers whose values are credentials.
var credentialHeaders = []string{"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"}

// IsCredential reports whether the value of a header is a credential.
func IsCredential(header string) bool {
	return slices.ContainsFunc(credentialHeaders, func(h string) bool { return strings.EqualFold(h, header) })
}

// secretsOf returns the secret parts of the value of such a header.
func secretsOf(header, value string) (parts []string) {
	switch strings.ToLower(header) {
	case "cookie":
		for pair := range strings.SplitSeq(value, ";") {
			if _, v, ok := strings.Cut(pair, "="); ok {
				parts = append(parts, strings.Trim(strings.TrimSpace(v), `"`))
			}
		}
	case "set-cookie":
		first, _, _ := strings.Cut(value, ";")
		_, v, _ := strings.Cut(first, "=")
		parts = append(parts, strings.Trim(strings.TrimSpace(v), `"`))
	case "authorization", "proxy-authorization":
		if _, v, ok := strings.Cut(strings.TrimSpace(value), " "); ok {
			return []string{strings.TrimSpace(v)}
		}
		fallthrough
	default:
		parts = append(parts, strings.TrimSpace(value))
	}
	return parts
}

// hider collects the credentials of a Recording.
type hider struct {
	*Recording
	values []named
}

// add adds a credential.
func (h *hider) add(name, value string) {
	if value == "" || slices.ContainsFunc(h.values, func(v named) bool { return v.value == value }) {
		return
	}
	n := len(h.Credentials) + 1
	name = name + " " + strconv.Itoa(n)
	h.values = append(h.values, named{name, value, true})
	h.Credentials = append(h.Credentials, Credential{name, len(value)})
}

// Hide replaces secrets and credentials in the Recording by their names. secrets has the values by name. Credentials are
// those of the request, those that operations created, passwords, and those in headers to and from other services. Links to
// files that other runs have signed become texts of the same length.
func (r *Recording) Hide(secrets map[string]string) {
	h := &hider{Recording: r}
	for name, value := range secrets {
		h.values = append(h.values, named{name, value, false})
		r.Secrets = append(r.Secrets, name)
	}
	slices.Sort(r.Secrets)
	h.headers(r.Request.Headers)
	h.headers(r.Outcome.Headers)
	for i := range r.Events {
		h.event(&r.Events[i])
	}
	replacer := hideReplacer(h.values)
	r.Rename(func(text string) string { return withoutLinks(replacer.Replace(text)) })
	h.short(r.Request.Headers)
	h.short(r.Outcome.Headers)
}

// nameOf returns the text that replaces a credential; empty: the value is not a credential.
func (h *hider) nameOf(value string) string {
	for _, v := range h.values {
		if v.value == value && v.credential {
			return v.mark(0)
		}
	}
	return ""
}

func (h *hider) headers(pairs [][2]Text) {
	for _, p := range pairs {
		if IsCredential(string(p[0])) {
			for _, value := range secretsOf(string(p[0]), string(p[1])) {
				h.add(strings.ToLower(string(p[0])), value)
			}
		}
	}
}

// short replaces, in headers, credentials that are too short to be replaced everywhere.
func (h *hider) short(pairs [][2]Text) {
	for i, p := range pairs {
		for _, v := range h.values {
			if value := string(p[1]); IsCredential(string(p[0])) && v.isShort() && slices.Contains(secretsOf(string(p[0]), value), v.value) {
				at := strings.LastIndex(value, v.value)
				pairs[i][1] = Text(value[:at] + v.mark(0) + value[at+len(v.value):])
			}
		}
	}
}

// signedLink matches signed links to files, also in URLs and in JSON whose slashes are escaped.
var signedLink = regexp.MustCompile(`_files(?:\\?/|%(?:25)*2[Ff])([A-Za-z0-9_-]{27,})`)

// withoutLinks replaces the tokens of signed links that other runs have made: a client may send thousands of texts that look
// like one, so they have no names.
func withoutLinks(text string) string {
	return signedLink.ReplaceAllStringFunc(text, func(link string) string {
		token := signedLink.FindStringSubmatch(link)[1]
		return strings.TrimSuffix(link, token) + strings.Repeat("~", len(token))
	})
}

// event finds the credentials in the arguments and the result of an operation.
func (h *hider) event(e *Event) {
	switch op := e.op(); {
	case op == "secret" && e.IsCall() && e.Error == nil: // also one that is too short to be replaced elsewhere
		var args struct{ Name string }
		var got struct{ Value string }
		if json.Unmarshal(e.Args, &args) == nil && json.Unmarshal(e.Result, &got) == nil && len(got.Value) < shortest {
			e.Result = Text(`{"value":"` + named{name: args.Name}.mark(0) + `"}`)
		}
	case strings.HasPrefix(op, "password."):
		var args map[string]json.RawMessage
		if json.Unmarshal(e.Args, &args) != nil {
			return
		}
		var text string
		var data struct{ Base64 []byte }
		if json.Unmarshal(args["password"], &text) == nil {
			if h.add("password", text); len(text) < shortestEncoded {
				e.Args = Text(strings.Replace(string(e.Args), string(args["password"]), `"`+h.nameOf(text)+`"`, 1))
			}
		} else if json.Unmarshal(args["password"], &data) == nil {
			h.add("password", string(data.Base64))
		}
	case strings.HasPrefix(op, "apiKeys."), op == "file.sign", e.Kind == Take:
		var made struct{ Token, URL string }
		if json.Unmarshal(e.Result, &made) == nil {
			_, random, _ := strings.Cut(made.Token, "_") // the prefix is not secret
			h.add("API key", random)
			if token, ok := strings.CutPrefix(made.URL, "/_files/"); ok {
				h.add("signed link", token)
			}
		}
	}
	if op := e.op(); op == "fetch" || e.Kind == Fetch || e.Kind == Take || e.Kind == Response {
		for _, text := range []Text{e.Args, e.Result} {
			var message struct{ Headers [][2]string }
			if json.Unmarshal(text, &message) != nil {
				continue
			}
			for _, p := range message.Headers {
				if IsCredential(p[0]) {
					for _, value := range secretsOf(p[0], p[1]) {
						h.add(strings.ToLower(p[0]), value)
					}
				}
			}
		}
	}
}

// op returns the operation of a call; empty: the event has none.
func (e *Event) op() string {
	if e.Kind == Call || e.Kind == Start {
		return e.Name
	}
	return ""
}

// Rename applies do to all texts of the Recording that come from the guest or its callers.
func (r *Recording) Rename(do func(string) string) {
	text := func(t *Text) {
		if len(*t) > 0 {
			*t = Text(do(string(*t)))
		}
	}
	pairs := func(all [][2]Text) {
		for i := range all {
			text(&all[i][0])
			text(&all[i][1])
		}
	}
	plain := func(s *string) { *s = do(*s) }
	q := &r.Request
	for _, t := range []*Text{&q.Path, q.RawQuery, &q.Body, q.Sent, &q.Traceparent, &r.Outcome.Body} {
		if t != nil {
			text(t)
		}
	}
	pairs(q.Params)
	pairs(q.Query)
	pairs(q.Headers)
	pairs(r.Outcome.Headers)
	plain(&r.Outcome.Message)
	plain(&r.Outcome.Detail)
	if len(r.Caller.Metadata) > 0 {
		r.Caller.Metadata = json.RawMessage(do(string(r.Caller.Metadata)))
	}
	if len(r.Caller.Claims) > 0 {
		r.Caller.Claims = json.RawMessage(do(string(r.Caller.Claims)))
	}
	for i := range r.Events {
		r.Events[i].replace(do)
	}
}

// replace applies do to the texts of an event, and adjusts the ranges of its result.
func (e *Event) replace(do func(string) string) {
	if len(e.Args) > 0 {
		e.Args = Text(do(string(e.Args)))
	}
	for _, r := range []*[2]int{&e.Rows, &e.Row} { // a file may have any numbers
		if r[0] < 0 || r[1] < r[0] || r[1] > len(e.Result) {
			*r = [2]int{}
		}
	}
	cuts := []*int{&e.Rows[0], &e.Row[0], &e.Row[1], &e.Rows[1]} // rows is around row, or is empty
	slices.SortStableFunc(cuts, func(a, b *int) int { return *a - *b })
	var out []byte
	from := 0
	for _, cut := range cuts {
		at := *cut
		out = append(out, do(string(e.Result[from:at]))...)
		from, *cut = at, len(out)
	}
	if out = append(out, do(string(e.Result[from:]))...); len(out) > 0 {
		e.Result = out
	}
	if e.Error != nil {
		e.Error.Message, e.Error.Public = do(e.Error.Message), do(e.Error.Public)
		e.Error.Value = Text(do(string(e.Error.Value)))
	}
}

// placeholder returns the text that a guest reads in place of a credential: ASCII of the same length, so that its
// encodings have the same length too.
func (c Credential) placeholder() string {
	word := "~" + c.Name[strings.LastIndexByte(c.Name, ' ')+1:] + "~"
	return strings.Repeat(word, c.Length/len(word)+1)[:c.Length]
}
