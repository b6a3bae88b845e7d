package recording_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"runner.example/hostabi/abi"
	"runner.example/hostabi/recording"
)

const secret = `cörrect "horse" <battery>`

var secrets = map[string]string{"PARTNER": secret, "TINY": "abc"}

func lookUp(name string) (string, bool) {
	value, ok := secrets[name]
	return value, ok
}

// record returns a Recording of calls: the operation, the arguments, the result.
func record(calls ...[3]string) *recording.Recording {
	var r recording.Recorder
	r.Begin()
	for _, c := range calls {
		at := r.Add(recording.Call, c[0], []byte(c[1]), 0)
		r.Answer(at, []byte(c[2]))
	}
	made := &recording.Recording{Format: recording.Format}
	r.Take(made)
	return made
}

func text(t *testing.T, r *recording.Recording) string {
	t.Helper()
	out, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestASecretIsHiddenInEveryForm(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	quoted, _ := json.Marshal(secret)
	for name, form := range map[string]func(before, after string) string{
		"plain": func(before, after string) string { return before + secret + after },
		"JSON":  func(before, after string) string { return before + string(quoted[1:len(quoted)-1]) + after },
		"hex":   func(before, after string) string { return before + hex.EncodeToString([]byte(secret)) + after },
		"URL":   func(before, after string) string { return before + url.QueryEscape(secret) + after },
		"base64": func(before, after string) string {
			return base64.StdEncoding.EncodeToString([]byte(before + secret + after))
		},
		"base64 URL": func(before, after string) string {
			return base64.RawURLEncoding.EncodeToString([]byte(before + secret + after))
		},
	} {
		for range 20 {
			before, after := strings.Repeat("x", random.IntN(7)), strings.Repeat("y", random.IntN(7))
			args := form(before, after)
			r := record([3]string{"fetch", args, args})
			r.Hide(secrets)
			hidden := text(t, r)
			core := form("", "")
			if cut := len(core) - 3; strings.Contains(hidden, core[2:cut]) || !strings.Contains(hidden, "‹PARTNER") {
				t.Errorf("%s %q is kept as %s", name, args, hidden)
			}
			p, err := recording.NewPlayer(r, lookUp)
			if err != nil {
				t.Fatal(err)
			}
			if e := p.Next(recording.Call, "fetch", []byte(args), 0); e == nil || string(e.Result) != args {
				t.Errorf("%s: the player has %v for %q: %v", name, e, args, p.Divergence())
			}
		}
	}
}

func TestTheResultOfSecretIsHiddenWhateverItsLength(t *testing.T) {
	r := record([3]string{"secret", `{"name":"TINY"}`, `{"value":"abc"}`})
	r.Hide(secrets)
	if got := text(t, r); strings.Contains(got, "abc") {
		t.Error(got)
	}
	p, err := recording.NewPlayer(r, lookUp)
	if err != nil {
		t.Fatal(err)
	}
	if e := p.Next(recording.Call, "secret", []byte(`{"name":"TINY"}`), 0); e == nil || string(e.Result) != `{"value":"abc"}` {
		t.Errorf("the player has %+v", e)
	}
}

func TestCredentialsAreHidden(t *testing.T) {
	const cookie, bearer, token, password = "s3ss10n-0f-ada", "t0k3n.0f.partner", "cnf_0123456789abcdefghijklmnopqrst", "my dog's name"
	const link, other = "AQCAgICAgIABAAAAAAAAAAAAAAA", "AQCAgICAgIABBBBBBBBBBBBBBBB"
	const referer, queried, read = "AQCAgICAgIABCCCCCCCCCCCCCCC", "AQCAgICAgIABDDDDDDDDDDDDDDD", "AQCAgICAgIABEEEEEEEEEEEEEEE"
	r := record(
		[3]string{"fetch", `{"url":"https://a.example","headers":[["Authorization","Bearer ` + bearer + `"]]}`,
			`{"status":200,"headers":[["set-cookie","id=` + cookie + `; Path=/"]],"body":"` + bearer + `"}`},
		[3]string{"apiKeys.create", `{"scope":"a"}`, `{"id":"key_1","token":"` + token + `"}`},
		[3]string{"password.verify", `{"password":"` + password + `","hash":"x"}`, `{"valid":true}`},
		[3]string{"password.hash", `{"password":"tea"}`, `{"hash":"x"}`},
		[3]string{"file.sign", `{"id":"01h0000000000000000000000a","expires":60}`, `{"url":"/_files/` + link + `"}`},
		[3]string{"query", `{"from":"Mail"}`, `{"rows":[{"text":"see https:\/\/a.example\/_files\/` + read + `."}]}`},
	)
	var later recording.Recorder // an operation whose result is taken later
	later.Begin()
	later.Answer(later.Add(recording.Take, "", nil, 1), []byte(`{"url":"/_files/`+other+`"}`))
	var taken recording.Recording
	later.Take(&taken)
	r.Events = append(r.Events, taken.Events...)
	r.Request = recording.RequestOf(&abi.Request{
		Headers: []abi.Pair{
			{Name: []byte("cookie"), Value: []byte("a=b; c=" + cookie)}, {Name: []byte("referer"), Value: []byte("https://a.example/_files/" + referer)},
		},
		RawQuery: []byte("of=%252F_files%252F" + queried), Body: []byte(`{"password":"` + password + `"}`),
	}, nil)
	r.Outcome.SetAnswer(&abi.Response{Body: []byte(`{"token":"` + token + `","links":["https://a.example/_files/` + link + `","` + other + `"]}`)})
	r.Hide(nil)
	got := text(t, r)
	for _, value := range []string{cookie, bearer, token[4:], password, `"a=b`, `\"tea\"`, link, other, referer, queried, read} {
		if strings.Contains(got, value) {
			t.Errorf("%q is kept: %s", value, got)
		}
	}
	p, err := recording.NewPlayer(r, lookUp)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(*p.Recording.Request.RawQuery), "of=%252F_files%252F"+strings.Repeat("~", len(queried)); got != want {
		t.Errorf("the query of the replay is %q, want %q", got, want)
	}
	body := string(p.Recording.Request.Body)
	if want := fmt.Sprintf(`{"password":"%s"}`, strings.Repeat("x", len(password))); len(body) != len(want) {
		t.Errorf("the body of the replay is %q", body)
	}
	// The module may have a credential itself: then it is not compared.
	if e := p.Next(recording.Call, "fetch", []byte(`{"headers":[["Authorization","Bearer `+bearer+`"]],"url":"https://a.example"}`), 0); e == nil {
		t.Error(p.Divergence())
	}
}

func TestADivergenceNamesBothCalls(t *testing.T) {
	r := record([3]string{"query", `{"from":"Order","where":[["status","=","open"],["or",["qty",">",2],["not",["qty","=",1]]]]}`, `{"rows":[]}`})
	for args, want := range map[string]string{
		`{"where":[["status","=","open"],["or",["qty",">",2],["not",["qty","=",1]]]],"from":"Order"}`: "",
		`{"from":"Order","where":[["status","=","paid"]]}`:                                            `call 1: query Order where status = "paid", recorded: query Order where status = "open" and (qty > 2 or not (qty = 1))`,
	} {
		p, err := recording.NewPlayer(r, lookUp)
		if err != nil {
			t.Fatal(err)
		}
		e, got := p.Next(recording.Call, "query", []byte(args), 0), ""
		if d := p.Divergence(); d != nil {
			got = d.String()
		}
		if got != want || (e == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", args, got, e, want)
		}
		if p.Next(recording.Call, "sleep", []byte("{}"), 0) != nil {
			t.Error("there is an answer for a second call")
		}
		if want == "" && p.Divergence().String() != "call 2: sleep, but the recording ends after call 1" {
			t.Error(p.Divergence())
		}
	}
}

// The ranges of rows move with the names.
func TestTheRowsOfAResultStayWhereTheyAre(t *testing.T) {
	result := `{"rows":[{"a":"` + "PARTNERS SECRET" + `"},{"b":2}],"nextCursor":null}`
	var r recording.Recorder
	r.Begin()
	at := r.Add(recording.Call, "query", []byte("{}"), 0)
	e := r.Event(at)
	e.Rows, e.Row = [2]int{8, strings.Index(result, "]") + 1}, [2]int{9, strings.Index(result, "}") + 1}
	rows, row := result[e.Rows[0]:e.Rows[1]], result[e.Row[0]:e.Row[1]]
	r.Answer(at, []byte(result))
	made := &recording.Recording{Format: recording.Format}
	r.Take(made)
	made.Hide(map[string]string{"S": "PARTNERS SECRET"})
	for _, value := range []string{"PARTNERS SECRET", "another", ""} {
		p, err := recording.NewPlayer(made, func(string) (string, bool) { return value, value != "" })
		if err != nil {
			t.Fatal(err)
		}
		name := value
		if name == "" {
			name = "‹S›"
		}
		e := p.Next(recording.Call, "query", []byte("{}"), 0)
		got := []string{string(e.Result[e.Rows[0]:e.Rows[1]]), string(e.Result[e.Row[0]:e.Row[1]])}
		want := []string{strings.ReplaceAll(rows, "PARTNERS SECRET", name), strings.ReplaceAll(row, "PARTNERS SECRET", name)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestWhatIsRecordedIsBounded(t *testing.T) {
	var r recording.Recorder
	r.Begin()
	for range 3 {
		if at := r.Add(recording.Call, "digest", make([]byte, recording.MaxBytes/2), 0); at >= 0 {
			r.Answer(at, nil)
		}
	}
	r.Log(slog.LevelInfo, "later")
	made := &recording.Recording{Format: recording.Format}
	r.Take(made)
	if len(made.Events) != 2 || !made.Truncated {
		t.Errorf("%d events, truncated: %v", len(made.Events), made.Truncated)
	}
	r.Begin()
	for range recording.MaxEvents + 1 {
		r.Log(slog.LevelInfo, "")
	}
	made = &recording.Recording{}
	if r.Take(made); len(made.Events) != recording.MaxEvents || !made.Truncated {
		t.Errorf("%d events, truncated: %v", len(made.Events), made.Truncated)
	}
}

func TestDrawsAreRepeated(t *testing.T) {
	var d recording.Draws
	d.Begin()
	draw := func(d *recording.Draws, now int64) (all []int64) {
		for i := range int64(50) {
			var b [3]byte
			d.Random(b[:i%3])
			all = append(all, int64(b[0]), int64(b[1]), d.Read(recording.Wall, now+i/7), d.Read(recording.Monotonic, i/3))
		}
		return all
	}
	first := draw(&d, time.Hour.Nanoseconds())
	text, err := json.Marshal(d.Drawn())
	if err != nil {
		t.Fatal(err)
	}
	var drawn recording.Drawn
	if err := json.Unmarshal(text, &drawn); err != nil {
		t.Fatal(err)
	}
	again := recording.Repeat(&drawn)
	if diff := cmp.Diff(first, draw(again, 0)); diff != "" {
		t.Error(diff)
	}
	if last := again.Read(recording.Wall, 0); last < time.Hour.Nanoseconds() || last > time.Hour.Nanoseconds()+time.Minute.Nanoseconds() {
		t.Errorf("after the last reading the clock is at %d", last)
	}
	before := d.Drawn().Seed
	d.Begin()
	d.Random(make([]byte, 1))
	if string(before) == string(d.Drawn().Seed) {
		t.Error("two runs have the same seed")
	}
}

// A file that an operator gives may have anything.
func FuzzPlayer(f *testing.F) {
	r := record([3]string{"secret", `{"name":"PARTNER"}`, `{"value":"` + "horse" + `"}`})
	r.Hide(secrets)
	text, _ := json.Marshal(r)
	f.Add(text)
	f.Add([]byte(`{"format":1,"events":[{"kind":"call","name":"a","rows":[-1,9],"row":[3,-5],"result":"xyz"}],"credentials":[{"name":"","length":3}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := new(recording.Recording)
		if json.Unmarshal(text, r) != nil {
			return
		}
		p, err := recording.NewPlayer(r, lookUp)
		if err != nil {
			return
		}
		for i := range r.Events {
			e := p.Recording.Events[i]
			if got := p.Next(e.Kind, e.Name, e.Args, e.Number); got != nil {
				_ = got.Request() + got.Reply()
				_, _ = got.Result[:got.Rows[1]][got.Rows[0]:], got.Result[:got.Row[1]][got.Row[0]:]
			}
		}
	})
}
