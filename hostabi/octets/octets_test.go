package octets_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"runner.example/hostabi/octets"
	"runner.example/internal/cost"
)

func TestBytesAreTextOrBase64(t *testing.T) {
	for text, want := range map[string]string{
		`"abc"`: "abc", `""`: "", `"\u00e9"`: "é",
		`{"base64":""}`: "", `{"base64":"YWJj"}`: "abc", `{"base64":"/w=="}`: "\xff",
	} {
		var b octets.Bytes
		if err := json.Unmarshal([]byte(text), &b); err != nil || string(b) != want || b == nil {
			t.Errorf("%s: %q, %v", text, b, err)
		}
	}
	for _, text := range []string{
		`7`, `true`, `[]`, `{}`, `{"base64":7}`, `{"base64":null}`, `{"base64":"YWI"}`, `{"base64":"YWJj\n"}`, `{"base64":"YW-_"}`,
		`{"base64":"YWJj","more":1}`, `{"base64":"YWJj","base64":"YWJj"}`, `{"base64":"YWJk="}`, `{"base64":"YWL="}`,
	} {
		var b octets.Bytes
		if err := b.UnmarshalJSON([]byte(text)); !errors.Is(err, octets.ErrForm) {
			t.Errorf("%s: %q, %v", text, b, err)
		}
	}
}

func TestBytesAreWrittenAsTextWhereTheyAre(t *testing.T) {
	for want, b := range map[string][]byte{
		`"abc é\n"`: []byte("abc é\n"), `""`: nil, `{"base64":"/w=="}`: {0xff}, `{"base64":"AAAA"}`: {0, 0, 0},
	} {
		if out, err := octets.Append(nil, b, nil); err != nil || string(out) != want {
			t.Errorf("%q: %s, %v, want %s", b, out, err, want)
		}
	}
	if out, err := json.Marshal(octets.Bytes("abc")); err != nil || string(out) != `{"base64":"YWJj"}` {
		t.Errorf("%s, %v", out, err)
	}
}

func TestTheMeterEndsTheWriting(t *testing.T) {
	over := errors.New("over")
	var m cost.Meter
	m.Reset(func() error { return over })
	if _, err := octets.Append(nil, bytes.Repeat([]byte("é"), 1<<20), &m); err != over {
		t.Errorf("it ended with %v", err)
	}
}

func FuzzBytes(f *testing.F) {
	for _, seed := range []string{`"abc"`, `{"base64":"YWJj"}`, `{"base64":"\u0059WJj"}`, `{"base64":"=`, `null`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var b, again octets.Bytes
		if b.UnmarshalJSON(text) != nil {
			return
		}
		out, err := octets.Append(nil, b, nil)
		if err != nil || again.UnmarshalJSON(out) != nil || !bytes.Equal(b, again) {
			t.Errorf("%q reads as %q, which is written as %q and reads as %q", text, b, out, again)
		}
	})
}
