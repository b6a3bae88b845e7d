package query

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/internal/casefold"
	"runner.example/internal/cost"
	"runner.example/internal/diag"
	"runner.example/schema"
)

// Limits of a condition, because it is evaluated for every scanned row.
const (
	maxNesting     = 16   // of or and not
	maxComparisons = 256  // in one where
	maxAmong       = 1000 // values of one in
)

// operator is a comparison of a field with a value, or a connective.
type operator uint8

const (
	opEqual operator = iota
	opNotEqual
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opAmong
	opStartsWith
	opContains

	opAnd
	opOr
	opNot
)

var comparisons = []string{"=", "!=", "<", "<=", ">", ">=", "in", "startsWith", "contains"}

func (op operator) String() string { return comparisons[op] }

// Condition is a comparison, or conditions under a connective. It is two-valued: null
// equals only null and has no order, so every other comparison with it is false.
type Condition struct {
	op    operator
	parts []Condition // of a connective; opNot has one

	column Column // of a comparison
	// ignoreCase: the value and the row's text are folded before they are compared.
	ignoreCase bool
	value      schema.Value // but for in
	among      []schema.Value
	sorted     []schema.Value // among in order, when it is long
}

// Match reports whether a row matches the condition. The row has its values at the
// positions of the columns. When m fails, the result is undefined.
func (c *Condition) Match(row []schema.Value, m *cost.Meter) bool {
	switch c.op {
	case opAnd:
		for i := range c.parts {
			if !c.parts[i].Match(row, m) {
				return false
			}
		}
		return true
	case opOr:
		for i := range c.parts {
			if c.parts[i].Match(row, m) {
				return true
			}
		}
		return false
	case opNot:
		return !c.parts[0].Match(row, m)
	}
	return c.compare(row[c.column.Pos], m)
}

func (c *Condition) compare(v schema.Value, m *cost.Meter) bool {
	if c.ignoreCase {
		return c.compareFolded(v, m)
	}
	switch c.op {
	case opEqual:
		return v.Equal(c.value)
	case opNotEqual:
		return !v.Equal(c.value)
	case opAmong:
		return c.hasAmong(v)
	case opStartsWith:
		return v.Kind() == schema.KindText && strings.HasPrefix(v.Text(), c.value.Text())
	case opContains:
		if v.Kind() == schema.KindText && c.value.Kind() == schema.KindText {
			return containsText(v.Text(), c.value.Text(), m)
		}
		return m.Spend(listUnits*len(v.List())) == nil && slices.ContainsFunc(v.List(), c.value.Equal)
	}
	order, ok := v.Compare(c.value)
	if !ok {
		return false
	}
	switch c.op {
	case opLess:
		return order < 0
	case opLessEqual:
		return order <= 0
	case opGreater:
		return order > 0
	default:
		return order >= 0
	}
}

// foldUnits is the cost of folding a byte of a text.
const foldUnits = 4

// compareFolded is compare of texts without regard to case.
func (c *Condition) compareFolded(v schema.Value, m *cost.Meter) bool {
	if v.Kind() == schema.KindList {
		return slices.ContainsFunc(v.List(), func(elem schema.Value) bool { return c.isFolded(elem, opEqual, m) })
	}
	return c.isFolded(v, c.op, m)
}

func (c *Condition) isFolded(v schema.Value, op operator, m *cost.Meter) bool {
	if v.Kind() != schema.KindText {
		return false
	}
	text, want := v.Text(), c.value.Text()
	if op != opContains {
		text = casefold.Head(text, len(want))
	}
	if m.Spend(foldUnits*len(text)) != nil {
		return false
	}
	switch text = casefold.Fold(text); op {
	case opEqual:
		return text == want
	case opStartsWith:
		return strings.HasPrefix(text, want)
	}
	return containsText(text, want, m)
}

// listUnits is the cost of comparing an element of a list.
const listUnits = 8

// containsText is strings.Contains, in pieces of a long text.
func containsText(text, part string, m *cost.Meter) bool {
	step := max(cost.Every, len(part))
	for {
		window := text[:min(len(text), step+len(part))]
		if m.Spend(len(window)) != nil {
			return false
		}
		if strings.Contains(window, part) {
			return true
		}
		if len(window) == len(text) {
			return false
		}
		text = text[step:]
	}
}

func (c *Condition) hasAmong(v schema.Value) bool {
	if c.sorted == nil {
		return slices.ContainsFunc(c.among, v.Equal)
	}
	if v.IsNull() {
		return false
	}
	_, found := slices.BinarySearchFunc(c.sorted, v, compareValues)
	return found
}

// compareValues is a total order of the values that orderBy supports: null, false, true,
// numbers, texts, then values without an order, which are equal.
func compareValues(a, b schema.Value) int {
	if order, ok := a.Compare(b); ok {
		return order
	}
	return rank(a) - rank(b)
}

func rank(v schema.Value) int {
	switch v.Kind() {
	case schema.KindNull:
		return 0
	case schema.KindBool:
		return 1
	case schema.KindInt, schema.KindFloat, schema.KindDecimal:
		return 2
	case schema.KindText, schema.KindTime, schema.KindDate, schema.KindDuration, schema.KindBytes:
		return 3 // values of one column have one kind
	}
	return 4
}

// ---- for the planner ----
//
// The planner gets values of the column's type, but a row may not be able to have them: a
// text that is too long, a decimal with other places.

// Span is a range that the values of a column must be in. Null is in no span.
type Span struct {
	Low, High         schema.Value // null: unlimited
	LowOpen, HighOpen bool         // the limit itself is excluded
	Prefix            string       // a text must begin with it; may be empty
}

// Equal returns the value, which may be null, that the column at pos must have in every
// matching row; false when the condition does not say.
func (c *Condition) Equal(pos int) (schema.Value, bool) {
	for i := range c.must() {
		if p := &c.must()[i]; p.op == opEqual && !p.ignoreCase && p.column.Pos == pos {
			return p.value, true
		}
	}
	return schema.Value{}, false
}

// OneOf returns the values of which the column at pos must have one, sorted and without
// duplicates; false when the condition does not say.
func (c *Condition) OneOf(pos int) ([]schema.Value, bool) {
	for i := range c.must() {
		if p := &c.must()[i]; p.op == opAmong && p.column.Pos == pos {
			list := slices.Clone(p.among)
			slices.SortFunc(list, compareValues)
			return slices.CompactFunc(list, schema.Value.Equal), true
		}
	}
	return nil, false
}

// Within returns the range of the column at pos; false when the condition does not say. A
// row in the range may still not match.
func (c *Condition) Within(pos int) (Span, bool) {
	var s Span
	found := false
	for i := range c.must() {
		p := &c.must()[i]
		if p.column.Pos != pos || p.ignoreCase {
			continue
		}
		switch p.op {
		case opGreater, opGreaterEqual:
			if order, ok := p.value.Compare(s.Low); !ok || order > 0 || order == 0 && p.op == opGreater {
				s.Low, s.LowOpen = p.value, p.op == opGreater
			}
		case opLess, opLessEqual:
			if order, ok := p.value.Compare(s.High); !ok || order < 0 || order == 0 && p.op == opLess {
				s.High, s.HighOpen = p.value, p.op == opLess
			}
		case opStartsWith:
			if len(p.value.Text()) > len(s.Prefix) {
				s.Prefix = p.value.Text()
			}
		default:
			continue
		}
		found = true
	}
	return s, found
}

// EqualFolded returns the folded text that the column at pos must have in every matching row,
// once that is folded; false when the condition does not say.
func (c *Condition) EqualFolded(pos int) (schema.Value, bool) {
	for i := range c.must() {
		if p := &c.must()[i]; p.op == opEqual && p.ignoreCase && p.column.Pos == pos {
			return p.value, true
		}
	}
	return schema.Value{}, false
}

// WithinFolded is Within of the column's folded texts.
func (c *Condition) WithinFolded(pos int) (s Span, found bool) {
	for i := range c.must() {
		p := &c.must()[i]
		if p.column.Pos != pos || p.op != opStartsWith {
			continue
		}
		if prefix := casefold.Fold(p.value.Text()); len(prefix) > len(s.Prefix) {
			s.Prefix = prefix
		}
		found = true
	}
	return s, found
}

// must returns conditions that must all be true, connectives among them.
func (c *Condition) must() []Condition {
	if c.op == opAnd {
		return c.parts
	}
	return nil
}

// ---- reading ----

// conditions parses where.
type conditions struct {
	*reader
	comparisons int
}

// list parses the list of conditions at the place named at.
func (r *conditions) list(raw []byte, at string, depth int) (Condition, error) {
	all := Condition{op: opAnd}
	if raw[0] != '[' {
		return all, Invalidf("%s: must be a list of conditions", at)
	}
	for i, elem := range elementsOf(raw) {
		if err := r.Work.Spend(len(elem)); err != nil {
			return all, TimeOver(err)
		}
		part, err := r.condition(elem, ElementPath(at, i), depth)
		if err != nil {
			return all, err
		}
		all.parts = append(all.parts, part)
	}
	return all, nil
}

// ElementPath is the path of an element of the list at a path, for errors.
func ElementPath(at string, i int) string { return at + "[" + strconv.Itoa(i) + "]" }

// ignoreCase is the last element of a comparison without regard to case.
const ignoreCase = "ignoreCase"

// condition parses [field, operator, value, "ignoreCase"?], ["or", …] or ["not", …].
func (r *conditions) condition(raw []byte, at string, depth int) (Condition, error) {
	const form = `%s: a condition is [field, operator, value], with "ignoreCase" after it or not, ["or", …] or ["not", …]`
	if raw[0] != '[' {
		return Condition{}, Invalidf(form, at)
	}
	var buf [5][]byte
	parts := buf[:0]
	for _, elem := range elementsOf(raw) {
		parts = append(parts, elem)
	}
	if len(parts) == 0 {
		return Condition{}, Invalidf(form, at)
	}
	head, ok := textOf(parts[0])
	if !ok {
		return Condition{}, Invalidf(form, at)
	}
	// A field may be called "or": then an operator follows, which is a string.
	if connective := len(parts) == 1 || parts[1][0] == '['; connective && (head == "or" || head == "not") {
		return r.connective(head, parts[1:], at, depth+1)
	}
	folds := false
	if len(parts) == 4 {
		last, _ := textOf(parts[3])
		folds = last == ignoreCase
	}
	if len(parts) != 3 && !folds {
		return Condition{}, Invalidf(form, at)
	}
	return r.comparison(head, parts[1], parts[2], folds, at)
}

func (r *conditions) connective(word string, parts [][]byte, at string, depth int) (Condition, error) {
	c := Condition{op: opOr}
	switch {
	case depth > maxNesting:
		return c, Invalidf("%s: at most %d levels of nested conditions are allowed", at, maxNesting)
	case word == "not":
		c.op = opNot
		if len(parts) != 1 {
			return c, Invalidf(`%s: "not" takes one condition`, at)
		}
	case len(parts) == 0:
		return c, Invalidf(`%s: "or" needs a condition`, at)
	}
	for i, raw := range parts {
		at := ElementPath(at, i+1)
		read := r.condition
		if isListOfLists(raw) {
			read = r.list
		}
		part, err := read(raw, at, depth)
		if err != nil {
			return c, err
		}
		c.parts = append(c.parts, part)
	}
	return c, nil
}

// isListOfLists distinguishes a list of conditions from one condition, which begins with a
// string.
func isListOfLists(raw []byte) bool {
	if raw[0] != '[' {
		return false
	}
	first := nextPart(raw[1:])
	return first[0] == '[' || first[0] == ']'
}

func (r *conditions) comparison(name string, rawOp, rawValue []byte, folds bool, at string) (Condition, error) {
	if r.comparisons++; r.comparisons > maxComparisons {
		return Condition{}, Invalidf("%s: at most %d comparisons are allowed", at, maxComparisons)
	}
	column, err := r.column(name, at)
	if err != nil {
		return Condition{}, err
	}
	word, _ := textOf(rawOp)
	op := slices.Index(comparisons, word)
	if op < 0 {
		return Condition{}, invalidValue(name, rawOp, "cannot be compared with an unknown operator; known: "+strings.Join(comparisons, " "),
			"%s: unknown operator %s%s; known: %s",
			at, short(rawOp), diag.DidYouMean(word, comparisons), strings.Join(comparisons, " "))
	}
	c := Condition{op: operator(op), column: column, ignoreCase: folds}
	if err := r.Work.Spend(ArgumentUnits * len(rawValue)); err != nil {
		return c, TimeOver(err)
	}
	if err := c.readOperand(rawValue); err != nil {
		return c, invalidValue(name, rawValue, err.Error(), "%s: %s %s: %v", at, name, word, err)
	}
	return c, nil
}

// short shortens a text for a message.
func short(raw []byte) string {
	if len(raw) > 40 {
		raw = append(bytes.ToValidUTF8(raw[:40], nil), "…"...)
	}
	return string(raw)
}

// ---- writing ----

// appendJSON appends the condition as it is written in a list of conditions.
func (c *Condition) appendJSON(dst []byte) []byte {
	switch c.op {
	case opAnd:
		dst = append(dst, '[')
		for i := range c.parts {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = c.parts[i].appendJSON(dst)
		}
		return append(dst, ']')
	case opOr, opNot:
		dst = append(dst, `["or"`...)
		if c.op == opNot {
			dst = append(dst[:len(dst)-len(`"or"`)], `"not"`...)
		}
		for i := range c.parts {
			dst = c.parts[i].appendJSON(append(dst, ','))
		}
		return append(dst, ']')
	}
	dst = AppendText(append(dst, '['), c.column.name)
	dst = AppendText(append(dst, ','), c.op.String())
	dst = append(dst, ',')
	if c.op == opAmong {
		return append(c.column.typ.AppendJSON(dst, schema.ListValue(c.among)), ']')
	}
	if c.ignoreCase {
		return append(AppendText(append(AppendText(dst, c.value.Text()), ','), ignoreCase), ']')
	}
	return append(c.column.typ.AppendJSON(dst, c.value), ']')
}

// AppendText appends s, which is UTF-8, as a JSON string.
func AppendText(dst []byte, s string) []byte {
	dst, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		panic("BUG: a text that is not UTF-8: " + err.Error())
	}
	return dst
}
