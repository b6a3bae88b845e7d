package secret

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// masked is shown in place of a value.
const masked = "…"

// hidden keeps a value behind a pointer. For a verb that does not apply to a struct, package
// fmt prints the fields without calling their methods, but of a pointer only the address.
type hidden struct{ value *string }

// Reveal returns the value itself. It must not be logged or be part of an error.
func (h hidden) Reveal() string {
	if h.value == nil {
		return ""
	}
	return *h.value
}

// Text is a string that prints as "…" in every way Go prints, logs or encodes a
// value. The zero value is the empty secret. A Text is immutable, and must
// not be compared with ==.
type Text struct{ hidden }

// New returns value as a secret.
func New(value string) Text { return Text{hidden{&value}} }

// String returns "…".
func (t Text) String() string { return masked }

// GoString returns "…".
func (t Text) GoString() string { return masked }

// Format writes "…" for every verb.
func (t Text) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, masked) }

// LogValue returns "…".
func (t Text) LogValue() slog.Value { return slog.StringValue(masked) }

// MarshalText returns "…"; encoders of JSON, TOML and XML use it.
func (t Text) MarshalText() ([]byte, error) { return []byte(masked), nil }

// Token is the plaintext of a credential. It prints as its hint, such as
// "rnk_…x4Qz", in every way Go prints, logs or encodes a value. The zero value
// is "no token". A Token is immutable and not to be compared with ==.
type Token struct{ hidden }

// NewToken returns value as a token.
func NewToken(value string) Token { return Token{hidden{&value}} }

// IsZero reports whether there is no token.
func (t Token) IsZero() bool { return t.Reveal() == "" }

// Hint returns what may be shown of the token: its prefix and its last four
// characters. What is too short to be a token shows nothing.
func (t Token) Hint() string {
	const shown, least = 4, 16
	prefix, rest, found := strings.Cut(t.Reveal(), "_")
	if !found || len(rest) < least {
		return masked
	}
	return prefix + "_" + masked + rest[len(rest)-shown:]
}

// String returns the hint.
func (t Token) String() string { return t.Hint() }

// GoString returns the hint.
func (t Token) GoString() string { return t.Hint() }

// Format writes the hint for every verb.
func (t Token) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, t.Hint()) }

// LogValue returns the hint.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.Hint()) }

// MarshalText returns the hint; encoders of JSON, TOML and XML use it.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.Hint()), nil }
