package syntax

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"runner.example/internal/diag"
)

type tokenKind int

const (
	tokEOF    tokenKind = iota
	tokIdent            // text is the name
	tokString           // lit is set
	tokNumber           // lit is set: integer, decimal, duration or size
	tokPunct            // text is one of punctuation
	tokAt               // @name: text is the name, empty when none followed
	tokAtAt             // @@name: likewise
	tokPath             // text is the path as written
)

type token struct {
	kind tokenKind
	text string
	span diag.Span
	lit  *Literal
	// doc is the text of the /// lines before the token.
	doc string
	// first reports that no token except a comma precedes this one on its line.
	first bool
	// bad reports that a lexical error in or just before the token was reported. A syntax
	// error about it would probably be a consequence of that.
	bad bool
}

// source is the token as written.
func (t token) source() string {
	switch t.kind {
	case tokString, tokNumber:
		return t.lit.Raw
	case tokAt:
		return "@" + t.text
	case tokAtAt:
		return "@@" + t.text
	}
	return t.text
}

// lexer splits text into tokens, one at a time. A copy of it is a saved state.
type lexer struct {
	file string
	text []byte
	pos  diag.Pos
	// tokenLine is the line on which the last token ended, commas excepted.
	tokenLine int
	doc       []string
	comments  []Comment
	diags     diag.List
	// lost reports that an unclosed comment contains the rest of the file.
	lost bool
}

func newLexer(src diag.Source) lexer {
	l := lexer{file: src.Name, text: src.Text, pos: diag.Pos{Line: 1, Col: 1}}
	if bytes.HasPrefix(src.Text, []byte("\ufeff")) {
		l.pos.Offset = len("\ufeff")
	}
	return l
}

// runeAt returns the rune n bytes ahead, or -1 at the end of the text.
func (l *lexer) runeAt(n int) rune {
	if l.pos.Offset+n >= len(l.text) {
		return -1
	}
	r, _ := utf8.DecodeRune(l.text[l.pos.Offset+n:])
	return r
}

func (l *lexer) starts(s string) bool {
	return bytes.HasPrefix(l.text[l.pos.Offset:], []byte(s))
}

// advance moves n bytes forward, to the end of a rune.
func (l *lexer) advance(n int) {
	for end := l.pos.Offset + n; l.pos.Offset < end; {
		r, size := utf8.DecodeRune(l.text[l.pos.Offset:])
		l.pos.Offset += size
		l.pos.Col++
		if r == '\n' {
			l.pos.Line++
			l.pos.Col = 1
		}
	}
}

func (l *lexer) since(start diag.Pos) diag.Span {
	return diag.Span{File: l.file, Start: start, End: l.pos}
}

// next returns the next token, and tokEOF at the end of the text.
func (l *lexer) next() token {
	junk := l.skipBlanks()
	start := l.pos
	t := l.scan()
	t.span = l.since(start)
	t.first = start.Line > l.tokenLine
	t.bad = t.bad || junk || (t.kind == tokEOF && l.lost)
	if t.is(",") { // commas are optional in blocks, so they do not separate comments or lines
		return t
	}
	t.doc = strings.Join(l.doc, "\n")
	l.doc = nil
	if t.kind != tokEOF {
		l.tokenLine = l.pos.Line
	}
	return t
}

// skipBlanks skips blanks, comments and characters that cannot begin a token. It reports
// whether it skipped such a character.
func (l *lexer) skipBlanks() (junk bool) {
	adjacent := false
	for {
		r := l.runeAt(0)
		switch {
		case r < 0:
			return junk
		case isBlank(r):
			l.advance(1)
			adjacent = false
		case l.starts("//"):
			l.lineComment()
			adjacent = false
		case l.starts("/*"):
			l.blockComment()
			adjacent = false
		case !beginsToken(r) || r == '&' && l.runeAt(1) != r:
			start := l.pos
			l.advance(utf8.RuneLen(r))
			if !adjacent {
				l.diags.Errorf("E001", l.since(start), "unexpected character %s", strconv.QuoteRune(r))
			}
			junk, adjacent = true, true
		default:
			return junk
		}
	}
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' }

func IsLetter(r rune) bool {
	return r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

func IsDigit(r rune) bool { return '0' <= r && r <= '9' }

// IsName reports whether s is a name: letters, digits and _, not beginning with a digit.
func IsName(s string) bool {
	for i, r := range s {
		if !IsLetter(r) && (i == 0 || !IsDigit(r)) {
			return false
		}
	}
	return s != ""
}

func beginsToken(r rune) bool {
	return IsLetter(r) || IsDigit(r) || r < utf8.RuneSelf && strings.ContainsRune(`"@{}()[],:=!<>-/.?&|`, r)
}

func (l *lexer) lineComment() {
	start := l.pos
	n := bytes.IndexByte(l.text[l.pos.Offset:], '\n')
	if n < 0 {
		n = len(l.text) - l.pos.Offset
	}
	l.advance(n)
	c := l.comment(start)
	if c.OwnLine && strings.HasPrefix(c.Text, "///") && !strings.HasPrefix(c.Text, "////") {
		l.doc = append(l.doc, strings.TrimPrefix(c.Text[3:], " "))
	}
}

func (l *lexer) blockComment() {
	start := l.pos
	l.advance(2)
	opening := l.since(start)
	n := bytes.Index(l.text[l.pos.Offset:], []byte("*/"))
	if n < 0 {
		l.diags.Errorf("E003", opening, "comment is not closed")
		l.advance(len(l.text) - l.pos.Offset)
		l.lost = true
		return
	}
	l.advance(n + 2)
	l.comment(start)
}

// comment records the comment from start to the current position.
func (l *lexer) comment(start diag.Pos) Comment {
	text := strings.ReplaceAll(string(l.text[start.Offset:l.pos.Offset]), "\r", "")
	c := Comment{
		Node:    Node{l.since(start)},
		Text:    strings.TrimRightFunc(text, unicode.IsSpace),
		OwnLine: start.Line > l.tokenLine,
	}
	l.comments = append(l.comments, c)
	return c
}

// punctuation has the tokens made of punctuation, longer ones first.
var punctuation = []string{
	"->", "==", "!=", "<=", ">=", "&&", "||", "..",
	"{", "}", "(", ")", "[", "]", ",", ":", "=", "!", "<", ">", "-", "/", ".", "?", "|",
}

// scan reads one token. The caller sets its span.
func (l *lexer) scan() token {
	r := l.runeAt(0)
	switch {
	case r < 0:
		return token{kind: tokEOF}
	case IsLetter(r):
		return token{kind: tokIdent, text: l.name()}
	case IsDigit(r):
		return l.number()
	case r == '"':
		return l.string()
	case r == '@':
		return l.attribute()
	}
	for _, m := range punctuation {
		if l.starts(m) {
			l.advance(len(m))
			return token{kind: tokPunct, text: m}
		}
	}
	panic("BUG: no token begins with " + strconv.QuoteRune(r))
}

// name reads letters and digits.
func (l *lexer) name() string {
	n := 0
	for r := l.runeAt(n); IsLetter(r) || IsDigit(r); r = l.runeAt(n) {
		n++
	}
	name := string(l.text[l.pos.Offset : l.pos.Offset+n])
	l.advance(n)
	return name
}

func (l *lexer) attribute() token {
	start := l.pos
	t := token{kind: tokAt}
	l.advance(1)
	if l.runeAt(0) == '@' {
		t.kind = tokAtAt
		l.advance(1)
	}
	if IsLetter(l.runeAt(0)) {
		t.text = l.name()
		return t
	}
	at := l.since(start)
	l.diags.Errorf("E001", at, "a name must follow %q", string(l.text[at.Start.Offset:at.End.Offset]))
	t.bad = true
	return t
}

func (l *lexer) string() token {
	start := l.pos
	l.advance(1)
	opening := l.since(start)
	var text strings.Builder
	t := token{kind: tokString}
	for closed := false; !closed; {
		r := l.runeAt(0)
		switch {
		case r < 0 || r == '\n' || r == '\r' && l.runeAt(1) == '\n':
			l.diags.Errorf("E002", opening, "string is not closed on this line")
			t.bad, closed = true, true
			continue
		case r == '"':
			closed = true
		case r == '\\':
			text.WriteString(l.escape())
			continue
		case unicode.IsControl(r) && r != '\t':
			at := l.pos
			l.advance(utf8.RuneLen(r))
			l.diags.Errorf("E001", l.since(at), "unexpected character %s", strconv.QuoteRune(r))
			continue
		default:
			text.WriteRune(r)
		}
		l.advance(utf8.RuneLen(r))
	}
	t.lit = &Literal{Kind: StringLit, Raw: string(l.text[start.Offset:l.pos.Offset]), Text: text.String()}
	return t
}

// escape reads an escape sequence and returns its text.
func (l *lexer) escape() string {
	start := l.pos
	l.advance(1)
	r := l.runeAt(0)
	if r < 0 || r == '\n' || r == '\r' {
		return "" // the caller reports that the string is not closed
	}
	l.advance(utf8.RuneLen(r))
	switch r {
	case '"', '\\':
		return string(r)
	case 'n':
		return "\n"
	case 't':
		return "\t"
	}
	l.diags.Errorf("E005", l.since(start), `unknown escape \%c`, r)
	return ""
}

var (
	durationUnits = map[string]time.Duration{
		"ms": time.Millisecond, "s": time.Second, "m": time.Minute,
		"h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
	}
	sizeUnits = map[string]int64{"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}
)

func (l *lexer) number() token {
	start := l.pos
	l.digits()
	decimal := false
	if l.runeAt(0) == '.' && IsDigit(l.runeAt(1)) {
		decimal = true
		l.advance(1)
		l.digits()
	}
	digits := strings.ReplaceAll(string(l.text[start.Offset:l.pos.Offset]), "_", "")
	unit := ""
	if IsLetter(l.runeAt(0)) {
		unit = l.name()
	}
	lit := &Literal{Kind: IntLit, Raw: string(l.text[start.Offset:l.pos.Offset])}
	t := token{kind: tokNumber, lit: lit}
	wrong := func(format string, args ...any) token {
		l.diags.Errorf("E004", l.since(start), format, args...)
		t.bad = true
		return t
	}

	duration, isDuration := durationUnits[unit]
	size, isSize := sizeUnits[unit]
	switch {
	case unit != "" && !isDuration && !isSize:
		hint := ""
		if meant := inUnits(digits, unit); meant != "" {
			hint = " (did you mean " + meant + "?)"
		}
		return wrong("unknown unit %q: durations end in ms, s, m, h, d or w; sizes in b, kb, mb or gb%s", unit, hint)
	case unit != "" && decimal:
		return wrong("%s: a duration or a size is a whole number", lit.Raw)
	case decimal:
		lit.Kind, lit.Text = DecimalLit, digits
		return t
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	scale := max(int64(duration), size, 1)
	if err != nil || n > math.MaxInt64/scale {
		return wrong("the number %s is too large", lit.Raw)
	}
	switch {
	case isDuration:
		lit.Kind, lit.Duration = DurationLit, time.Duration(n)*duration
	case isSize:
		lit.Kind, lit.Int = SizeLit, n*size
	default:
		lit.Int = n
	}
	return t
}

// unitWords are what people write for a unit, in lower case.
var unitWords = map[string]string{
	"millis": "ms", "msec": "ms", "msecs": "ms", "millisecond": "ms", "milliseconds": "ms",
	"sec": "s", "secs": "s", "second": "s", "seconds": "s",
	"min": "m", "mins": "m", "minute": "m", "minutes": "m",
	"hr": "h", "hrs": "h", "hour": "h", "hours": "h",
	"day": "d", "days": "d", "week": "w", "weeks": "w",
	"byte": "b", "bytes": "b", "k": "kb", "kb": "kb", "kib": "kb", "kilobyte": "kb", "kilobytes": "kb",
	"mb": "mb", "mib": "mb", "megabyte": "mb", "megabytes": "mb",
	"gb": "gb", "gib": "gb", "gigabyte": "gb", "gigabytes": "gb",
}

// inUnits is the literal that digits and a word after them were meant to be, or "": 7d by 7 and days.
func inUnits(digits, word string) string {
	word = strings.ToLower(word)
	unit := unitWords[word]
	if durationUnits[word] != 0 || sizeUnits[word] != 0 {
		unit = word
	}
	if unit != "" && strings.Trim(digits, "0123456789") == "" {
		return digits + unit
	}
	return ""
}

func (l *lexer) digits() {
	for r := l.runeAt(0); IsDigit(r) || r == '_'; r = l.runeAt(0) {
		l.advance(1)
	}
}

// atPath reports whether the last token, a word, is followed on its line by text that can
// only be a path.
func (l *lexer) atPath() bool {
	n := 0
	for l.runeAt(n) == ' ' || l.runeAt(n) == '\t' {
		n++
	}
	return n > 0 && l.runeAt(n) == '/' && l.runeAt(n+1) != '/' && l.runeAt(n+1) != '*'
}

// path reads the path after a method, which is the last token. A word on the same line
// without a leading slash is read as a path too; the compiler reports it. If nothing there
// can be a path, ok is false and path reads nothing.
func (l *lexer) path() (t token, ok bool) {
	saved := *l
	for isBlank(l.runeAt(0)) {
		l.advance(1)
	}
	r := l.runeAt(0)
	if r != '/' && (l.pos.Line != l.tokenLine || r < 0 || strings.ContainsRune(`{}()[]",@`, r)) {
		*l = saved
		return token{}, false
	}
	start := l.pos
	for r := l.runeAt(0); r >= 0 && !isBlank(r) && !l.starts("->"); r = l.runeAt(0) {
		l.advance(utf8.RuneLen(r))
	}
	if l.pos == start {
		*l = saved
		return token{}, false
	}
	t = token{kind: tokPath, span: l.since(start), first: start.Line > l.tokenLine}
	t.text = string(l.text[start.Offset:l.pos.Offset])
	l.tokenLine = l.pos.Line
	return t, true
}
