package compiler

import (
	"slices"

	"runner.example/internal/diag"
	"runner.example/schema/model"
	"runner.example/schema/syntax"
)

var (
	grantActions  = []string{"read", "write", "delete", "insert", "update"}
	policyActions = append(slices.Clone(grantActions), "all")
)

// otherActions are the words of other languages for actions, in lower case.
var otherActions = map[string][]string{
	"create": {"insert"}, "add": {"insert"}, "new": {"insert"}, "post": {"insert"},
	"edit": {"update"}, "modify": {"update"}, "change": {"update"}, "patch": {"update"}, "put": {"update"},
	"remove": {"delete"}, "destroy": {"delete"},
	"get": {"read"}, "list": {"read"}, "view": {"read"}, "select": {"read"}, "find": {"read"}, "query": {"read"},
	"save": {"write"}, "upsert": {"write"},
}

// checkActions reports unknown and repeated actions.
func (a *app) checkActions(actions []syntax.Ident, known []string) {
	given := map[string]bool{}
	for _, action := range actions {
		if action.Name == "" {
			continue
		}
		if !slices.Contains(known, action.Name) {
			words := diag.Vocabulary{Known: known, Others: otherActions}
			a.Errorf("E305", action.Loc, "unknown action %q%s", action.Name, a.Hint(words, action.Name, nil))
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
