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
	"runner.example/state/store"
)

// maxOrphansNamed is how many ids one warning names.
const maxOrphansNamed = 10

// OrphanedKeys warns, once for each scope (W600), of live keys whose scope s does not
// have. The warnings have the place given.
func (k *Keystore) OrphanedKeys(ctx context.Context, s *schema.Schema, place diag.Span) (diag.List, error) {
	type scope struct {
		first []string // ids
		count int
	}
	orphans := map[string]*scope{}
	operator := Authority{Schema: s, Caller: caller.Caller{Kind: caller.System}}
	for filter := (Filter{Limit: maxLimit}); ; {
		var page Page
		err := k.store.View(ctx, func(tx *store.Tx) (err error) {
			page, err = k.List(tx, operator, filter)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("find orphaned keys: %w", err)
		}
		for _, key := range page.Keys {
			if s.ScopeOf(key.Scope, key.Capability) != nil {
				continue
			}
			o := orphans[key.Scope]
			if o == nil {
				o = &scope{}
				orphans[key.Scope] = o
			}
			if o.count++; o.count <= maxOrphansNamed {
				o.first = append(o.first, key.ID)
			}
		}
		if filter.Cursor = page.NextCursor; filter.Cursor == "" {
			break
		}
	}
	var list diag.List
	for _, name := range slices.Sorted(maps.Keys(orphans)) {
		o := orphans[name]
		more := ""
		if rest := o.count - len(o.first); rest > 0 {
			more = fmt.Sprintf(" and %d more", rest)
		}
		list.Warnf("W600", place,
			"scope %q is not in the schema, so its live keys are refused: revoke them or declare the scope again: %s%s",
			name, strings.Join(o.first, ", "), more)
	}
	return list, nil
}
