package entity

import (
	"context"
	"fmt"

	"runner.example/schema"
	"runner.example/store"
)

// Current returns the model of the schema if it is the active one of the store, or if there
// never was another. Unlike Activate it does not change rows of another schema: the model
// is nil then.
func Current(ctx context.Context, st *store.Store, s *schema.Schema, opt Options) (*Model, error) {
	var c *catalog
	fresh := false
	err := st.View(ctx, func(tx *store.Tx) error {
		m, err := compare(tx, s, "")
		if err != nil {
			return err
		}
		fresh = m.old.Generation == 0
		if !m.changed {
			c = m.new
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("compare schema with rows: %w", err)
	case fresh:
		return Activate(ctx, st, s, nil, opt)
	case c == nil:
		return nil, nil
	}
	return newModel(ctx, st, s, c, opt)
}
