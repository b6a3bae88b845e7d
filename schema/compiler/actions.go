package compiler

import (
	"slices"
	"strings"

	"runner.example/schema/model"
	"runner.example/schema/syntax"
)

var (
	grantActions  = []string{"read", "write", "delete", "insert", "update"}
	policyActions = append(slices.Clone(grantActions), "all")
)

// checkActions reports unknown and repeated actions.
func (r *report) checkActions(actions []syntax.Ident, known []string) {
	given := map[string]bool{}
	for _, a := range actions {
		if a.Name == "" {
			continue
		}
		if !slices.Contains(known, a.Name) {
			r.errorf("E305", a.Loc, "unknown action %q: use %s%s", a.Name, strings.Join(known, ", "), r.didYouMean(a.Name, known))
			continue
		}
		twice := false
		for _, part := range model.ActionParts(a.Name) {
			twice = twice || given[part]
			given[part] = true
		}
		if twice {
			r.warnf("W305", a.Loc, "action %q is given twice", a.Name)
		}
	}
}

// wordFor returns the first of the actions that means the single action, or nil.
func wordFor(action string, actions []syntax.Ident) *syntax.Ident {
	for i := range actions {
		if slices.Contains(model.ActionParts(actions[i].Name), action) {
			return &actions[i]
		}
	}
	return nil
}

// onlyUpdates reports whether all actions can be updates, which have an old and a new row.
func onlyUpdates(actions []syntax.Ident) bool {
	for _, a := range actions {
		if a.Name != "update" && a.Name != "write" && a.Name != "all" {
			return false
		}
	}
	return true
}
