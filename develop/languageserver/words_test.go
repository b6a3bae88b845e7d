package languageserver

import (
	"testing"

	"runner.example/schema/syntax"
)

// Each word of the grammar has an explanation, which completion and hover show.
func TestAllWordsAreExplained(t *testing.T) {
	words := syntax.AllWords()
	for what, row := range map[string]struct {
		words     []string
		explained func(string) bool
	}{
		"declaration":            {words.Declarations, func(w string) bool { return declarations[w] != "" }},
		"setting of a route":     {words.RouteSettings, func(w string) bool { return routeSettings[w].standard != "" }},
		"setting of a job":       {words.JobSettings, func(w string) bool { return jobSettings[w].standard != "" }},
		"setting of assets":      {words.AssetSettings, func(w string) bool { return assetSettings[w].standard != "" }},
		"attribute of a field":   {words.FieldAttrs, func(w string) bool { return fieldAttrs[w] != "" }},
		"attribute of an entity": {words.EntityAttrs, func(w string) bool { return entityAttrs[w] != "" }},
		"part of a scope":        {words.ScopeAttrs, func(w string) bool { return scopeAttrs[w] != "" }},
	} {
		for _, w := range row.words {
			if !row.explained(w) {
				t.Errorf("the %s %q has no explanation", what, w)
			}
		}
	}
}
