package languageserver

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"runner.example/schema/syntax"
)

// block is what is inside of brackets.
type block int

const (
	inFile block = iota
	inAuth
	inCookie
	inJWT
	inAPIKeys
	inScopes
	inScope
	inOutbound
	inModule
	inPython
	inEnum
	inType
	inEntity
	inFunctions
	inJobs
	inRoutes
	inSettings    // of a route, a group or a function
	inJobSettings // of a job, or of all
	inAssetSettings
	inParams
	inScopeNames // apiKey(…)
	inRoleNames  // session(…)
	inModes      // anyOf(…)
	inWebhook
	inColumns // @@index(…)
	inInverse // @inverse(…)
	inOnDelete
	inIndex  // @index(…)
	inFields // fields (…)
	inExists // exists(…)
	inRule   // parentheses and lists in a rule
	inOther
)

// bracket is an open bracket before the cursor.
type bracket struct {
	block
	// open is the index of the bracket among the tokens, -1 for the file; item is that of the first
	// token of the item that the cursor is in.
	open, item int
}

// cursor is a place in a file where something is typed.
type cursor struct {
	*file
	grammar syntax.Words
	offset  int
	// start is where the word at the cursor begins, with its @; prefix is its text up to the cursor.
	start  int
	prefix string
	// quoted reports that the word is in quotes: start is after the opening one.
	quoted bool
	// tokens are those before the word.
	tokens []syntax.Token
	// brackets are the open ones, the innermost last.
	brackets []bracket
	// fresh reports that the word is the first one of its line, comma that a comma precedes it.
	fresh, comma bool
}

func isWordByte(b byte) bool { return syntax.IsLetter(rune(b)) || syntax.IsDigit(rune(b)) }

func newCursor(f *file, offset int) *cursor {
	c := &cursor{file: f, offset: offset, start: offset, grammar: syntax.AllWords()}
	line := bytes.LastIndexByte(f.src[:offset], '\n') + 1
	if quote := openQuote(f.src[line:offset]); quote >= 0 {
		c.quoted, c.start = true, line+quote+1
	} else {
		for c.start > line && isWordByte(f.src[c.start-1]) {
			c.start--
		}
		for c.start > line && f.src[c.start-1] == '@' {
			c.start--
		}
	}
	c.prefix = string(f.src[c.start:offset])
	end := c.start
	if c.quoted {
		end--
	}
	n, _ := slices.BinarySearchFunc(f.tree.Tokens, end, func(t syntax.Token, end int) int { return cmp.Compare(t.Loc.End.Offset, end+1) })
	c.tokens = f.tree.Tokens[:n]
	before := 0
	if len(c.tokens) > 0 {
		before = c.tokens[len(c.tokens)-1].Loc.End.Offset
	}
	c.fresh = strings.Contains(string(f.src[before:end]), "\n") || before == 0
	c.comma = strings.Contains(string(f.src[before:end]), ",")
	c.read()
	return c
}

// openQuote returns the place of the quote that is open at the end of a part of a line, or -1.
func openQuote(part []byte) int {
	open := -1
	for i := 0; i < len(part); i++ {
		switch {
		case open >= 0 && part[i] == '\\':
			i++
		case part[i] == '"' && open < 0:
			open = i
		case part[i] == '"':
			open = -1
		case open < 0 && part[i] == '/' && i+1 < len(part) && part[i+1] == '/' && (i == 0 || part[i-1] == ' '):
			return -1 // a comment
		}
	}
	return open
}

// inComment reports whether the cursor is in a comment.
func (c *cursor) inComment() bool {
	for _, comment := range c.tree.Comments {
		if comment.Loc.Start.Offset < c.offset && c.offset <= comment.Loc.End.Offset {
			return true
		}
	}
	return false
}

// read finds the open brackets and the item that the cursor is in.
func (c *cursor) read() {
	closed := map[int]int{} // closing bracket → opening bracket
	c.brackets = []bracket{{inFile, -1, 0}}
	for i, t := range c.tokens {
		top := &c.brackets[len(c.brackets)-1]
		if t.Loc.Start.Col == 1 && len(c.brackets) > 1 && slices.Contains(c.grammar.Declarations, t.Text) && !top.hasWord(t.Text) {
			c.brackets = c.brackets[:1] // a closing bracket is missing
			top = &c.brackets[0]
		}
		if c.begins(top.block, i) {
			top.item = i
		}
		switch t.Text {
		case "{", "(", "[":
			c.brackets = append(c.brackets, bracket{c.opened(i, top.block, closed), i, i + 1})
		case "}", ")", "]":
			if len(c.brackets) > 1 {
				closed[i] = top.open
				c.brackets = c.brackets[:len(c.brackets)-1]
			}
		}
	}
}

// hasWord reports whether a declaration's word is also an item of the block.
func (b bracket) hasWord(word string) bool {
	return b.block == inRoutes && word == "routes" || b.block == inFunctions || b.block == inJobs
}

// text returns the n-th token, "" if there is none.
func (c *cursor) text(n int) string {
	if n < 0 || n >= len(c.tokens) {
		return ""
	}
	return c.tokens[n].Text
}

// begins reports whether a token begins an item of a block.
func (c *cursor) begins(b block, i int) bool {
	t, next := c.tokens[i], c.text(i+1)
	switch b {
	case inFile:
		return t.Loc.Start.Col == 1
	case inRoutes:
		return slices.Contains(c.grammar.Methods, t.Text) || t.Text == "routes"
	case inScope:
		return strings.HasPrefix(t.Text, "@")
	case inFunctions, inJobs:
		return t.Text == "@expose" || next == "(" && c.text(i-1) != "@expose" && c.text(i-1) != "->"
	case inEntity:
		return next == ":" || strings.HasPrefix(t.Text, "@@")
	case inRule, inExists, inRoleNames, inScopeNames, inColumns:
		return false
	}
	return next == ":" || next == "" && t.Loc.Start.Line != c.lineBefore(i)
}

func (c *cursor) lineBefore(i int) int {
	if i == 0 {
		return 0
	}
	return c.tokens[i-1].Loc.End.Line
}

// opened returns what the bracket i in a block is.
func (c *cursor) opened(i int, in block, closed map[int]int) block {
	switch c.tokens[i].Text {
	case "{":
		return c.openedBody(i, in, closed)
	case "(":
		return c.openedParens(i, in)
	}
	switch in {
	case inEntity, inScope, inCookie, inRule, inExists:
		return inRule
	}
	return inOther
}

func (c *cursor) openedBody(i int, in block, closed map[int]int) block {
	switch in {
	case inAuth:
		if c.text(i-1) == "jwt" {
			return inJWT
		}
		return inCookie
	case inAPIKeys:
		return inScopes
	case inScopes:
		return inScope
	case inRoutes:
		return inRoutes
	case inFile:
	default:
		return inOther
	}
	words := map[string]block{
		"auth": inAuth, "outbound": inOutbound, "module": inModule, "python": inPython, "enum": inEnum, "type": inType,
		"entity": inEntity, "apiKeys": inAPIKeys, "functions": inFunctions, "jobs": inJobs, "routes": inRoutes,
	}
	for j := i - 1; j >= 0; j-- {
		if open, ok := closed[j]; ok {
			j = open
			continue
		}
		if b, ok := words[c.text(j)]; ok {
			return b
		}
		if c.text(j) == "}" {
			break
		}
	}
	return inOther
}

func (c *cursor) openedParens(i int, in block) block {
	before := c.text(i - 1)
	switch before {
	case "@@index", "@@unique":
		return inColumns
	case "@inverse":
		return inInverse
	case "@onDelete":
		return inOnDelete
	case "@index":
		return inIndex
	case "apiKey":
		return inScopeNames
	case "exists":
		return inExists
	}
	switch in {
	case inFile:
		switch before {
		case "jobs":
			return inJobSettings
		case "routes", "functions":
			return inSettings
		case "assets":
			return inAssetSettings
		}
	case inRoutes:
		if before == "assets" {
			return inAssetSettings
		}
		return inSettings
	case inFunctions, inJobs:
		if before != ")" && before != "]" && before != "?" && c.text(i-2) != "->" {
			return inParams
		}
		if in == inJobs {
			return inJobSettings
		}
		return inSettings
	case inSettings, inAssetSettings, inModes:
		switch before {
		case "session":
			return inRoleNames
		case "anyOf":
			return inModes
		case "webhook":
			return inWebhook
		}
	case inScope:
		switch before {
		case "fields":
			return inFields
		case "@system":
			return inOther
		}
		return inRule
	case inEntity:
		if slices.Contains([]string{"when", "and", "or", "not", "&&", "||", "!", "=="}, before) {
			return inRule
		}
	case inCookie, inRule, inExists:
		return inRule
	}
	return inOther
}

// top is the innermost bracket.
func (c *cursor) top() bracket { return c.brackets[len(c.brackets)-1] }

// item returns the texts of the tokens of the item that the cursor is in, without those in brackets that are
// closed.
func (c *cursor) item(b bracket) (words []string) {
	depth := 0
	for _, t := range c.tokens[min(max(b.item, 0), len(c.tokens)):] {
		switch t.Text {
		case "{", "(", "[":
			depth++
		case "}", ")", "]":
			depth--
		default:
			if depth == 0 {
				words = append(words, t.Text)
			}
		}
	}
	return words
}

// name returns the name that is declared before the innermost bracket of a block, such as that of an entity.
func (c *cursor) name(of block) string {
	for i := len(c.brackets) - 1; i >= 0; i-- {
		b := c.brackets[i]
		if b.block != of {
			continue
		}
		switch of {
		case inExists:
			return c.text(b.open + 1)
		case inParams:
			return c.text(b.open - 1)
		}
		words := map[block]string{inEntity: "entity", inType: "type", inEnum: "enum"}
		for j := b.open - 1; j >= 0; j-- {
			if c.text(j) == words[of] {
				return c.text(j + 1)
			}
		}
	}
	return ""
}

// row is the entity whose fields a rule at the cursor names, and outer the one around an exists.
func (c *cursor) row() (row, outer string) {
	row = c.name(inEntity)
	for _, b := range c.brackets {
		if b.block != inScope {
			continue
		}
		words := c.item(b)
		if i := slices.Index(words, "on"); i >= 0 && i+1 < len(words) {
			row = words[i+1]
		}
	}
	if e := c.name(inExists); e != "" {
		return e, row
	}
	return row, ""
}
