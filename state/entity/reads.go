package entity

import (
	"strings"

	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// WidenReads makes what was read at most one range for each entity and one for each index, and one for each kind of
// the other keys with ids: those of jobs, API keys and so on. Keys without an id, as that of the catalog, stay.
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
