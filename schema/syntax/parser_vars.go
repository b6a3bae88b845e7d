package syntax

import (
	"slices"

	"runner.example/internal/diag"
)

// varParser reads the values of variables, and their names in place of literals.
type varParser struct {
	exprParser
}

// varDecl reads `NAME: type` and an optional `= value`.
func (p *parser) varDecl(keyword diag.Span, doc string) Decl {
	d := &VarDecl{Doc: doc, Keyword: keyword}
	var ok bool
	if d.Name, ok = p.declName("the variable's name"); !ok {
		p.file.Lost = true
		return nil
	}
	if ok = p.expect(":"); ok {
		if p.atDecl() {
			p.expected("a type")
		} else {
			d.Type, ok = p.ident("a type")
		}
	}
	if ok && p.accept("=") {
		p.varDefault(d)
	}
	d.Loc = p.from(keyword)
	return d
}

func (p *varParser) varDefault(d *VarDecl) {
	if p.tok.kind == tokNumber && p.peek(1)[0].is("/") {
		r := &Rate{}
		if p.rateCount(r) {
			r.Loc = p.from(r.Count.Loc)
			d.Rate = r
		}
		return
	}
	if p.atDecl() {
		p.expected("a value")
		return
	}
	d.Default, _ = p.literal("a value")
}

// stringOrVar reads a string, or the name of a variable in its place; what describes the
// string in an error.
func (p *varParser) stringOrVar(what string) (*Literal, bool) {
	if !p.atVar() {
		return p.literalOf(StringLit, what)
	}
	name, _ := p.ident(what)
	return p.varString(name), true
}

// atVar reports whether the current token can be the name of a variable in place of a
// literal: it is a name, and does not begin the next setting.
func (p *varParser) atVar() bool {
	return p.tok.kind == tokIdent && !p.isWord("true", "false") && !p.peek(1)[0].is(":")
}

// varString returns the string that the name of a variable stands for.
func (p *varParser) varString(name Ident) *Literal {
	lit := &Literal{Node: name.Node, Kind: StringLit, Raw: name.Name, Var: name.Name}
	p.file.VarUses = append(p.file.VarUses, VarUse{Name: name, String: lit})
	return lit
}

// varSettings are the settings of auth whose string may be a variable.
var varSettings = []string{"issuer", "audience", "jwks"}

// withVars replaces bare names in the value of a setting that may be variables.
func (p *varParser) withVars(setting string, v SettingValue) SettingValue {
	if list, ok := v.(*ListSetting); ok && setting == "origins" {
		for i, elem := range list.Elems {
			list.Elems[i] = p.varFor(elem)
		}
	} else if slices.Contains(varSettings, setting) {
		return p.varFor(v)
	}
	return v
}

// varFor returns the string that a bare name stands for, or v itself.
func (p *varParser) varFor(v SettingValue) SettingValue {
	if name, ok := v.(*NameSetting); ok && !name.Call {
		return p.varString(name.Name)
	}
	return v
}

// rateCount reads `600/minute`.
func (p *varParser) rateCount(r *Rate) (ok bool) {
	if r.Count, ok = p.literalOf(IntLit, "a rate such as 600/minute"); !ok || !p.expect("/") {
		return false
	}
	r.Unit, ok = p.ident("second, minute, hour or day")
	return ok
}
