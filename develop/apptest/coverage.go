package apptest

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"runner.example/runtime"
	"runner.example/schema"
)

// Covered is a part of the schema that allows or refuses, and whether a test has seen it do so.
type Covered struct {
	// Part is where it is: a route, a scope or an entity. Rule is what decides there.
	Part string `json:"part"`
	Rule string `json:"rule"`
	// Allowed and Refused are nil if it cannot do that.
	Allowed *bool `json:"allowed"`
	Refused *bool `json:"refused"`
}

// Coverage is what tests have seen of the rules of a schema.
type Coverage struct {
	Rules []Covered `json:"rules"`
	// Seen of Of are the decisions that a test has seen: two for each rule that can allow and refuse.
	Seen int `json:"seen"`
	Of   int `json:"of"`
}

// Percent is Seen of Of; 100 without rules.
func (c *Coverage) Percent() float64 {
	if c.Of == 0 {
		return 100
	}
	return 100 * float64(c.Seen) / float64(c.Of)
}

// observed is one kind of decision, see schema.Observer.
type observed struct {
	part    any
	what    string
	allowed bool
}

// observations are the decisions that tests have seen. Any goroutine may use them.
type observations struct {
	seen sync.Map // of observed
}

func (o *observations) observe(part any, what string, allowed bool) {
	o.seen.LoadOrStore(observed{part, what, allowed}, true)
}

func (o *observations) saw(part any, what string, allowed bool) bool {
	_, saw := o.seen.Load(observed{part, what, allowed})
	return saw
}

// coverage compares the observations with what the schema declares.
func (o *observations) coverage(s *schema.Schema) *Coverage {
	c := &Coverage{Rules: []Covered{}}
	add := func(part, rule string, of any, what string, allows, refuses bool) {
		r := Covered{Part: part, Rule: rule}
		for _, one := range []struct {
			can, allowed bool
			into         **bool
		}{{allows, true, &r.Allowed}, {refuses, false, &r.Refused}} {
			if !one.can {
				continue
			}
			saw := o.saw(of, what, one.allowed)
			*one.into = &saw
			c.Of++
			if saw {
				c.Seen++
			}
		}
		c.Rules = append(c.Rules, r)
	}
	limits := map[string]bool{}
	for _, rt := range routesOf(s) {
		coverRoute(rt, add)
	}
	for _, rt := range routesOf(s) { // several routes may share one limit
		for _, l := range rt.Limits {
			if !limits[l.ID] {
				limits[l.ID] = true
				add("rate limits", fmt.Sprintf("%d per %s by %s, %s", l.Count, shortTime(l.Per), cmp.Or(l.By, "caller"), l.ID),
					runtime.ObservedLimit, l.ID, true, true)
			}
		}
	}
	for _, scope := range s.APIKeys.Scopes {
		name := "scope " + scope.Name
		for i := range scope.Grants {
			g := &scope.Grants[i]
			for _, entity := range g.Entities {
				rule := fmt.Sprintf("@grant(%s) on %s", strings.Join(g.Actions, ", "), entity)
				if g.Where != nil {
					rule += " where …"
				}
				add(name, rule, g, entity, true, g.Where != nil)
			}
		}
		if scope.Issue != nil {
			add(name, "@issue", scope, "", true, true)
		}
	}
	for i := range s.Entities {
		e := s.Entities[i]
		for _, p := range e.Policies {
			rule := "@@allow " + p.Span.String()
			if p.Deny {
				rule = "@@deny " + p.Span.String()
			}
			add("entity "+e.Name, rule, p, e.Name, !p.Deny || p.When != nil, p.Deny || p.When != nil)
		}
	}
	return c
}

// routesOf returns the routes and the functions with a URL.
func routesOf(s *schema.Schema) (all []*schema.Route) {
	for i := range s.Routes {
		all = append(all, &s.Routes[i])
	}
	for i := range s.Functions {
		if s.Functions[i].Exposed {
			all = append(all, s.Functions[i].Route())
		}
	}
	return all
}

// coverRoute adds what a route allows and refuses.
func coverRoute(rt *schema.Route, add func(part, rule string, of any, what string, allows, refuses bool)) {
	name := rt.Method + " " + rt.Path
	if rt.Auth.None {
		add(name, "auth: none", name, runtime.ObservedNone, true, false)
	}
	if rt.Auth.Session {
		add(name, "auth: "+schema.Auth{Session: true, Roles: rt.Auth.Roles}.String(), name, runtime.ObservedSession, true, true)
	}
	if len(rt.Auth.Scopes) > 0 {
		add(name, "auth: "+schema.Auth{Scopes: rt.Auth.Scopes}.String(), name, runtime.ObservedKey, true, true)
	}
	if rt.Input != "" {
		add(name, "input: "+rt.Input, name, runtime.ObservedInput, true, true)
	}
	if rt.Query != "" {
		add(name, "query: "+rt.Query, name, runtime.ObservedQuery, true, true)
	}
}

// Rows are the rules as the rows of a table, with the columns part, rule, allowed and refused.
func (c *Coverage) Rows() (rows [][]string) {
	cell := func(saw *bool) string {
		switch {
		case saw == nil:
			return "-"
		case *saw:
			return "seen"
		}
		return "NOT SEEN"
	}
	part := ""
	for _, r := range c.Rules {
		name := r.Part
		if name == part {
			name = ""
		}
		part = r.Part
		rows = append(rows, []string{name, r.Rule, cell(r.Allowed), cell(r.Refused)})
	}
	return rows
}

// shortTime is a time without zeros at its end: 1h, not 1h0m0s.
func shortTime(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
