package hostabi_test

import (
	"maps"
	"testing"

	"runner.example/hostabi"
)

func TestTextInALegacyEncodingIsDecodedInPieces(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for _, c := range []struct {
		args string
		want map[string]any
	}{
		{`{"encoding":" SJIS","data":""}`, map[string]any{"encoding": "shift_jis", "text": "", "state": ""}},
		{`{"encoding":"sjis","data":{"base64":"k/qW"},"more":true}`, map[string]any{"encoding": "shift_jis", "text": "日", "state": "96"}},
		{`{"encoding":"sjis","data":"{","state":"96"}`, map[string]any{"encoding": "shift_jis", "text": "本", "state": ""}},
		{`{"encoding":"sjis","data":"","state":"96"}`, map[string]any{"encoding": "shift_jis", "text": "\ufffd", "state": ""}},
		{`{"encoding":"sjis","data":"","state":"96","fatal":true}`, map[string]any{"encoding": "shift_jis", "state": ""}},
	} {
		if result, n := g.op("encoding.decode", c.args); n < 0 || !maps.Equal(result, c.want) {
			t.Errorf("%s: %d %v, want %v", c.args, n, result, c.want)
		}
	}
	for args, want := range map[string]string{
		`{"encoding":"replacement","data":""}`:      `encoding.decode: "replacement" is not the label of an encoding that the host decodes`,
		`{"encoding":"sjis"}`:                       `encoding.decode: member "data" is missing`,
		`{"data":""}`:                               `encoding.decode: member "encoding" is missing`,
		`{"encoding":"sjis","data":"","state":"x"}`: `encoding.decode: member "state" is not valid for this encoding: pass the state of the last result`,
		`{"encoding":"sjis","data":"","state":1}`:   `encoding.decode: member "state" must be a string`,
		`{"encoding":"sjis","data":"","more":1}`:    `encoding.decode: member "more" must be true or false`,
		`{"encoding":"sjis","data":"","fatal":""}`:  `encoding.decode: member "fatal" must be true or false`,
	} {
		if result, n := g.op("encoding.decode", args); n >= 0 || result["message"] != want {
			t.Errorf("%s: %d %v, want %s", args, n, result, want)
		}
	}
}
