package typescript

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"runner.example/internal/sourcemap"
)

// The engine says only "not a function", and where. V8 also says what is not a function. callSites
// returns what the log needs for that: a line "line:column:kind expression" for each place in the
// script where a named expression is called, constructed or iterated. A line break is before the
// first line. The place is the one that the engine gives to an error there. The kinds are
//
//	c  the expression is called
//	n  the expression is constructed with new
//	i  the expression is iterated: by for … of, or by spread in an array
//
// A place has a line only if no other operation has the same place in the engine, and only if the
// source has the same names there. Places in packages have no lines: packages are large, and their
// authors do not read the log.
func callSites(dir, script string, m *sourcemap.Map) string {
	c := callScan{text: script, lines: lineStarts(script), places: map[int]entry{}}
	for _, at := range callChain.FindAllStringIndex(script, -1) {
		c.chain(at[0], at[1])
	}
	for _, at := range c.shared() {
		delete(c.places, at)
	}
	all := segments(m, script, c.lines)
	sources := sourceLines{dir: dir, files: map[string][]string{}}
	var out strings.Builder
	out.WriteByte('\n')
	for _, at := range c.sorted() {
		e := c.places[at]
		name, ok := sources.root(m, all, script, e.root)
		if !ok || !sources.contain(m, all, at, e.rest) {
			continue
		}
		line, found := slices.BinarySearch(c.lines, at)
		if !found {
			line--
		}
		fmt.Fprintf(&out, "%d:%d:%c%s\n", line+1, utf16Len(script[c.lines[line]:at])+1, e.kind, shown(name+e.rest))
	}
	return out.String()
}

// entry is the expression at a place: the offset of its first name, and the text that follows the name.
type entry struct {
	kind byte
	root int
	rest string
}

// renamed returns the names that the bundler has changed because two files have the same name, such as
// plain2 for plain: the new name, and the name in the source. It leaves out names with other uses.
func renamed(script string, m *sourcemap.Map) map[string]string {
	names, uses := map[string]string{}, map[string]int{}
	for _, s := range segments(m, script, lineStarts(script)) {
		if s.name == "" {
			continue
		}
		name := sourceName.FindString(script[s.offset:min(len(script), s.offset+maxName)])
		if before, ok := names[name]; ok && before != s.name {
			uses[name] = -1 << 30
		}
		names[name] = s.name
		uses[name]++
	}
	for _, at := range sourceName.FindAllStringIndex(script, -1) {
		if name := script[at[0]:at[1]]; names[name] != "" {
			uses[name]--
		}
	}
	for name, n := range uses {
		if n != 0 || name == names[name] || name == "" {
			delete(names, name)
		}
	}
	return names
}

const maxName = 200

// segment is a segment of a source map.
type segment struct {
	offset int // in the script
	source int // sourcemap.Unknown, or an index of its sources
	// line and column count from 0. The column is in UTF-16 units.
	line, column int
	name         string // in the source, if the script has another one
}

// segments returns the segments in the order of their offsets.
func segments(m *sourcemap.Map, script string, lines []int) (all []segment) {
	from, column := -1, 0
	offset := 0
	for found := range m.Segments() {
		if found.GeneratedLine >= len(lines) {
			break
		}
		if found.GeneratedLine != from {
			from, column, offset = found.GeneratedLine, 0, lines[found.GeneratedLine]
		}
		for column < found.GeneratedColumn && offset < len(script) && script[offset] != '\n' {
			r, size := utf8.DecodeRuneInString(script[offset:])
			column += utf16.RuneLen(r)
			offset += size
		}
		all = append(all, segment{offset, found.Source, found.Line, found.Column, found.Name})
	}
	return all
}

// callChain matches names, members, elements and calls with simple arguments, up to what follows.
var callChain = regexp.MustCompile(`[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*|\[[A-Za-z_$][\w$]*\]|\((?:[\w$., +-]|"[^"\\\n]*"|'[^'\\\n]*')*\))*`)

// chainPart matches one part of a chain.
var chainPart = regexp.MustCompile(`^(?:\??\.[A-Za-z_$][\w$]*|\[[A-Za-z_$][\w$]*\]|\((?:[\w$., +-]|"[^"\\\n]*"|'[^'\\\n]*')*\))`)

// reserved are words that may stand before a parenthesis without being called.
var reserved = regexp.MustCompile(`^(?:if|for|while|do|switch|catch|return|typeof|function|await|yield|in|of|instanceof|case|default|delete|void|throw|else|super|import|export|new|class|extends|async|let|const|var|with|get|set|static)$`)

// errorName matches constructors of errors: such an error may have the engine's text.
var errorName = regexp.MustCompile(`(?:Error|Exception)$`)

// inList matches the text before an expression that is spread in an array.
var inList = regexp.MustCompile(`(?:^|[^\w$)\]])\[(?:[\w$., ]*, )?\.\.\.$`)

// maxListStart limits how much of a list before its three dots is read.
const maxListStart = 200

type callScan struct {
	text  string
	lines []int // where each begins
	// places are the entries by the offset of their place.
	places map[int]entry
	// calls are the entries by the offset of their parenthesis.
	calls []struct{ open, place int }
}

// chain adds the entries of a chain. In the engine the place of a call is that of the last name
// before its parenthesis.
func (c *callScan) chain(from, to int) {
	text := c.text[from:to]
	before := strings.TrimRight(c.text[:from], " \n")
	root := sourceName.FindString(text)
	if reserved.MatchString(root) || endsIn(c.text[:from], `.#"'`+"`") && !strings.HasSuffix(before, "...") {
		return
	}
	word := lastWord(before)
	name, end := from, from+len(root) // the last name, and the end of the part
	switch {
	case word == "new":
		if next := c.after(end); next == '(' && !errorName.MatchString(root) {
			c.places[from] = entry{'n', from, ""}
		}
		return
	case word == "function" || word == "class" || strings.HasSuffix(before, "function*"):
		return
	case to == end && (word == "of" && strings.HasPrefix(c.text[to:], ")") || inList.MatchString(before[max(0, len(before)-maxListStart):]) && strings.HasPrefix(c.text[to:], "]")):
		c.places[from] = entry{'i', from, ""}
		return
	}
	// What is iterated may fail in the same place, as its iterator has no function next.
	iterated := word == "of" || strings.HasSuffix(before, "...") || strings.HasSuffix(before, "*") || strings.HasSuffix(before, "] =")
	for {
		if open := c.after(end); (open == '(' || open == '`' || strings.HasPrefix(c.text[end:], "?.(")) && !iterated && end > name {
			if c.text[end-1] != ')' {
				c.places[name] = entry{'c', from, c.text[from+len(root) : end]}
				c.calls = append(c.calls, struct{ open, place int }{end + strings.IndexAny(c.text[end:], "(`"), name})
			}
		}
		part := chainPart.FindString(c.text[end:to])
		if part == "" {
			return
		}
		switch part[0] {
		case '.':
			name = end + 1
		case '?':
			name = end + 2
		case '[':
			name = end + 1
		}
		end += len(part)
	}
}

// shared returns the places that another operation may share. The engine has no place of its own
// for a call of an expression without a name, such as the result of a call: it gives the last place
// before, or that of the call.
func (c *callScan) shared() (all []int) {
	sorted := c.sorted()
	named := map[int]bool{}
	for _, call := range c.calls {
		named[call.open] = true
	}
	before := func(at int) string { return strings.TrimRight(c.text[max(0, at-maxListStart):at], " \n?.") }
	share := func(at int) {
		if i, _ := slices.BinarySearch(sorted, at); i > 0 {
			all = append(all, sorted[i-1])
		}
	}
	for at := range len(c.text) {
		// A brace before a back quote ends a part of a template.
		if char := c.text[at]; !named[at] && (char == '(' && endsIn(before(at), ")]}") || char == '`' && endsIn(before(at), ")]")) {
			share(at)
		}
	}
	for _, call := range c.calls {
		end := c.closing(call.open)
		if end < 0 {
			all = append(all, call.place)
			continue
		}
		rest := strings.TrimLeft(c.text[end:min(len(c.text), end+8)], " \n?.")
		if strings.HasPrefix(rest, "(") || strings.HasPrefix(rest, "[") || strings.HasPrefix(rest, "`") {
			all = append(all, call.place)
			share(end)
		}
	}
	return all
}

// closing returns the end of what the parenthesis or the template at an offset begins, or -1 if
// it is not certain.
func (c *callScan) closing(open int) int {
	if c.text[open] == '`' {
		return c.template(open + 1)
	}
	depth := 0
	for at := open; at < len(c.text); at++ {
		switch char := c.text[at]; char {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return at + 1
			}
		case '"', '\'':
			for at++; at < len(c.text) && c.text[at] != char; at++ {
				if c.text[at] == '\\' {
					at++
				}
			}
		case '`':
			end := c.template(at + 1)
			if end < 0 {
				return -1
			}
			at = end - 1
		case '/':
			if strings.HasPrefix(c.text[at:], "/*") {
				length := strings.Index(c.text[at+2:], "*/")
				if length < 0 {
					return -1
				}
				at += length + 3
				continue
			}
			if !divides.MatchString(c.text[max(open, at-8):at]) {
				return -1 // perhaps a regular expression
			}
		}
	}
	return -1
}

// divides matches the text before a slash that divides.
var divides = regexp.MustCompile(`[\w$\]] $`)

// template returns the end of a template whose content begins at an offset, or -1.
func (c *callScan) template(at int) int {
	for ; at < len(c.text); at++ {
		switch {
		case c.text[at] == '\\':
			at++
		case c.text[at] == '`':
			return at + 1
		case strings.HasPrefix(c.text[at:], "${"):
			end := c.closing(at + 1)
			if end < 0 {
				return -1
			}
			at = end - 1
		}
	}
	return -1
}

func (c *callScan) sorted() []int {
	all := make([]int, 0, len(c.places))
	for at := range c.places {
		all = append(all, at)
	}
	slices.Sort(all)
	return all
}

// after returns the character at an offset, or 0.
func (c *callScan) after(at int) byte {
	if at < len(c.text) {
		return c.text[at]
	}
	return 0
}

func utf16Len(text string) (n int) {
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

func endsIn(text, chars string) bool {
	return text != "" && strings.IndexByte(chars, text[len(text)-1]) >= 0
}

func lastWord(text string) string {
	end := len(text)
	for end > 0 && isNamePart(text[end-1]) {
		end--
	}
	return text[end:]
}

var callArguments = regexp.MustCompile(`\([^()]*\)`)

// shown returns an expression as V8 shows it.
func shown(text string) string { return callArguments.ReplaceAllString(text, "(...)") }

// sourceLines are the lines of the app's files.
type sourceLines struct {
	dir   string
	files map[string][]string
}

// maxChainLines is how many lines a chain in the source can have.
const maxChainLines = 8

// root returns the first name of an expression as its source has it. It is false if the source has
// something else there, such as an import with another name, or if the source is not the app's.
func (s *sourceLines) root(m *sourcemap.Map, all []segment, script string, offset int) (string, bool) {
	i, _ := slices.BinarySearchFunc(all, offset+1, func(s segment, offset int) int { return s.offset - offset })
	if i == 0 || all[i-1].source < 0 || strings.Trim(script[all[i-1].offset:offset], " ") != "" {
		return "", false
	}
	at := all[i-1] // a statement begins with its indentation
	lines := s.lines(m.Sources[at.source])
	if at.line >= len(lines) {
		return "", false
	}
	text := lines[at.line]
	line := text
	for column := 0; column < at.column && text != ""; {
		r, size := utf8.DecodeRuneInString(text)
		column += utf16.RuneLen(r)
		text = text[size:]
	}
	name := sourceName.FindString(script[offset:min(len(script), offset+maxName)])
	if at.name != "" {
		name = at.name
	}
	after, ok := strings.CutPrefix(text, name)
	alone := !endsIn(strings.TrimRight(line[:len(line)-len(text)], " "), ".") // an import as a member of its module has no such name
	return name, ok && alone && name != "" && (after == "" || !isNamePart(after[0]))
}

// contain reports whether the source has all names of an expression, near the place of an offset.
func (s *sourceLines) contain(m *sourcemap.Map, all []segment, offset int, expression string) bool {
	i, exact := slices.BinarySearchFunc(all, offset, func(s segment, offset int) int { return s.offset - offset })
	if !exact {
		i--
	}
	if i < 0 || all[i].source < 0 {
		return false
	}
	lines := s.lines(m.Sources[all[i].source])
	if all[i].line >= len(lines) {
		return false
	}
	near := strings.Join(lines[max(0, all[i].line-maxChainLines):all[i].line+1], "\n")
	for _, name := range sourceName.FindAllString(callArguments.ReplaceAllString(expression, ""), -1) {
		if !hasWord(near, name) {
			return false
		}
	}
	return true
}

// lines returns the lines of a file of the app, none of other files.
func (s *sourceLines) lines(file string) []string {
	if isOurs(file) || inPackage(file) {
		return nil
	}
	lines, ok := s.files[file]
	if !ok {
		if text, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(file))); err == nil {
			lines = strings.Split(string(text), "\n")
		}
		s.files[file] = lines
	}
	return lines
}

func hasWord(text, word string) bool {
	for {
		before, after, ok := strings.Cut(text, word)
		if !ok {
			return false
		}
		if (before == "" || !isNamePart(before[len(before)-1])) && (after == "" || !isNamePart(after[0])) {
			return true
		}
		text = after
	}
}

func isNamePart(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}

var sourceName = regexp.MustCompile(`[A-Za-z_$][\w$]*`)
