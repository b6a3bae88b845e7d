package jobs

import (
	"container/heap"
	"container/list"
)

// rotation is a list of values by key, of which each comes in turn. The zero value is empty.
type rotation[K comparable, V any] struct {
	order list.List // of *rotationEntry[K, V]
	byKey map[K]*list.Element
}

type rotationEntry[K comparable, V any] struct {
	key   K
	value V
}

func (r *rotation[K, V]) len() int    { return r.order.Len() }
func (r *rotation[K, V]) empty() bool { return r.order.Len() == 0 }

// put adds a value at the end.
func (r *rotation[K, V]) put(key K, value V) {
	if r.byKey == nil {
		r.byKey = map[K]*list.Element{}
	}
	r.byKey[key] = r.order.PushBack(&rotationEntry[K, V]{key, value})
}

func (r *rotation[K, V]) remove(key K) {
	if e, ok := r.byKey[key]; ok {
		r.order.Remove(e)
		delete(r.byKey, key)
	}
}

// first returns the first value. The list must not be empty.
func (r *rotation[K, V]) first() (K, V) {
	t := r.order.Front().Value.(*rotationEntry[K, V])
	return t.key, t.value
}

// rotate moves the first value to the end. The list must not be empty.
func (r *rotation[K, V]) rotate() { r.order.MoveToBack(r.order.Front()) }

// inner returns the rotation with a key in a rotation of rotations, which it makes if there is none.
func inner[K, L comparable, V any](r *rotation[K, *rotation[L, V]], key K) *rotation[L, V] {
	if e, ok := r.byKey[key]; ok {
		return e.Value.(*rotationEntry[K, *rotation[L, V]]).value
	}
	made := &rotation[L, V]{}
	r.put(key, made)
	return made
}

// laterGroups is a heap of groups by the time at which they have a job that is due.
type laterGroups []*group

func (l laterGroups) Len() int           { return len(l) }
func (l laterGroups) Less(i, j int) bool { return l[i].at < l[j].at }
func (l laterGroups) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].index, l[j].index = i, j
}

// Push and Pop implement heap.Interface.
func (l *laterGroups) Push(g any) {
	g.(*group).index = len(*l)
	*l = append(*l, g.(*group))
}
func (l *laterGroups) Pop() any {
	last := len(*l) - 1
	g := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return g
}

func (l *laterGroups) add(g *group)    { heap.Push(l, g) }
func (l *laterGroups) remove(g *group) { heap.Remove(l, g.index) }
