package wasm

// recursive tells of each defined function whether it can be active more than
// once at a time: whether it is on a cycle of the call graph. A call through a
// table may go to every function of the type that is in a table or can get
// there. The host is taken not to call back into the module.
//
// The nodes of the graph are the functions, imports first, and behind them the
// types, for indirect calls: caller → type → every function of that type.
func (m *Module) recursive() []bool {
	g := m.callGraph()
	const unseen = 0
	var (
		functions = m.functionCount()
		nodes     = functions + len(m.types)
		order     = make([]uint32, nodes) // when a node was first seen, from 1
		low       = make([]uint32, nodes) // the earliest open node that it reaches
		open      = make([]bool, nodes)
		opened    []uint32 // in order
		path      []step
		clock     uint32
		result    = make([]bool, len(m.functions))
	)
	// Tarjan's strongly connected components, without recursion of its own.
	for root := range nodes {
		if order[root] != unseen {
			continue
		}
		path = append(path[:0], step{node: uint32(root)})
		for len(path) > 0 {
			s := &path[len(path)-1]
			n := s.node
			if s.edge == 0 {
				clock++
				order[n], low[n] = clock, clock
				open[n] = true
				opened = append(opened, n)
			}
			if next, ok := g.edge(n, s.edge); ok {
				s.edge++
				if order[next] == unseen {
					path = append(path, step{node: next})
				} else if open[next] {
					low[n] = min(low[n], order[next])
					if next == n {
						markRecursive(result, n, len(m.imports))
					}
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				up := path[len(path)-1].node
				low[up] = min(low[up], low[n])
			}
			if low[n] != order[n] {
				continue
			}
			// n is the first of its component, which lies on top
			alone := opened[len(opened)-1] == n
			for {
				member := opened[len(opened)-1]
				opened = opened[:len(opened)-1]
				open[member] = false
				if !alone {
					markRecursive(result, member, len(m.imports))
				}
				if member == n {
					break
				}
			}
		}
	}
	return result
}

// step is a node on the path from the root, and the next of its edges.
type step struct{ node, edge uint32 }

func markRecursive(result []bool, node uint32, imports int) {
	if i := int(node) - imports; i >= 0 && i < len(result) {
		result[i] = true
	}
}

// graph is who calls whom.
type graph struct {
	*Module
	canon   []uint32 // the first type that is equal to each
	members []uint32 // functions in tables, by type
	begin   []uint32 // where each type's members begin; one more at the end
}

func (m *Module) callGraph() *graph {
	g := &graph{Module: m, canon: make([]uint32, len(m.types)), begin: make([]uint32, len(m.types)+1)}
	first := make(map[string]uint32, len(m.types))
	for i, t := range m.types {
		key := t.key()
		if _, ok := first[key]; !ok {
			first[key] = uint32(i)
		}
		g.canon[i] = first[key]
	}
	for i, in := range m.inTable {
		if in {
			g.begin[g.canon[m.typeOf(uint32(i))]+1]++
		}
	}
	for i := range m.types {
		g.begin[i+1] += g.begin[i]
	}
	g.members = make([]uint32, g.begin[len(m.types)])
	filled := make([]uint32, len(m.types))
	for i, in := range m.inTable {
		if in {
			t := g.canon[m.typeOf(uint32(i))]
			g.members[g.begin[t]+filled[t]] = uint32(i)
			filled[t]++
		}
	}
	return g
}

// edge is the i-th node that a node leads to.
func (g *graph) edge(node, i uint32) (uint32, bool) {
	functions := uint32(g.functionCount())
	if node >= functions {
		members := g.members[g.begin[node-functions]:g.begin[node-functions+1]]
		if int(i) < len(members) {
			return members[i], true
		}
		return 0, false
	}
	if int(node) < len(g.imports) {
		return 0, false
	}
	f := &g.functions[int(node)-len(g.imports)]
	direct := g.calls[f.calls.from:f.calls.to]
	if int(i) < len(direct) {
		return direct[i], true
	}
	indirect := g.indirect[f.indirect.from:f.indirect.to]
	if i -= uint32(len(direct)); int(i) < len(indirect) {
		return functions + g.canon[indirect[i]], true
	}
	return 0, false
}

// stack estimates the bytes of native stack that a call of the function takes:
// what it saves in any case, its parameters and locals, and a share of its code,
// as compilers keep intermediate values there, too.
func (f *function) stack() uint32 {
	return 48 + 8*uint32(f.locals) + uint32(f.end-f.code)/8
}
