package languageserver

import (
	"slices"

	"go.lsp.dev/protocol"

	"runner.example/schema/compiler"
)

// chain returns the names that are joined by dots and end with the token n.
func (c *completer) chain(n int) (names []string) {
	for n >= 0 {
		names = append(names, c.text(n))
		if c.text(n-1) != "." {
			break
		}
		n -= 2
	}
	slices.Reverse(names)
	return names
}

// comparisons are the operators that have a value on their right.
var comparisons = []string{"==", "!=", "<", "<=", ">", ">=", "in", "startsWith", "contains"}

// rule completes an expression.
func (c *completer) rule() {
	end := len(c.tokens) - 1
	row, outer := c.row()
	switch before := c.text(end); {
	case before == ".":
		c.members(c.chain(end-1), row, outer)
	case slices.Contains(comparisons, before):
		c.operands(c.chain(c.operand(end)), row, outer)
	case before == "[" && c.text(end-1) == "in", c.comma && c.listOperand() >= 0:
		open := end
		if before != "[" {
			open = c.top().open
		}
		c.operands(c.chain(c.operand(open-1)), row, outer)
	case c.quoted:
	case before == "" || slices.Contains([]string{"when", "where", "and", "or", "not", "&&", "||", "!", "("}, before):
		c.terms(row, outer)
		c.words([]string{"not"}, nil)
	default:
		c.words([]string{"and", "or", "in", "not", "startsWith", "contains"}, nil)
	}
}

// operand returns the token before an operator, which may be `not in`.
func (c *completer) operand(operator int) int {
	if c.text(operator) == "in" && c.text(operator-1) == "not" {
		operator--
	}
	return operator - 1
}

// listOperand returns the operator `in` before the list that the cursor is in, -1 if there is none.
func (c *completer) listOperand() int {
	if open := c.top().open; c.text(open) == "[" && c.text(open-1) == "in" {
		return open - 1
	}
	return -1
}

// terms offers what an expression can begin with.
func (c *completer) terms(row, outer string) {
	if row != "" {
		c.declared(kindField, row)
		c.addText("exists", "exists(", protocol.CompletionItemKindKeyword, "whether another row exists: exists(Entity where rule)")
		c.addText("old", "old.", protocol.CompletionItemKindKeyword, "the row before an update")
		c.addText("new", "new.", protocol.CompletionItemKindKeyword, "the row after an update")
	}
	if outer != "" {
		c.addText("outer", "outer.", protocol.CompletionItemKindKeyword, "the row around exists")
	}
	for _, v := range compiler.AllWords().AuthValues {
		c.add("auth."+v, protocol.CompletionItemKindVariable, "of the caller")
	}
	c.words([]string{"now", "null", "true", "false"}, nil)
}

// members offers what may follow a dot.
func (c *completer) members(chain []string, row, outer string) {
	if len(chain) == 1 && chain[0] == "auth" {
		c.words(compiler.AllWords().AuthValues, nil)
		return
	}
	if entity, _ := c.leads(chain, row, outer); entity != "" {
		c.declared(kindField, entity)
	}
}

// leads returns the type at the end of names joined by dots, and whether they begin with auth.
func (c *completer) leads(chain []string, row, outer string) (typ string, auth bool) {
	if len(chain) == 0 {
		return "", false
	}
	switch chain[0] {
	case "auth":
		return "", true
	case "old", "new":
		chain = chain[1:]
	case "outer":
		chain, row = chain[1:], outer
	}
	for _, name := range chain {
		row = c.index.target(row, name)
	}
	return row, false
}

// operands offers what names can be compared with.
func (c *completer) operands(chain []string, row, outer string) {
	text := func(values ...string) {
		for _, v := range values {
			if c.quoted {
				c.add(v, protocol.CompletionItemKindEnumMember, "")
			} else {
				c.add(`"`+v+`"`, protocol.CompletionItemKindEnumMember, "")
			}
		}
	}
	typ, auth := c.leads(chain, row, outer)
	switch {
	case auth && len(chain) == 2:
		switch chain[1] {
		case "role", "roles":
			text(c.index.names(kindRole, "")...)
		case "kind":
			text("session", "apiKey", "anonymous")
		case "scope":
			text(c.index.names(kindScope, "")...)
		}
	case c.index.isEnum(typ):
		text(c.index.names(kindValue, typ)...)
	}
	if !c.quoted {
		c.terms(row, outer)
	}
}
