package entity_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/cases"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
)

// The reference is a plain model of what the documentation promises about rows and callers,
// made of maps and loops. It shares no code with the package that it is compared with, has
// no indexes, and copies the whole database where that is simplest.

// refApp is an app. It is printed as a schema for the engine, and used directly by the
// reference.
type refApp struct {
	enums    map[string][]string
	entities []*refEntity
	scopes   []*refScope
}

type refEntity struct {
	name     string
	fields   []*refField
	uniques  []refUnique
	indexes  []string // as written after @@index
	policies []*refPolicy
	named    bool // auth.user or auth.tenant: an insert may give the id
}

type refUnique struct {
	fields []string
	attr   bool // written as @unique of its one field
	global bool
}

type refField struct {
	name, kind, typ string // kind "relation", typ "Order"; kind "string", typ "string(0..6)"
	list, optional  bool
	hidden          bool
	readonly        bool
	created         bool
	updated         bool
	tenant          bool
	index           bool
	folded          bool    // of the index: @index(ignoreCase)
	lo, hi          float64 // of the value, or of the length of a text; without bounds if equal
	def             any     // canonical; nil without
	defText         string
	target          string
	onDelete        string
	inverse         string // of a to-many field
}

type refPolicy struct {
	deny    bool
	actions []string
	to      []string // "session", "apiKey", "apiKey(k1)", "anonymous"; none: all
	when    *refExpr
}

type refScope struct {
	name       string
	allTenants bool
	grants     []*refGrant
}

type refGrant struct {
	actions []string
	entity  string
	fields  []string
	where   *refExpr
}

// refExpr is an expression of a rule.
type refExpr struct {
	op     string // and or not == != < <= > >= in "not in" startsWith contains; name lit null now list exists
	args   []*refExpr
	path   string // of a name: "auth.userId", "old.a", "b.c"
	value  any    // of a literal: bool, string, *big.Rat
	text   string // the literal as written
	entity string // of exists
}

// ---- the app as a schema ----

func (a *refApp) schema() string {
	var b strings.Builder
	b.WriteString("auth {\n  session cookie { idle: 30m, absolute: 12h }\n  roles: [admin, member, guest]\n  user: User\n  tenant: Org\n}\n")
	for _, name := range slices.Sorted(maps.Keys(a.enums)) {
		fmt.Fprintf(&b, "enum %s { %s }\n", name, strings.Join(a.enums[name], ", "))
	}
	for _, e := range a.entities {
		fmt.Fprintf(&b, "entity %s {\n", e.name)
		for _, f := range e.fields {
			fmt.Fprintf(&b, "  %s\n", f.declaration(e))
		}
		for _, u := range e.uniques {
			if u.attr {
				continue
			}
			fmt.Fprintf(&b, "  @@unique(%s)", strings.Join(u.fields, ", "))
			if u.global {
				b.WriteString(" global")
			}
			b.WriteString("\n")
		}
		for _, columns := range e.indexes {
			fmt.Fprintf(&b, "  @@index(%s)\n", columns)
		}
		for _, p := range e.policies {
			fmt.Fprintf(&b, "  %s\n", p.declaration())
		}
		b.WriteString("}\n")
	}
	if len(a.scopes) > 0 {
		b.WriteString("apiKeys {\n  scopes: {\n")
		for i, s := range a.scopes {
			if i > 0 {
				b.WriteString(",\n")
			}
			fmt.Fprintf(&b, "    %s: @system(\"test.%s\") {\n", s.name, s.name)
			for _, g := range s.grants {
				fmt.Fprintf(&b, "      %s\n", g.declaration())
			}
			if s.allTenants {
				b.WriteString("      @allTenants\n")
			}
			b.WriteString("    }")
		}
		b.WriteString("\n  }\n}\n")
	}
	return b.String()
}

func (f *refField) declaration(e *refEntity) string {
	s := f.name + ": " + f.typ
	if f.list {
		s += "[]"
	}
	if f.optional {
		s += "?"
	}
	if f.defText != "" {
		s += " = " + f.defText
	}
	for _, attr := range []struct {
		name string
		on   bool
	}{{"hidden", f.hidden}, {"readonly", f.readonly}, {"created", f.created}, {"updated", f.updated}, {"tenant", f.tenant}, {"index", f.index && !f.folded}, {"index(ignoreCase)", f.index && f.folded}} {
		if attr.on {
			s += " @" + attr.name
		}
	}
	for _, u := range e.uniques {
		if u.attr && u.fields[0] == f.name {
			s += " @unique"
		}
	}
	if f.lo != f.hi && f.kind != "string" {
		s += fmt.Sprintf(" @min(%v) @max(%v)", f.lo, f.hi)
	}
	if f.onDelete != "" {
		s += " @onDelete(" + f.onDelete + ")"
	}
	if f.inverse != "" {
		s += " @inverse(" + f.inverse + ")"
	}
	return s
}

func (p *refPolicy) declaration() string {
	s := "@@allow "
	if p.deny {
		s = "@@deny "
	}
	s += strings.Join(p.actions, ", ")
	if len(p.to) > 0 {
		s += " to " + strings.Join(p.to, ", ")
	}
	if p.when != nil {
		s += " when " + p.when.String()
	}
	return s
}

func (g *refGrant) declaration() string {
	s := "@grant " + strings.Join(g.actions, ", ") + " on " + g.entity
	if g.fields != nil {
		s += " fields (" + strings.Join(g.fields, ", ") + ")"
	}
	if g.where != nil {
		s += " where " + g.where.String()
	}
	return s
}

func (x *refExpr) String() string {
	switch x.op {
	case "name":
		return x.path
	case "lit":
		return x.text
	case "null", "now":
		return x.op
	case "list":
		var elems []string
		for _, a := range x.args {
			elems = append(elems, a.String())
		}
		return "[" + strings.Join(elems, ", ") + "]"
	case "exists":
		return "exists(" + x.entity + " where " + x.args[0].String() + ")"
	case "not":
		return "not (" + x.args[0].String() + ")"
	case "and", "or":
		return "(" + x.args[0].String() + ") " + x.op + " (" + x.args[1].String() + ")"
	}
	return x.args[0].String() + " " + x.op + " " + x.args[1].String()
}

func (a *refApp) entity(name string) *refEntity {
	for _, e := range a.entities {
		if e.name == name {
			return e
		}
	}
	return nil
}

func (a *refApp) scope(name string) *refScope {
	for _, s := range a.scopes {
		if s.name == name {
			return s
		}
	}
	return nil
}

func (e *refEntity) field(name string) *refField {
	for _, f := range e.fields {
		if f.name == name {
			return f
		}
	}
	return nil
}

func (e *refEntity) tenantField() *refField {
	for _, f := range e.fields {
		if f.tenant {
			return f
		}
	}
	return nil
}

// stored returns the fields that a row stores: all except to-many ones.
func (e *refEntity) stored() []*refField {
	var fields []*refField
	for _, f := range e.fields {
		if f.inverse == "" {
			fields = append(fields, f)
		}
	}
	return fields
}

// ---- values ----

// A refRow has values as encoding/json decodes the engine's results: nil, bool, float64,
// string, []any, map[string]any.
type refRow = map[string]any

type refDB map[string]map[string]refRow // entity, id

func (db refDB) clone() refDB {
	all := refDB{}
	for name, rows := range db {
		all[name] = map[string]refRow{}
		for id, row := range rows {
			all[name][id] = maps.Clone(row) // values are never changed in place
		}
	}
	return all
}

func (db refDB) put(e *refEntity, row refRow) {
	if db[e.name] == nil {
		db[e.name] = map[string]refRow{}
	}
	db[e.name][row["id"].(string)] = row
}

// canonical returns the canonical form of a value of the field; false if the value is not
// valid. If bounded, the field's limits apply too. v is decoded with json.Number.
func (a *refApp) canonical(f *refField, v any, bounded bool) (any, bool) {
	if v == nil {
		return nil, f.optional || !bounded
	}
	if f.list {
		elems, ok := v.([]any)
		if !ok {
			return nil, false
		}
		out := []any{}
		one := *f
		one.list, one.optional = false, false
		for _, v := range elems {
			c, ok := a.canonical(&one, v, bounded)
			if !ok {
				return nil, false
			}
			out = append(out, c)
		}
		return out, true
	}
	text, isText := v.(string)
	number, isNumber := v.(json.Number)
	in := func(n float64) bool { return !bounded || f.lo == f.hi || f.lo <= n && n <= f.hi }
	switch f.kind {
	case "string", "text":
		return text, isText && in(float64(utf8.RuneCountInString(text)))
	case "uuid", "bytes":
		return text, isText
	case "id", "relation":
		return text, isText && text != ""
	case "enum":
		return text, isText && slices.Contains(a.enums[f.typ], text)
	case "bool":
		b, ok := v.(bool)
		return b, ok
	case "int", "duration":
		n, err := strconv.ParseInt(string(number), 10, 64)
		return float64(n), isNumber && err == nil && in(float64(n))
	case "float":
		n, err := number.Float64()
		if n == 0 {
			n = 0 // -0 is 0
		}
		return n, isNumber && err == nil && in(n)
	case "decimal":
		if isNumber {
			text = string(number)
		}
		r, ok := new(big.Rat).SetString(text)
		if !ok || !isNumber && !isText {
			return nil, false
		}
		n, _ := r.Float64()
		return r.FloatString(2), in(n)
	case "time":
		t, err := time.Parse(time.RFC3339Nano, text)
		return t.UTC().Format(refTime), isText && err == nil
	case "date":
		_, err := time.Parse(time.DateOnly, text)
		return text, isText && err == nil
	case "json":
		var out any
		encoded, _ := json.Marshal(v)
		return out, json.Unmarshal(encoded, &out) == nil
	}
	panic("no kind " + f.kind)
}

const refTime = "2006-01-02T15:04:05.000Z"

// refOrder orders two values of one kind, null before all others.
func refOrder(kind string, a, b any) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	switch a := a.(type) {
	case float64:
		return cmp.Compare(a, b.(float64))
	case bool:
		if a == b.(bool) {
			return 0
		} else if a {
			return 1
		}
		return -1
	case string:
		if kind == "decimal" {
			x, _ := new(big.Rat).SetString(a)
			y, _ := new(big.Rat).SetString(b.(string))
			return x.Cmp(y)
		}
		return strings.Compare(a, b.(string))
	}
	panic(fmt.Sprintf("%T has no order", a))
}

// ---- rules ----

// refTruth is three-valued: "and" is the least, "or" the greatest of two.
type refTruth int

const (
	refFalse refTruth = iota
	refUnknown
	refTrue
)

func refBool(b bool) refTruth {
	if b {
		return refTrue
	}
	return refFalse
}

type (
	refAbsent struct{}
	refRoles  []string
)

// refRun is one caller in one transaction.
type refRun struct {
	app *refApp
	db  refDB
	who *caller.Caller
	now time.Time
	// mine has the ids of rows inserted in this transaction.
	mine map[string]bool
}

// refScene is the input of a rule: rows, nil if they do not exist.
type refScene struct {
	entity        *refEntity
	row, old, new refRow
	outerEntity   *refEntity
	outer         refRow
	// newUnknown: the new row of an update is not known yet.
	newUnknown bool
}

func (r *refRun) truth(x *refExpr, s refScene) refTruth {
	switch x.op {
	case "and":
		return min(r.truth(x.args[0], s), r.truth(x.args[1], s))
	case "or":
		return max(r.truth(x.args[0], s), r.truth(x.args[1], s))
	case "not":
		return refTrue - r.truth(x.args[0], s)
	case "exists":
		return r.exists(x, s)
	case "name", "lit", "null":
		if b, ok := r.value(x, s).(bool); ok {
			return refBool(b)
		}
		return refUnknown
	}
	a, b := r.value(x.args[0], s), r.value(x.args[1], s)
	_, absentA := a.(refAbsent)
	_, absentB := b.(refAbsent)
	if absentA || absentB {
		return refUnknown
	}
	switch x.op {
	case "==":
		return refEqual(a, b)
	case "!=":
		return refTrue - refEqual(a, b)
	case "in":
		return refAmong(a, b)
	case "not in":
		return refTrue - refAmong(a, b)
	case "contains":
		if s, ok := a.(string); ok {
			part, ok := b.(string)
			return refBool(ok && strings.Contains(s, part))
		}
		if a == nil {
			return refFalse
		}
		return refAmong(b, a)
	case "startsWith":
		s, ok1 := a.(string)
		part, ok2 := b.(string)
		return refBool(ok1 && ok2 && strings.HasPrefix(s, part))
	}
	if a == nil || b == nil {
		return refFalse
	}
	order := 0
	switch a := a.(type) {
	case *big.Rat:
		order = a.Cmp(b.(*big.Rat))
	case string:
		order = strings.Compare(a, b.(string))
	default:
		return refUnknown
	}
	return refBool(map[string]bool{"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[x.op])
}

func refEqual(a, b any) refTruth {
	if roles, ok := a.(refRoles); ok {
		return refBool(slices.ContainsFunc(roles, func(r string) bool { return b == any(r) }))
	}
	if _, ok := b.(refRoles); ok {
		return refEqual(b, a)
	}
	if a == nil || b == nil {
		return refBool(a == nil && b == nil)
	}
	if x, ok := a.(*big.Rat); ok {
		y, ok := b.(*big.Rat)
		return refBool(ok && x.Cmp(y) == 0)
	}
	return refBool(a == b)
}

func refAmong(v, list any) refTruth {
	found := refFalse
	elems, ok := list.([]any)
	if !ok {
		return refFalse
	}
	for _, elem := range elems {
		if _, absent := elem.(refAbsent); absent {
			found = max(found, refUnknown)
		} else {
			found = max(found, refEqual(v, elem))
		}
	}
	return found
}

// exists is true if the inner rule is true for a row of the caller's tenant.
func (r *refRun) exists(x *refExpr, s refScene) refTruth {
	inner := r.app.entity(x.entity)
	for _, row := range r.db[x.entity] {
		if !r.inTenant(inner, row) {
			continue
		}
		scene := refScene{entity: inner, row: row, old: s.old, new: s.new, outerEntity: s.entity, outer: s.row, newUnknown: s.newUnknown}
		if r.truth(x.args[0], scene) == refTrue {
			return refTrue
		}
	}
	if s.newUnknown && x.readsNew() {
		return refUnknown
	}
	return refFalse
}

// readsNew reports whether the expression reads the new row of an update.
func (x *refExpr) readsNew() bool {
	return x.op == "name" && strings.HasPrefix(x.path, "new.") || slices.ContainsFunc(x.args, (*refExpr).readsNew)
}

func (r *refRun) value(x *refExpr, s refScene) any {
	switch x.op {
	case "lit":
		return x.value
	case "null":
		return nil
	case "now":
		return r.now.UTC().Format(refTime)
	case "list":
		elems := []any{}
		for _, a := range x.args {
			elems = append(elems, r.value(a, s))
		}
		return elems
	case "name":
		head, rest, dotted := strings.Cut(x.path, ".")
		entity := s.entity
		if s.outerEntity != nil {
			entity = s.outerEntity // old and new are those of the outer rule
		}
		switch {
		case head == "auth":
			return r.auth(rest)
		case head == "old" && dotted:
			return r.path(entity, s.old, rest)
		case head == "new" && dotted:
			return r.path(entity, s.new, rest)
		case head == "outer" && dotted:
			return r.path(s.outerEntity, s.outer, rest)
		}
		return r.path(s.entity, s.row, x.path)
	}
	switch r.truth(x, s) {
	case refTrue:
		return true
	case refFalse:
		return false
	}
	return refAbsent{}
}

// path returns a field of the row, or of the row that its relation refers to.
func (r *refRun) path(e *refEntity, row refRow, path string) any {
	if row == nil {
		return refAbsent{}
	}
	head, rest, hop := strings.Cut(path, ".")
	f := e.field(head)
	if !hop {
		return refRuleValue(f, row[head])
	}
	id, _ := row[head].(string)
	target := r.app.entity(f.target)
	there := r.db[f.target][id]
	if there == nil || !r.inTenant(target, there) {
		return nil
	}
	return refRuleValue(target.field(rest), there[rest])
}

// inTenant reports whether the row belongs to the caller's tenant, or to no tenant.
func (r *refRun) inTenant(e *refEntity, row refRow) bool {
	f := e.tenantField()
	return f == nil || r.everyTenant() || r.who.Tenant != "" && row[f.name] == r.who.Tenant
}

// refRuleValue converts numbers, so that they compare by value.
func refRuleValue(f *refField, v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		one := *f
		one.list = false
		out := []any{}
		for _, elem := range v {
			out = append(out, refRuleValue(&one, elem))
		}
		return out
	case float64:
		return new(big.Rat).SetFloat64(v)
	case string:
		if f.kind == "decimal" {
			n, _ := new(big.Rat).SetString(v)
			return n
		}
	}
	return v
}

func (r *refRun) auth(name string) any {
	text := func(s string) any {
		if s == "" {
			return refAbsent{}
		}
		return s
	}
	switch name {
	case "kind":
		return r.who.Kind.String()
	case "userId":
		return text(r.who.UserID)
	case "tenant":
		return text(r.who.Tenant)
	case "role":
		return refRoles(r.who.Roles)
	case "roles":
		elems := []any{}
		for _, role := range r.who.Roles {
			elems = append(elems, role)
		}
		return elems
	case "keyId":
		return text(r.who.KeyID)
	case "scope":
		return text(r.who.Scope)
	case "capability":
		return text(r.who.Capability)
	}
	return refAbsent{}
}

// ---- authority ----

// byGrant returns the scope whose grants decide, nil if policies decide.
func (r *refRun) byGrant() *refScope {
	switch {
	case r.who.Kind == caller.APIKey:
		return r.app.scope(r.who.Scope)
	case r.who.Kind == caller.Anonymous && r.who.As != "":
		return r.app.scope(r.who.As)
	}
	return nil
}

func (r *refRun) everyTenant() bool {
	s := r.byGrant()
	return r.who.Kind == caller.System || s != nil && s.allTenants
}

func refCovers(actions []string, action string) bool {
	for _, a := range actions {
		if a == action || a == "all" || a == "write" && (action == "insert" || action == "update") {
			return true
		}
	}
	return false
}

func (r *refRun) grant(e *refEntity, action string) *refGrant {
	for _, g := range r.byGrant().grants {
		if g.entity == e.name && refCovers(g.actions, action) {
			return g
		}
	}
	return nil
}

func (r *refRun) applies(p *refPolicy, action string) bool {
	if !refCovers(p.actions, action) {
		return false
	}
	if len(p.to) == 0 {
		return true
	}
	kind := r.who.Kind.String() // under a scope too, an anonymous caller is anonymous
	return slices.Contains(p.to, kind) || slices.Contains(p.to, kind+"("+r.who.Scope+")")
}

// offered reports whether any grant or policy permits the action.
func (r *refRun) offered(e *refEntity, action string) bool {
	switch {
	case r.who.Kind == caller.System:
		return true
	case e.tenantField() != nil && r.who.Tenant == "" && !r.everyTenant():
		return false
	case r.byGrant() != nil:
		return r.grant(e, action) != nil
	}
	for _, p := range e.policies {
		if !p.deny && r.applies(p, action) {
			return true
		}
	}
	return false
}

// passes reports whether the caller may apply the action to the row.
func (r *refRun) passes(e *refEntity, action string, row, old, new refRow) bool {
	if r.who.Kind == caller.System {
		return true
	}
	if !r.inTenant(e, row) {
		return false
	}
	return r.permits(e, action, refScene{entity: e, row: row, old: old, new: new})
}

// permits reports whether the rules permit the action. While the new row is not known, a rule that reads it
// counts for the row unless it is known to count against it.
func (r *refRun) permits(e *refEntity, action string, s refScene) bool {
	open := func(when *refExpr) bool { return s.newUnknown && when.readsNew() && r.truth(when, s) == refUnknown }
	for _, p := range e.policies {
		if p.deny && r.applies(p, action) && (p.when == nil || r.truth(p.when, s) != refFalse && !open(p.when)) {
			return false
		}
	}
	if r.byGrant() != nil {
		g := r.grant(e, action)
		return g != nil && (g.where == nil || r.truth(g.where, s) == refTrue || open(g.where))
	}
	for _, p := range e.policies {
		if !p.deny && r.applies(p, action) && (p.when == nil || r.truth(p.when, s) == refTrue || open(p.when)) {
			return true
		}
	}
	return false
}

// findsToUpdate reports whether an update may find the row: with the new row unknown, or with the new row for a
// caller without any right to read.
func (r *refRun) findsToUpdate(e *refEntity, old, row refRow) bool {
	if r.who.Kind == caller.System {
		return true
	}
	if !r.offered(e, "read") {
		return r.passes(e, "update", old, old, row)
	}
	return r.inTenant(e, old) && r.permits(e, "update", refScene{entity: e, row: old, old: old, newUnknown: true})
}

func (r *refRun) reads(e *refEntity, row refRow) bool {
	return r.offered(e, "read") && r.passes(e, "read", row, nil, nil)
}

// fields returns the fields that the caller may read, or write with the action.
func (r *refRun) fields(e *refEntity, action string) []*refField {
	var fields []*refField
	for _, f := range e.stored() {
		ok := !f.hidden
		switch {
		case r.who.Kind == caller.System:
			ok = true
		case r.byGrant() != nil:
			g := r.grant(e, action)
			ok = g != nil && (g.fields == nil && !f.hidden || slices.Contains(g.fields, f.name))
		}
		if action != "read" {
			ok = ok && (!f.readonly || r.who.Kind == caller.System) && !f.created && !f.updated && !f.tenant && f.kind != "id"
		}
		if action == "insert" && (f.kind == "id" && e.named || f.tenant && r.everyTenant()) {
			ok = true
		}
		if ok {
			fields = append(fields, f)
		}
	}
	return fields
}

func refHas(fields []*refField, name string) *refField {
	for _, f := range fields {
		if f.name == name {
			return f
		}
	}
	return nil
}

// ---- operations ----

// refAnswer is the expected outcome of an operation: a result, or one of several faults.
type refAnswer struct {
	result map[string]any
	faults []fault.Code
}

func refFails(codes ...fault.Code) refAnswer { return refAnswer{faults: codes} }

// do runs one operation. ids are those that the host created for an insert. All pages of a
// query are returned at once.
func (r *refRun) do(op string, args map[string]any, ids []string) refAnswer {
	name, _ := args[map[string]string{"insert": "into", "update": "in"}[op]].(string)
	if name == "" {
		name, _ = args["from"].(string)
	}
	e := r.app.entity(name)
	if e == nil {
		return refFails(fault.Invalid)
	}
	action := map[string]string{"query": "read", "get": "read", "count": "read", "aggregate": "read"}[op]
	if !r.offered(e, cmp.Or(action, op)) {
		// Errors in the other arguments may be reported first.
		return refFails(fault.Denied, fault.Invalid)
	}
	switch op {
	case "query":
		return r.query(e, args)
	case "get":
		return r.get(e, args)
	case "aggregate":
		return r.aggregate(e, args)
	case "count":
		rows, ok := r.visible(e, args)
		if !ok {
			return refFails(fault.Invalid)
		}
		return refAnswer{result: map[string]any{"count": float64(len(rows))}}
	case "insert":
		return r.insert(e, args, ids)
	case "update":
		return r.update(e, args)
	case "delete":
		return r.delete(e, args)
	}
	panic("no operation " + op)
}

func (r *refRun) ordered(e *refEntity) []refRow {
	var rows []refRow
	for _, id := range slices.Sorted(maps.Keys(r.db[e.name])) {
		rows = append(rows, r.db[e.name][id])
	}
	return rows
}

func (r *refRun) visible(e *refEntity, args map[string]any) ([]refRow, bool) {
	match, ok := r.where(e, args["where"], r.fields(e, "read"))
	if !ok {
		return nil, false
	}
	var rows []refRow
	for _, row := range r.ordered(e) {
		if r.reads(e, row) && match(row) {
			rows = append(rows, row)
		}
	}
	return rows, true
}

// selected returns the fields that a query returns, without those of includes.
func (r *refRun) selected(e *refEntity, args map[string]any) ([]*refField, bool) {
	readable := r.fields(e, "read")
	fields := slices.Clone(readable)
	if names, given := args["select"].([]any); given {
		fields = nil
		for _, name := range names {
			f := refHas(readable, name.(string))
			if f == nil {
				return nil, false
			}
			fields = append(fields, f)
		}
	}
	include, _ := args["include"].(map[string]any)
	return slices.DeleteFunc(fields, func(f *refField) bool { return include[f.name] != nil }), true
}

// relations returns the fields with which the caller may include rows.
func (r *refRun) relations(e *refEntity) []*refField {
	fields := r.fields(e, "read")
	for _, f := range e.fields {
		ok := f.inverse != ""
		if r.who.Kind != caller.System && r.byGrant() != nil {
			g := r.grant(e, "read")
			ok = ok && g != nil && g.fields == nil // grants of the generator name stored fields alone
		}
		if ok {
			fields = append(fields, f)
		}
	}
	return fields
}

// refusesIncludes returns the faults of a query's includes, nil for none.
func (r *refRun) refusesIncludes(e *refEntity, args map[string]any) []fault.Code {
	include, _ := args["include"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(include)) {
		f := refHas(r.relations(e), name)
		if f == nil {
			return []fault.Code{fault.Invalid, fault.Denied} // that of another include may come first
		}
		target := r.app.entity(f.targetName())
		if !r.offered(target, "read") {
			return []fault.Code{fault.Invalid, fault.Denied}
		}
		inner := include[name].(map[string]any)
		_, ok := r.selected(target, inner)
		if f.inverse != "" {
			_, sorts := r.sorting(target, inner)
			_, filters := r.where(target, inner["where"], r.fields(target, "read"))
			ok = ok && sorts && filters && refHas(r.fields(target, "read"), f.inverse) != nil
		}
		if codes := r.refusesIncludes(target, inner); codes != nil || !ok {
			return []fault.Code{fault.Invalid, fault.Denied}
		}
	}
	return nil
}

// targetName is the entity of a relation, in either direction.
func (f *refField) targetName() string {
	if f.inverse != "" {
		return f.typ
	}
	return f.target
}

// projected returns a row as a query returns it. The arguments are valid.
func (r *refRun) projected(e *refEntity, row refRow, args map[string]any) map[string]any {
	fields, _ := r.selected(e, args)
	out := refProject(row, fields)
	include, _ := args["include"].(map[string]any)
	for name, options := range include {
		f := refHas(r.relations(e), name)
		target, inner := r.app.entity(f.targetName()), options.(map[string]any)
		if f.inverse == "" {
			out[name] = nil
			id, _ := row[name].(string)
			if there := r.db[target.name][id]; there != nil && r.reads(target, there) {
				out[name] = r.projected(target, there, inner)
			}
			continue
		}
		all, _ := r.visible(target, inner)
		all = slices.DeleteFunc(all, func(there refRow) bool { return there[f.inverse] != row["id"] })
		r.sort(target, all, inner)
		if limit, ok := inner["limit"].(json.Number); ok {
			n, _ := limit.Int64()
			all = all[:min(len(all), int(n))]
		}
		rows := []any{}
		for _, there := range all {
			rows = append(rows, r.projected(target, there, inner))
		}
		out[name] = rows
	}
	return out
}

func refProject(row refRow, fields []*refField) map[string]any {
	out := map[string]any{}
	for _, f := range fields {
		out[f.name] = row[f.name]
	}
	return out
}

func (r *refRun) query(e *refEntity, args map[string]any) refAnswer {
	rows, ok1 := r.visible(e, args)
	_, ok2 := r.selected(e, args)
	_, ok3 := r.sorting(e, args)
	if !ok1 || !ok2 || !ok3 {
		return refFails(fault.Invalid)
	}
	if codes := r.refusesIncludes(e, args); codes != nil {
		return refFails(codes...)
	}
	r.sort(e, rows, args)
	out := []any{}
	for _, row := range rows {
		out = append(out, r.projected(e, row, args))
	}
	return refAnswer{result: map[string]any{"rows": out}}
}

// sorting returns the fields that a query is ordered by; false if the caller may not read one.
func (r *refRun) sorting(e *refEntity, args map[string]any) ([]*refField, bool) {
	order, _ := args["orderBy"].([]any)
	var by []*refField
	for _, term := range order {
		f := refHas(r.fields(e, "read"), term.([]any)[0].(string))
		if f == nil {
			return nil, false
		}
		by = append(by, f)
	}
	return by, true
}

// sort sorts rows, which are in the order of ids.
func (r *refRun) sort(e *refEntity, rows []refRow, args map[string]any) {
	order, _ := args["orderBy"].([]any)
	by, _ := r.sorting(e, args)
	if n := len(order); n > 0 && order[n-1].([]any)[1] == "desc" {
		slices.Reverse(rows) // ids decide between equals, in the direction of the last term
	}
	slices.SortStableFunc(rows, func(a, b refRow) int {
		for i, f := range by {
			c := refOrder(f.kind, a[f.name], b[f.name])
			if order[i].([]any)[1] == "desc" {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
}

func (r *refRun) get(e *refEntity, args map[string]any) refAnswer {
	if _, ok := r.selected(e, args); !ok {
		return refFails(fault.Invalid)
	}
	if codes := r.refusesIncludes(e, args); codes != nil {
		return refFails(codes...)
	}
	row := r.db[e.name][args["id"].(string)]
	if row == nil || !r.reads(e, row) {
		return refFails(fault.NotFound)
	}
	return refAnswer{result: map[string]any{"row": r.projected(e, row, args)}}
}

// aggregate computes functions of groups of rows.
func (r *refRun) aggregate(e *refEntity, args map[string]any) refAnswer {
	rows, ok := r.visible(e, args)
	if !ok {
		return refFails(fault.Invalid)
	}
	fields := map[string][]*refField{}
	for _, member := range []string{"groupBy", "sum", "avg", "min", "max"} {
		names, _ := args[member].([]any)
		for _, name := range names {
			f := refHas(r.fields(e, "read"), name.(string))
			if f == nil {
				return refFails(fault.Invalid)
			}
			fields[member] = append(fields[member], f)
		}
	}
	by := fields["groupBy"]
	var groups [][]refRow
	if len(by) == 0 {
		groups = [][]refRow{rows}
	}
	for _, row := range rows {
		if len(by) == 0 {
			break
		}
		at := slices.IndexFunc(groups, func(group []refRow) bool {
			return refSame(refProject(row, by), refProject(group[0], by))
		})
		if at < 0 {
			groups = append(groups, nil)
			at = len(groups) - 1
		}
		groups[at] = append(groups[at], row)
	}
	slices.SortStableFunc(groups, func(a, b []refRow) int {
		for _, f := range by {
			if c := refOrder(f.kind, a[0][f.name], b[0][f.name]); c != 0 {
				return c
			}
		}
		return 0
	})
	out := []any{}
	for _, group := range groups {
		answer := map[string]any{}
		if len(by) > 0 {
			answer["group"] = refProject(group[0], by)
		}
		if args["count"] == true {
			answer["count"] = float64(len(group))
		}
		for _, function := range []string{"sum", "avg", "min", "max"} {
			if fields[function] == nil {
				continue
			}
			values := map[string]any{}
			for _, f := range fields[function] {
				v, ok := refCompute(function, f, group)
				if !ok {
					return refFails(fault.Limit)
				}
				values[f.name] = v
			}
			answer[function] = values
		}
		out = append(out, answer)
	}
	return refAnswer{result: map[string]any{"rows": out}}
}

// refCompute computes a function of the values that are not null; false if the result has no
// form.
func refCompute(function string, f *refField, rows []refRow) (any, bool) {
	var values []any
	sum := new(big.Rat)
	for _, row := range rows {
		v := row[f.name]
		if v == nil {
			continue
		}
		values = append(values, v)
		if n, ok := refRuleValue(f, v).(*big.Rat); ok {
			sum.Add(sum, n)
		}
	}
	if len(values) == 0 {
		return nil, true
	}
	least := func(a, b any) int { return refOrder(f.kind, a, b) }
	switch {
	case function == "min":
		return slices.MinFunc(values, least), true
	case function == "max":
		return slices.MaxFunc(values, least), true
	case function == "sum" && f.kind == "decimal":
		return sum.FloatString(2), true
	case function == "sum":
		n, _ := sum.Float64()
		return n, !math.IsInf(n, 0)
	}
	avg := sum.Quo(sum, new(big.Rat).SetInt64(int64(len(values))))
	if f.kind != "decimal" {
		n, _ := avg.Float64()
		return n, true
	}
	// FloatString rounds half away from zero: here half to even.
	text := avg.FloatString(8)
	rounded, _ := new(big.Rat).SetString(text)
	half := new(big.Rat).Sub(rounded, avg)
	if half.Abs(half); half.Cmp(big.NewRat(1, 200_000_000)) == 0 && (text[len(text)-1]-'0')%2 == 1 {
		toZero := big.NewRat(-1, 100_000_000)
		if avg.Sign() < 0 {
			toZero.Neg(toZero)
		}
		text = rounded.Add(rounded, toZero).FloatString(8)
	}
	return text, true
}

// where returns the predicate of a list of conditions over some fields.
func (r *refRun) where(e *refEntity, conditions any, fields []*refField) (func(refRow) bool, bool) {
	list, _ := conditions.([]any)
	var all []func(refRow) bool
	for _, c := range list {
		match, ok := r.condition(e, c.([]any), fields)
		if !ok {
			return nil, false
		}
		all = append(all, match)
	}
	return func(row refRow) bool {
		for _, match := range all {
			if !match(row) {
				return false
			}
		}
		return true
	}, true
}

func (r *refRun) condition(e *refEntity, c []any, fields []*refField) (func(refRow) bool, bool) {
	switch c[0] {
	case "or":
		var some []func(refRow) bool
		for _, part := range c[1:] {
			match, ok := r.condition(e, part.([]any), fields)
			if !ok {
				return nil, false
			}
			some = append(some, match)
		}
		return func(row refRow) bool {
			return slices.ContainsFunc(some, func(match func(refRow) bool) bool { return match(row) })
		}, true
	case "not":
		match, ok := r.condition(e, c[1].([]any), fields)
		return func(row refRow) bool { return !match(row) }, ok
	}
	if _, nested := c[0].([]any); nested {
		return r.where(e, any(c), fields)
	}
	f := refHas(fields, c[0].(string))
	if f == nil {
		return nil, false
	}
	one := *f
	if c[1] == "contains" {
		one.list = false
	}
	folds := len(c) == 4
	fold := func(v any) any {
		text, ok := v.(string)
		if !folds || !ok {
			return v
		}
		return cases.Fold().String(text)
	}
	var want []any
	switch operand := c[2].(type) {
	case []any:
		if c[1] == "in" {
			for _, v := range operand {
				canon, ok := r.app.canonical(&one, v, false)
				if !ok {
					return nil, false
				}
				want = append(want, canon)
			}
			break
		}
		return nil, false
	default:
		canon, ok := r.app.canonical(&one, operand, false)
		if !ok || operand == nil && c[1] != "=" && c[1] != "!=" {
			return nil, false
		}
		want = []any{fold(canon)}
	}
	return func(row refRow) bool {
		v := fold(row[f.name])
		switch c[1] {
		case "=":
			return refSame(v, want[0])
		case "!=":
			return !refSame(v, want[0])
		case "in":
			return slices.ContainsFunc(want, func(w any) bool { return refSame(v, w) })
		}
		if v == nil {
			return false
		}
		switch c[1] {
		case "startsWith":
			return strings.HasPrefix(v.(string), want[0].(string))
		case "contains":
			if list, ok := v.([]any); ok {
				return slices.ContainsFunc(list, func(elem any) bool { return refSame(fold(elem), want[0]) })
			}
			return strings.Contains(v.(string), want[0].(string))
		}
		order := refOrder(f.kind, v, want[0])
		return map[any]bool{"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[c[1]]
	}, true
}

func refSame(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// set sets the given values in the row; false if one is not allowed.
func (r *refRun) set(e *refEntity, row refRow, values map[string]any, action string) bool {
	writable := r.fields(e, action)
	for name, v := range values {
		f := refHas(writable, name)
		if f == nil {
			return false
		}
		canon, ok := r.app.canonical(f, v, true)
		if !ok {
			return false
		}
		row[name] = canon
	}
	return true
}

func (r *refRun) insert(e *refEntity, args map[string]any, ids []string) refAnswer {
	list, many := args["values"].([]any)
	if !many {
		list = []any{args["values"]}
	}
	before := r.db
	r.db = before.clone()
	fail := func(codes ...fault.Code) refAnswer {
		r.db = before
		return refFails(codes...)
	}
	var rows []refRow
	var given []map[string]any
	next := 0
	for i, v := range list {
		values := v.(map[string]any)
		row := refRow{}
		for _, f := range e.stored() {
			row[f.name] = f.def
			if f.defText == "now" {
				row[f.name] = r.now.UTC().Format(refTime)
			}
			if f.created || f.updated {
				row[f.name] = r.now.UTC().Format(refTime)
			}
			if f.tenant && r.who.Tenant != "" {
				row[f.name] = r.who.Tenant
			}
		}
		if !r.set(e, row, values, "insert") {
			return fail(fault.Invalid)
		}
		if row["id"] == nil {
			row["id"] = fmt.Sprintf("none%d", i)
			if next < len(ids) {
				row["id"] = ids[next]
				next++
			}
		}
		for _, f := range e.stored() {
			if row[f.name] == nil && !f.optional {
				return fail(fault.Invalid)
			}
		}
		rows, given = append(rows, row), append(given, values)
	}
	// The engine may check rows one by one or all at once, so the error of any row may be
	// reported. Within a row, rights are checked first.
	var faults []fault.Code
	for i, row := range rows {
		if codes := r.rejects(e, row, given[i], "insert", nil); codes != nil {
			faults = append(faults, codes...)
			continue
		}
		if r.db[e.name][row["id"].(string)] != nil || r.collides(e, row) {
			faults = append(faults, fault.Conflict)
			continue
		}
		r.db.put(e, row)
		r.mine[e.name+"/"+row["id"].(string)] = true
	}
	if faults != nil {
		for _, row := range rows {
			if before[e.name][row["id"].(string)] == nil {
				delete(r.mine, e.name+"/"+row["id"].(string))
			}
		}
		return fail(faults...)
	}
	out := []any{}
	for i, row := range rows {
		out = append(out, r.insertAnswer(e, row, given[i]))
	}
	return refAnswer{result: map[string]any{"rows": out}}
}

// insertAnswer returns what an insert returns of a row.
func (r *refRun) insertAnswer(e *refEntity, row refRow, given map[string]any) map[string]any {
	if r.reads(e, row) {
		return refProject(row, r.fields(e, "read"))
	}
	out := map[string]any{}
	for _, f := range e.stored() {
		if _, wrote := given[f.name]; wrote || f.kind == "id" || f.created || f.updated {
			out[f.name] = row[f.name]
		}
	}
	return out
}

// rejects returns the error for a row to be written, nil if there is none. It checks the
// right to write and the relations.
func (r *refRun) rejects(e *refEntity, row refRow, given map[string]any, action string, old refRow) (codes []fault.Code) {
	if !r.passes(e, action, row, old, row) || action == "update" && !r.passes(e, action, old, old, row) {
		codes = append(codes, fault.Denied)
	}
	for _, f := range e.stored() {
		id, set := row[f.name].(string)
		if _, wrote := given[f.name]; f.kind != "relation" || f.tenant || !set || !wrote {
			continue
		}
		target := r.app.entity(f.target)
		there := r.db[f.target][id]
		ok := there != nil && (r.reads(target, there) || r.mine[f.target+"/"+id])
		if ok && target.tenantField() != nil && e.tenantField() != nil {
			ok = there[target.tenantField().name] == row[e.tenantField().name]
		}
		if !ok {
			codes = append(codes, fault.NotFound)
		}
	}
	return codes
}

// collides reports whether another row has the same values in unique fields. Null is not
// equal to null there.
func (r *refRun) collides(e *refEntity, row refRow) bool {
	for _, u := range e.uniques {
		fields := u.fields
		if f := e.tenantField(); f != nil && !u.global {
			fields = append([]string{f.name}, fields...)
		}
		for id, other := range r.db[e.name] {
			same := id != row["id"]
			for _, name := range fields {
				same = same && row[name] != nil && refSame(row[name], other[name])
			}
			if same {
				return true
			}
		}
	}
	return false
}

// targets returns the rows that an update or delete applies to, which a query would find.
// Without the right to read, only the id may be named.
func (r *refRun) targets(e *refEntity, args map[string]any) ([]refRow, bool) {
	id := []*refField{e.field("id")}
	fields := id
	if r.offered(e, "read") {
		fields = append(fields, r.fields(e, "read")...)
	}
	match, ok := r.where(e, args["where"], fields)
	if !ok {
		return nil, false
	}
	var rows []refRow
	for _, row := range r.ordered(e) {
		if match(row) && r.finds(e, row) {
			rows = append(rows, row)
		}
	}
	return rows, true
}

// finds reports whether the caller's right to read lets a change find the row.
func (r *refRun) finds(e *refEntity, row refRow) bool {
	return !r.offered(e, "read") || r.reads(e, row)
}

func (r *refRun) update(e *refEntity, args map[string]any) refAnswer {
	values := args["set"].(map[string]any)
	if !r.set(e, refRow{}, values, "update") {
		return refFails(fault.Invalid)
	}
	found, ok := r.targets(e, args)
	if !ok {
		return refFails(fault.Invalid)
	}
	var candidates []refRow
	change := func(old refRow) refRow {
		row := maps.Clone(old)
		r.set(e, row, values, "update")
		for _, f := range e.stored() {
			if f.updated {
				row[f.name] = r.now.UTC().Format(refTime)
			}
		}
		return row
	}
	for _, old := range found {
		if r.findsToUpdate(e, old, change(old)) {
			candidates = append(candidates, old)
		}
	}
	// Rows are changed one by one, and rules see the earlier changes.
	before := r.db
	r.db = before.clone()
	var rows []refRow
	var faults []fault.Code
	for _, old := range candidates {
		row := change(old)
		if !r.finds(e, old) || !r.findsToUpdate(e, old, row) {
			continue
		}
		if codes := r.rejects(e, row, values, "update", old); codes != nil {
			faults = append(faults, codes...)
			continue
		}
		r.db.put(e, row)
		rows = append(rows, row)
	}
	for _, row := range rows {
		if r.collides(e, row) {
			faults = append(faults, fault.Conflict)
		}
	}
	if faults != nil {
		r.db = before
		return refFails(faults...)
	}
	result := map[string]any{"count": float64(len(rows))}
	if r.offered(e, "read") {
		out := []any{}
		for _, row := range rows {
			if r.reads(e, row) {
				out = append(out, refProject(row, r.fields(e, "read")))
			}
		}
		result["rows"] = out
	}
	return refAnswer{result: result}
}

func (r *refRun) delete(e *refEntity, args map[string]any) refAnswer {
	found, ok := r.targets(e, args)
	if !ok {
		return refFails(fault.Invalid)
	}
	found = slices.DeleteFunc(found, func(row refRow) bool { return !r.passes(e, "delete", row, nil, nil) })
	before := r.db
	r.db = before.clone()
	count := 0
	doomed := map[string][]string{}
	for _, row := range found { // one by one; rules see the earlier changes
		if !r.finds(e, row) || !r.passes(e, "delete", row, nil, nil) {
			continue
		}
		count++
		id := row["id"].(string)
		delete(r.db[e.name], id)
		doomed[e.name] = append(doomed[e.name], id)
	}
	if !r.remove(doomed) {
		r.db = before
		return refFails(fault.Conflict)
	}
	return refAnswer{result: map[string]any{"count": float64(count)}}
}

// remove deletes rows and applies onDelete to the rows that refer to them. It is false if a
// restricted one remains.
func (r *refRun) remove(doomed map[string][]string) bool {
	gone := map[string]bool{}
	for len(doomed) > 0 {
		next := map[string][]string{}
		for name, ids := range doomed {
			for _, id := range ids {
				delete(r.db[name], id)
				gone[name+"/"+id] = true
			}
		}
		r.leadingTo(gone, func(e *refEntity, f *refField, row refRow) {
			switch f.onDelete {
			case "cascade":
				next[e.name] = append(next[e.name], row["id"].(string))
			case "clear":
				row[f.name] = nil
			}
		})
		doomed = next
	}
	ok := true
	r.leadingTo(gone, func(*refEntity, *refField, refRow) { ok = false })
	return ok
}

// leadingTo returns the relations that refer to deleted rows.
func (r *refRun) leadingTo(gone map[string]bool, each func(*refEntity, *refField, refRow)) {
	for _, e := range r.app.entities {
		for _, f := range e.stored() {
			for _, row := range r.db[e.name] {
				if id, ok := row[f.name].(string); ok && f.kind == "relation" && gone[f.target+"/"+id] {
					each(e, f, row)
				}
			}
		}
	}
}
