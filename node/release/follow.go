package release

import "runner.example/state/store"

// OnActivate calls fn at each change of the pointer to the active release, by any node, until stop is
// called: with the number of the commit, before it is readable. fn must not block, as that of
// store.OnApply.
func OnActivate(st *store.Store, fn func(store.Seq)) (stop func()) {
	return st.OnApply([]byte(keyActive), func(seq store.Seq, c store.Change) {
		if string(c.Key) == keyActive {
			fn(seq)
		}
	})
}
