package wasm

// need is the native stack that a function needs, if it asks for it.
type need struct {
	asks  bool
	bytes uint32 // of a call, with the callees that do not ask
	below uint32 // of the callees
}

// unasked is how many bytes of native stack a call may take, with its callees, if none of
// them asks.
const unasked = 32 << 10

// needs returns which functions ask for the stack that they need: functions on a cycle of
// the call graph, and functions that need much with their callees. A call through a table
// may reach each function of the type that is or can be in a table. The host does not call
// back into the module.
//
// The nodes of the graph are the functions, imports first, then the types, for indirect
// calls: caller → type → each function of that type.
func (m *Module) needs() []need {
	g := m.callGraph()
	const unseen = 0
	var (
		nodes  = m.functionCount() + len(m.types)
		order  = make([]uint32, nodes) // when a node was first seen, from 1
		low    = make([]uint32, nodes) // the earliest open node that it reaches
		open   = make([]bool, nodes)
		self   = make([]bool, nodes) // it leads to itself
		opened []uint32              // in order
		path   []step
		clock  uint32
	)
	g.needs = make([]need, len(m.functions))
	g.height = make([]uint32, nodes)
	// Tarjan's algorithm for strongly connected components, without recursion.
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
					self[n] = self[n] || next == n
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
			// n is the first of its component, which is on top of the stack
			first := len(opened) - 1
			for opened[first] != n {
				first--
			}
			component := opened[first:]
			opened = opened[:first]
			for _, member := range component {
				open[member] = false
			}
			g.measure(component, len(component) > 1 || self[n])
		}
	}
	return g.needs
}

// measure adds up what the functions of a component need. Their callees outside of it are
// already measured.
func (g *graph) measure(component []uint32, cycle bool) {
	functions := uint32(g.functionCount())
	for _, n := range component { // types first: they only pass on
		if n >= functions {
			g.height[n] = g.highest(n)
		}
	}
	for _, n := range component {
		i := int(n) - len(g.imports)
		switch {
		case n >= functions:
		case i < 0:
			g.height[n] = nativeFixed
		default:
			below := g.highest(n)
			bytes := g.functions[i].frame + below
			if cycle || bytes > unasked {
				g.needs[i] = need{asks: true, bytes: bytes, below: below}
			} else {
				g.height[n] = bytes
			}
		}
	}
}

// highest is the largest height of the nodes that a node leads to.
func (g *graph) highest(node uint32) (height uint32) {
	for i := uint32(0); ; i++ {
		next, ok := g.edge(node, i)
		if !ok {
			return height
		}
		height = max(height, g.height[next])
	}
}

// step is a node on the path from the root, and the next of its edges.
type step struct{ node, edge uint32 }

// graph is the call graph.
type graph struct {
	*Module
	canon   []uint32 // the first type that is equal to each
	members []uint32 // functions in tables, by type
	begin   []uint32 // where each type's members begin; one more at the end
	needs   []need
	height  []uint32 // by node: the stack that it takes with its callees, without asking
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
