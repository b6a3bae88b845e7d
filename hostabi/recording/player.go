package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Player answers the host calls of a run from a Recording. One goroutine at a time may use it.
type Player struct {
	// Draws give the recorded random bytes and times.
	Draws *Draws
	// Recording is a copy of that of NewPlayer, with the values of secrets. It must not be shown.
	Recording *Recording
	// Live lets the host answer the calls after a divergence. Otherwise the run ends there.
	Live bool

	hide         *strings.Replacer
	placeholders []string // of credentials, in all forms, the longest first
	next         int
	calls        int // calls that the run made
	divergence   *Divergence
	reached      bool // the call in which the recorded run ended
}

// Divergence is the first host call of a replay that differs from the recorded one.
type Divergence struct {
	// Call is the number of the call, from 1 on.
	Call int `json:"call"`
	// Asked is the call of the replay with its arguments, Recorded that of the Recording; empty: it has no further call.
	Asked    string `json:"asked"`
	Recorded string `json:"recorded,omitempty"`
	// Truncated: the recording has no further call because it was too large.
	Truncated bool `json:"truncated,omitempty"`
}

func (d *Divergence) String() string {
	switch {
	case d.Truncated:
		return fmt.Sprintf("call %d: %s, but the recording ends before it: it was too large", d.Call, d.Asked)
	case d.Recorded == "":
		return fmt.Sprintf("call %d: %s, but the recording ends after call %d", d.Call, d.Asked, d.Call-1)
	}
	return fmt.Sprintf("call %d: %s, recorded: %s", d.Call, d.Asked, d.Recorded)
}

// NewPlayer returns a Player of a copy of the Recording. secret returns the value of a secret of this node; a name that
// it does not know stays in the place of the value.
func NewPlayer(r *Recording, secret func(name string) (value string, ok bool)) (*Player, error) {
	if r.Format != Format {
		return nil, fmt.Errorf("the recording has format %d, and this runner reads format %d: use the version of the runner that recorded it", r.Format, Format)
	}
	for _, d := range []*Drawn{&r.Image, &r.Run} {
		if n := len(d.Seed); n != 0 && n != 32 || d.Program != nil && n == 0 {
			return nil, fmt.Errorf("the recording is damaged: a seed has %d bytes, not 32", n)
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	own := new(Recording)
	if err := json.Unmarshal(text, own); err != nil {
		return nil, err
	}
	p := &Player{Draws: Repeat(&own.Run), Recording: own}
	var values []named
	for _, name := range own.Secrets {
		if value, ok := secret(name); ok {
			values = append(values, named{name, value, false})
		}
	}
	for _, c := range own.Credentials {
		if c.Length <= 0 || c.Length > MaxBytes {
			return nil, fmt.Errorf("the recording is damaged: a credential has %d bytes", c.Length)
		}
		v := named{c.Name, c.placeholder(), true}
		values = append(values, v)
		p.placeholders = append(p.placeholders, slices.DeleteFunc(v.forms(), func(form string) bool { return form == "" })...)
	}
	slices.SortStableFunc(p.placeholders, func(a, b string) int { return len(b) - len(a) })
	own.Rename(showReplacer(values).Replace)
	p.hide = hideReplacer(values)
	return p, nil
}

// Hide replaces the secrets and the placeholders of credentials in a text by their names.
func (p *Player) Hide(text string) string { return p.hide.Replace(text) }

// Next returns the recorded event that answers a call. It returns nil after a divergence, see Divergence.
func (p *Player) Next(kind, name string, args []byte, number int) *Event {
	if p.divergence != nil {
		return nil
	}
	p.calls++
	for p.next < len(p.Recording.Events) && !p.Recording.Events[p.next].IsCall() {
		p.next++
	}
	asked := &Event{Kind: kind, Name: name, Args: args, Number: number}
	if p.next == len(p.Recording.Events) {
		p.divergence = &Divergence{Call: p.calls, Asked: p.Hide(asked.Request()), Truncated: p.Recording.Truncated}
		return nil
	}
	e := &p.Recording.Events[p.next]
	if e.Kind != kind || e.Name != name || kind == Take && e.Number != number || !p.sameArgs(e.Args, args) {
		p.divergence = &Divergence{Call: p.calls, Asked: p.Hide(asked.Request()), Recorded: p.Hide(e.Request())}
		return nil
	}
	p.next++
	p.reached = p.reached || !e.Ended()
	return e
}

// Later returns the recorded answer to a pending operation, if it is after the current call; nil: there is none.
func (p *Player) Later(number int) *Event {
	for i := p.next; i < len(p.Recording.Events); i++ {
		if e := &p.Recording.Events[i]; (e.Kind == Take || e.Kind == Response) && e.Number == number && e.Ended() {
			return e
		}
	}
	return nil
}

// Played returns the events up to the last answered call.
func (p *Player) Played() []Event { return p.Recording.Events[:p.next] }

// Divergence returns the divergence of the run; nil: there was none.
func (p *Player) Divergence() *Divergence { return p.divergence }

// Reached reports whether the run has come to the call in which the recorded one ended.
func (p *Player) Reached() bool { return p.reached }

// Left returns how many recorded calls were not made.
func (p *Player) Left() (n int) {
	for i := p.next; i < len(p.Recording.Events); i++ {
		if p.Recording.Events[i].IsCall() {
			n++
		}
	}
	return n
}

// sameArgs reports whether a call has the recorded arguments, as JSON if they are JSON.
func (p *Player) sameArgs(recorded, args []byte) bool {
	if bytes.Equal(recorded, args) {
		return true
	}
	var x, y any
	return decode(recorded, &x) && decode(args, &y) && p.same(x, y)
}

func (p *Player) same(x, y any) bool {
	switch x := x.(type) {
	case string:
		y, ok := y.(string)
		return ok && p.sameText(x, y)
	case []any:
		y, ok := y.([]any)
		return ok && slices.EqualFunc(x, y, p.same)
	case map[string]any:
		y, ok := y.(map[string]any)
		return ok && maps.EqualFunc(x, y, p.same)
	}
	return x == y
}

// sameText compares texts. In place of a credential the replay may have any text of the same length: the credential may
// be in the module itself.
func (p *Player) sameText(recorded, text string) bool {
	if len(recorded) != len(text) {
		return false
	}
	for at := 0; at < len(text); {
		i := slices.IndexFunc(p.placeholders, func(text string) bool { return strings.HasPrefix(recorded[at:], text) })
		switch {
		case i >= 0:
			at += len(p.placeholders[i])
		case recorded[at] == text[at]:
			at++
		default:
			return false
		}
	}
	return true
}

func decode(text []byte, v any) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v) == nil
}

// Request returns the call and its arguments, on one line.
func (e *Event) Request() string {
	switch {
	case e.Kind == Take, e.Kind == Response:
		return fmt.Sprintf("%s of operation %d", e.Kind, e.Number)
	case e.Kind == Wait:
		return "wait for an operation"
	case e.Kind == Read:
		return "read the body"
	}
	text := e.Name
	if text == "" {
		text = e.Kind
	}
	if e.Kind == Start {
		text = "start " + text
	}
	if described := describe(e.Name, e.Args); described != "" {
		text += " " + described
	}
	return text
}

// describe shows the arguments of a call: operations on rows as a reader of the schema would write them.
func describe(op string, args []byte) string {
	if len(args) == 0 || string(args) == "{}" {
		return ""
	}
	var members map[string]json.RawMessage
	if !slices.Contains(rowOperations, op) || json.Unmarshal(args, &members) != nil {
		return shorten(oneLine(args))
	}
	text := ""
	for _, member := range []string{"from", "into", "in"} {
		var entity string
		if json.Unmarshal(members[member], &entity) == nil {
			text = entity
			delete(members, member)
		}
	}
	var names []string
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value := oneLine(members[name])
		if condition, ok := condition(members[name]); ok && name == "where" {
			value = condition
		}
		text += " " + name + " " + value
	}
	return shorten(strings.TrimSpace(text))
}

var rowOperations = []string{"query", "get", "count", "aggregate", "insert", "update", "delete"}

// condition writes a condition, or a list of them, which must all hold: status = "open" and qty > 2. False: it is not one.
func condition(text json.RawMessage) (string, bool) {
	var list []json.RawMessage
	if json.Unmarshal(text, &list) != nil || len(list) == 0 {
		return "", false
	}
	var word, operator string
	if json.Unmarshal(list[0], &word) != nil {
		return joined(list, " and ")
	}
	switch word {
	case "or":
		all, ok := joined(list[1:], " or ")
		return "(" + all + ")", ok
	case "not":
		all, ok := joined(list[1:], " and ")
		return "not (" + all + ")", ok
	}
	if len(list) < 3 || json.Unmarshal(list[1], &operator) != nil {
		return "", false
	}
	return word + " " + operator + " " + oneLine(list[2]), true
}

func joined(list []json.RawMessage, with string) (string, bool) {
	var parts []string
	for _, item := range list {
		one, ok := condition(item)
		if !ok {
			return "", false
		}
		parts = append(parts, one)
	}
	return strings.Join(parts, with), len(parts) > 0
}

// oneLine returns JSON, or other text, in one line.
func oneLine(text []byte) string {
	var out bytes.Buffer
	if json.Compact(&out, text) == nil {
		return out.String()
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "�")), " ")
}

// maxShown is how much of the arguments or the answer of a call is shown, in characters.
const maxShown = 300

func shorten(text string) string {
	if r := []rune(text); len(r) > maxShown {
		return string(r[:maxShown]) + "…"
	}
	return text
}

// Reply returns the answer of a call, on one line.
func (e *Event) Reply() string {
	switch {
	case !e.Ended():
		return "no answer: the run ended here"
	case e.Error != nil:
		return "error " + e.Error.Code + ": " + shorten(e.Error.Message)
	case e.Kind == Start, e.Kind == Wait, e.Kind == Fetch:
		return fmt.Sprintf("operation %d", e.Number)
	}
	return shorten(oneLine(e.Result))
}
