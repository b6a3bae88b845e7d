package entity

import (
	"strings"

	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// WidenReads widens r to at most one range for each entity, one for each index, and one for each kind of other keys with
// ids, such as those of jobs and API keys. Keys without an id, such as that of the catalog, stay as they are.
func WidenReads(r *store.Reads) { r.Widen(wholeOf) }

// wholeOf returns the prefix of all keys of the same entity, index or kind.
func wholeOf(key string) string {
	for _, space := range []string{layout.SpaceRows, layout.SpaceEntries} {
		if n := len(layout.NumberedKey(space, 0)); strings.HasPrefix(key, space) && len(key) >= n {
			return key[:n]
		}
	}
	subject, rest, _ := strings.Cut(key, "/") // such as jobs/j/<id>
	kind, _, ok := strings.Cut(rest, "/")
	if !ok {
		return key
	}
	return key[:len(subject)+1+len(kind)+1]
}
