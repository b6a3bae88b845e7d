package build

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The engine says "not a function", and where. V8 says what is not a function. callSites returns
// what the log needs for that: a line "line:column:kind expression" for each place of the script
// where a call, a constructor or a loop names what it takes, with a line break before the first.
// The place is the one that the engine gives an error of it. The kinds are
//
//	c  a call: the expression is called
//	n  a constructor: behind new
//	i  a list: behind of, or behind three dots in a list
//
// A place has a line only if no other operation has the same place in the engine, and only if the
// source names the expression alike. Packages have none: they are large, and their authors
// are not those who read the log.
func callSites(dir, script string, m sourceMap) string {
	c := callScan{text: script, lines: lineStarts(script), places: map[int]string{}}
	for _, at := range callChain.FindAllStringIndex(script, -1) {
		c.chain(at[0], at[1])
	}
	for _, at := range c.shared() {
		delete(c.places, at)
	}
	var out strings.Builder
	out.WriteByte('\n')
	sources := sourceLines{dir: dir, files: map[string][]string{}}
	all := c.sorted()
	next := 0
	var last [5]int
	known := false
	// write writes the places before an offset, which belong to the last segment.
	write := func(before int) {
		for ; next < len(all) && all[next] < before; next++ {
			entry := c.places[all[next]]
			if !known || !sources.have(m.Sources[last[1]], last[2], entry[1:]) {
				continue
			}
			line, found := slices.BinarySearch(c.lines, all[next])
			if !found {
				line--
			}
			fmt.Fprintf(&out, "%d:%d:%s\n", line+1, utf16Len(script[c.lines[line]:all[next]])+1, entry)
		}
	}
	m.each(func(line, fields int, state [5]int) {
		if line >= len(c.lines) {
			return
		}
		write(c.offset(line, state[0]))
		last, known = state, fields >= 4 && state[1] < len(m.Sources) && !isOurs(m.Sources[state[1]]) && !inPackage(m.Sources[state[1]])
	})
	write(len(script))
	return out.String()
}

// callChain matches names, members, elements and calls with simple arguments, up to what follows.
var callChain = regexp.MustCompile(`[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*|\[[A-Za-z_$][\w$]*\]|\((?:[\w$., +-]|"[^"\\\n]*"|'[^'\\\n]*')*\))*`)

// chainPart matches one part of a chain.
var chainPart = regexp.MustCompile(`^(?:\??\.[A-Za-z_$][\w$]*|\[[A-Za-z_$][\w$]*\]|\((?:[\w$., +-]|"[^"\\\n]*"|'[^'\\\n]*')*\))`)

// reserved are words that may stand before a parenthesis without being called.
var reserved = regexp.MustCompile(`^(?:if|for|while|do|switch|catch|return|typeof|function|await|yield|in|of|instanceof|case|default|delete|void|throw|else|super|import|export|new|class|extends|async|let|const|var|with|get|set|static)$`)

// errorName matches constructors of errors: such an error may have the engine's text.
var errorName = regexp.MustCompile(`(?:Error|Exception)$`)

type callScan struct {
	text  string
	lines []int // where each begins
	// places are the entries by the offset of their place.
	places map[int]string
	// calls are the entries by the offset of their parenthesis.
	calls []struct{ open, place int }
}

// chain adds the entries of a chain. In the engine the place of a call is that of the last name
// before its parenthesis.
func (c *callScan) chain(from, to int) {
	text := c.text[from:to]
	before := strings.TrimRight(c.text[:from], " \n")
	root := sourceName.FindString(text)
	if reserved.MatchString(root) || endsIn(c.text[:from], `.#"'`+"`") {
		return
	}
	word := lastWord(before)
	name, end := from, from+len(root) // the last name, and the end of the part
	switch {
	case word == "new":
		if next := c.after(end); next == '(' && !errorName.MatchString(root) {
			c.places[from] = "n" + root
		}
		return
	case word == "function" || word == "class" || strings.HasSuffix(before, "function*"):
		return
	case to == end && (word == "of" && strings.HasPrefix(c.text[to:], ")") || strings.HasSuffix(before, "[...") && strings.HasPrefix(c.text[to:], "]")):
		c.places[from] = "i" + root
		return
	}
	// What is iterated may fail in the same place, as its iterator has no function next.
	iterated := word == "of" || strings.HasSuffix(before, "...") || strings.HasSuffix(before, "*") || strings.HasSuffix(before, "] =")
	for {
		if open := c.after(end); (open == '(' || open == '`' || strings.HasPrefix(c.text[end:], "?.(")) && !iterated && end > name {
			if c.text[end-1] != ')' {
				c.places[name] = "c" + shown(c.text[from:end])
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
// for a call of what has no name, such as the result of a call: it gives the last place before, or
// that of the call.
func (c *callScan) shared() (all []int) {
	sorted := c.sorted()
	before := func(at int) {
		if i, _ := slices.BinarySearch(sorted, at); i > 0 {
			all = append(all, sorted[i-1])
		}
	}
	for at := range len(c.text) {
		if char := c.text[at]; (char == '(' || char == '`') && endsIn(strings.TrimRight(c.text[max(0, at-8):at], " \n?."), ")]}'\"`0123456789") {
			before(at)
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
			before(end)
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

// offset returns the offset of a column of a line in UTF-16 units.
func (c *callScan) offset(line, column int) int {
	at := c.lines[line]
	for _, r := range c.text[at:] {
		if column <= 0 || r == '\n' {
			break
		}
		column--
		if r > 0xffff {
			column--
		}
		at += len(string(r))
	}
	return at
}

func utf16Len(text string) (n int) {
	for _, r := range text {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

func endsIn(text, chars string) bool {
	return text != "" && strings.IndexByte(chars, text[len(text)-1]) >= 0
}

func lastWord(text string) string {
	end := len(text)
	for end > 0 && (text[end-1] == '_' || text[end-1] == '$' || text[end-1] >= 'a' && text[end-1] <= 'z' || text[end-1] >= 'A' && text[end-1] <= 'Z' || text[end-1] >= '0' && text[end-1] <= '9') {
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

// A chain in the source may have as many lines.
const mostChainLines = 8

// have reports whether the source names all that an expression names, near a line. The bundler
// gives other names to what would collide.
func (s *sourceLines) have(file string, line int, expression string) bool {
	lines, ok := s.files[file]
	if !ok {
		text, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(file)))
		if err == nil {
			lines = strings.Split(string(text), "\n")
		}
		s.files[file] = lines
	}
	if line >= len(lines) {
		return false
	}
	near := strings.Join(lines[max(0, line-mostChainLines):line+1], "\n")
	for _, name := range sourceName.FindAllString(expression, -1) {
		if !regexp.MustCompile(`(?:^|[^\w$])` + regexp.QuoteMeta(name) + `(?:[^\w$]|$)`).MatchString(near) {
			return false
		}
	}
	return true
}

var sourceName = regexp.MustCompile(`[A-Za-z_$][\w$]*`)
