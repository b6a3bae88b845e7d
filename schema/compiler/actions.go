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
func (a *app) checkActions(actions []syntax.Ident, known []string) {
	given := map[string]bool{}
	for _, action := range actions {
		if action.Name == "" {
			continue
		}
		if !slices.Contains(known, action.Name) {
			a.Errorf("E305", action.Loc, "unknown action %q: use %s%s",
				action.Name, strings.Join(known, ", "), a.DidYouMean(action.Name, known))
			continue
		}
		twice := false
		for _, part := range model.ActionParts(action.Name) {
			twice = twice || given[part]
			given[part] = true
		}
		if twice {
			a.Warnf("W305", action.Loc, "action %q is given twice", action.Name)
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
