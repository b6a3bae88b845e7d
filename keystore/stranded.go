package keystore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/store"
)

// maxStranded is how many ids one warning names.
const maxStranded = 10

// Stranded warns, once for each scope (W600), of live keys whose scope s does not
// have. The warnings stand at place.
func (k *Keystore) Stranded(ctx context.Context, s *schema.Schema, place diag.Span) (diag.List, error) {
	type scope struct {
		first []string // ids
		count int
	}
	gone := map[string]*scope{}
	operator := Authority{Schema: s, Caller: caller.Caller{Kind: caller.System}}
	for filter := (Filter{Limit: maxLimit}); ; {
		var page Page
		err := k.store.View(ctx, func(tx *store.Tx) (err error) {
			page, err = k.List(tx, operator, filter)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("look for keys without a scope: %w", err)
		}
		for _, key := range page.Keys {
			if s.ScopeOf(key.Scope, key.Capability) != nil {
				continue
			}
			g := gone[key.Scope]
			if g == nil {
				g = &scope{}
				gone[key.Scope] = g
			}
			if g.count++; g.count <= maxStranded {
				g.first = append(g.first, key.ID)
			}
		}
		if filter.Cursor = page.NextCursor; filter.Cursor == "" {
			break
		}
	}
	var list diag.List
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		g := gone[name]
		more := ""
		if rest := g.count - len(g.first); rest > 0 {
			more = fmt.Sprintf(" and %d more", rest)
		}
		list.Warnf("W600", place, "scope %q is gone, and live keys of it open nothing any more: revoke them or bring it back: %s%s",
			name, strings.Join(g.first, ", "), more)
	}
	return list, nil
}
