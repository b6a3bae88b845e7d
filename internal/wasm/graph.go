package wasm

import (
	"math"

	"runner.example/internal/wasm/opcode"
)

// need is what a function checks when it is called.
type need struct {
	charged bool   // it counts fuel
	asks    bool   // for native stack
	bytes   uint32 // of stack that a call takes, with the callees that do not ask
	below   uint32 // of the callees
}

// unasked is how many bytes of native stack a call may take, with its callees, if none of
// them asks.
const unasked = 32 << 10

// needs returns what each function checks. On each cycle of the call graph a function asks
// for stack and counts fuel; other functions ask if they need much stack with their callees,
// and count if they may take long. A call through a table may reach each function of the
// type that is or can be in a table. The host does not call back into the module. A function that tail calls go to
// asks too: its caller has given its stack back.
//
// The nodes of the graph are the functions, imports first, then the types, for indirect
// calls: caller → type → each function of that type. The graph is searched depth first.
// Each cycle has an edge to a node that is open, and its target is chosen, or its source if
// the target is a type. A node is measured when all its callees are, except those that are
// chosen.
func (m *Module) needs() []need {
	g := m.callGraph()
	const (
		unseen = iota
		open
		closed
	)
	nodes := m.functionCount() + len(m.types)
	state := make([]uint8, nodes)
	var path []step
	g.needs = make([]need, len(m.functions))
	g.height = make([]uint32, nodes)
	g.chosen = make([]bool, nodes)
	g.jumpedTo = g.isJumpedTo()
	for root := range nodes {
		if state[root] != unseen {
			continue
		}
		path = append(path[:0], step{node: uint32(root)})
		state[root] = open
		for len(path) > 0 {
			s := &path[len(path)-1]
			next, ok := g.edge(s.node, s.edge)
			s.edge++
			switch {
			case !ok:
				g.measure(s.node)
				state[s.node] = closed
				path = path[:len(path)-1]
			case state[next] == unseen:
				path = append(path, step{node: next})
				state[next] = open
			case state[next] == open && int(next) < m.functionCount():
				g.chosen[next] = true
			case state[next] == open:
				g.chosen[s.node] = true
			}
		}
	}
	for i := range g.needs { // now that the types are measured
		if n := &g.needs[i]; n.asks {
			n.below = g.highest(uint32(len(g.imports) + i))
			n.bytes = min(g.functions[i].frame+n.below, math.MaxInt32)
		}
	}
	return g.needs
}

// measure adds up what a node needs with its callees.
func (g *graph) measure(node uint32) {
	switch i := int(node) - len(g.imports); {
	case i < 0:
		g.height[node] = nativeFixed
	case i >= len(g.functions):
		g.height[node] = g.highest(node)
	default:
		n := &g.needs[i]
		n.charged = g.isCharged(node)
		bytes := g.functions[i].frame + g.highest(node)
		n.asks = g.chosen[node] || bytes > unasked || g.jumpedTo != nil && g.jumpedTo[i]
		if !n.asks {
			g.height[node] = bytes
		}
	}
}

// isCharged reports whether a function counts fuel when it is called. A function that does
// not count weighs at most leafWeight, without callees that count; its call is charged for
// it.
func (g *graph) isCharged(node uint32) bool {
	f := &g.functions[int(node)-len(g.imports)]
	switch {
	case f.loopFirst || !f.hasCall:
		return f.weight > leafWeight
	case g.chosen[node] || f.plain > leafWeight || f.indirect.from < f.indirect.to:
		return true
	}
	for _, callee := range g.calls[f.calls.from:f.calls.to] {
		if !g.counts(callee) {
			return true
		}
	}
	return false
}

// counts reports whether a function counts fuel before it does anything that its call, as
// plain weighs it, does not pay for.
func (g *graph) counts(node uint32) bool {
	i := int(node) - len(g.imports)
	switch {
	case i < 0:
		return false
	case g.functions[i].loopFirst:
		return g.needs[i].charged || g.functions[i].weight <= opcode.WeightBranch
	}
	return g.needs[i].charged || g.chosen[node]
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
	canon    []uint32 // the first type that is equal to each
	members  []uint32 // functions in tables, by type
	begin    []uint32 // where each type's members begin; one more at the end
	needs    []need
	chosen   []bool   // by node: it is on a cycle, and checks
	jumpedTo []bool   // by defined function: a tail call may go there; nil: there are none
	height   []uint32 // by node: the stack that it takes with its callees, without asking
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
