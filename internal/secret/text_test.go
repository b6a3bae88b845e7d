package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"runner.example/internal/secret"
)

const (
	plain = "correct horse battery staple"
	token = "ord_GhJk456789abcdefghijABCDEFGHIJ0Ax4Qz" // its ends are in no time and no address
)

// shown prints v in every way a program may print it by accident.
func shown(t *testing.T, v any) []string {
	t.Helper()
	var out []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
		out = append(out, fmt.Sprintf(verb, v), fmt.Sprintf(verb, []any{v}), fmt.Sprintf(verb, &v))
	}
	out = append(out, fmt.Sprint(v), fmt.Sprintln(v), fmt.Errorf("with: %v", v).Error())
	encoded, err := json.Marshal(map[string]any{"v": v})
	if err != nil {
		t.Fatal(err)
	}
	out = append(out, string(encoded))
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("m", "v", v)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("m", "v", v)
	return append(out, logged.String())
}

func TestTextShowsItsValueOnlyWhenRevealed(t *testing.T) {
	text := secret.New(plain)
	holder := struct {
		Name   string
		Secret secret.Text
	}{"name", text}
	for _, v := range []any{text, &text, holder, &holder, []secret.Text{text}, map[string]secret.Text{"a": text}} {
		for _, s := range shown(t, v) {
			if strings.Contains(s, "horse") || strings.Contains(s, fmt.Sprintf("%x", "horse")) {
				t.Errorf("%T shows the secret: %s", v, s)
			}
		}
	}
	if got := text.String() + text.GoString(); got != "……" {
		t.Errorf("printed as %q", got)
	}
	if text.Reveal() != plain {
		t.Errorf("reveals %q", text.Reveal())
	}
}

func TestTokenShowsItsPrefixAndItsLastFourCharacters(t *testing.T) {
	tok := secret.NewToken(token)
	holder := struct{ Token secret.Token }{tok}
	for _, v := range []any{tok, &tok, holder, []secret.Token{tok}} {
		for _, s := range shown(t, v) {
			if strings.Contains(s, "Ax4Qz") || strings.Contains(s, "GhJk") {
				t.Errorf("%T shows the token: %s", v, s)
			}
		}
	}
	if got := tok.String(); got != "ord_…x4Qz" {
		t.Errorf("printed as %q", got)
	}
	if encoded, _ := json.Marshal(tok); string(encoded) != `"ord_…x4Qz"` {
		t.Errorf("encoded as %s", encoded)
	}
	if tok.Reveal() != token {
		t.Errorf("reveals %q", tok.Reveal())
	}
}

func TestATextTooShortForATokenIsHidden(t *testing.T) {
	for _, value := range []string{"", "abc", "rnk_", "rnk_abcd", "rnk_abcdefghijklmno", strings.Repeat("x", 50)} {
		if got := secret.NewToken(value).Hint(); got != "…" {
			t.Errorf("hint of %q is %q", value, got)
		}
	}
	if !secret.NewToken("").IsZero() || secret.NewToken(token).IsZero() {
		t.Error("IsZero is wrong")
	}
}
