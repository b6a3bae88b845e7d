package router

import (
	"bytes"
	"fmt"
	"strings"

	"runner.example/hostabi/abi"
)

// Route is one method with a path template, such as GET /v1/orders/:id or
// GET /files/*path.
type Route struct{ Method, Path string }

// Outcome says what a request's method and path lead to.
type Outcome uint8

// The outcomes of Match.
const (
	// NotFound: no route of any method has this path.
	NotFound Outcome = iota
	// Found: Match.Route takes the request.
	Found
	// MethodNotAllowed: only routes of other methods have this path;
	// Match.Allow names the methods that do.
	MethodNotAllowed
	// Options: the host answers an OPTIONS request itself, with Match.Allow.
	Options
	// BadPath: the path is one that no route may ever see.
	BadPath
)

// Match is what was found for one request. Use the same one again for the next
// request: its buffers are kept. The zero value is ready.
type Match struct {
	// Route is an index into the routes given to New, set when Found.
	Route int
	// Params are the decoded parameters of the route in order of its path. A
	// rest is decoded as a whole and keeps its slashes. Values point into the
	// target or into the Match: they are valid until either is used again.
	Params []abi.Pair
	// Allow is the value of an Allow header, set when MethodNotAllowed or Options.
	Allow string

	spans []span
	buf   []byte
}

// span is where one parameter stands in the target.
type span struct{ from, to int }

// Router holds the routes of one release.
type Router struct {
	trees [methods]node
	// allow is the Allow header for each set of methods.
	allow [1 << methods]string
}

// New makes a router of checked routes. It panics on a method or a template
// that a schema cannot hold and on two routes of one shape: the schema's
// checks refuse all of these before.
func New(routes []Route) *Router {
	r := &Router{}
	for i, route := range routes {
		m := methodOf([]byte(route.Method))
		if m < 0 || !strings.HasPrefix(route.Path, "/") {
			panic(fmt.Sprintf("BUG: router given the route %q %q", route.Method, route.Path))
		}
		r.trees[m].add(route.Path, i)
	}
	for set := range r.allow {
		r.allow[set] = allowText(set)
	}
	return r
}

// Match finds the route for a method and a target without its query, and fills
// m. It allocates nothing once m has grown to what its requests need.
//
// A path that breaks the rules of paths is BadPath whether a route has it or
// not. Among the routes of the method the one whose first differing segment is
// more literal wins. Below /_call and /_health no parameter and no rest takes the
// place of these segments. A HEAD without a HEAD route is served by the GET route.
func (r *Router) Match(method, target []byte, m *Match) Outcome {
	m.Route, m.Params, m.Allow = 0, m.Params[:0], ""
	if !m.wellFormed(target) {
		return BadPath
	}
	own := methodOf(method)
	if own >= 0 && r.find(own, target, m) {
		return Found
	}
	if own == head && r.find(get, target, m) {
		return Found
	}
	set := 0
	for other := range r.trees {
		if m.spans = m.spans[:0]; r.trees[other].find(target, 1, m) != nil {
			set |= 1 << other
		}
	}
	switch {
	case set == 0:
		return NotFound
	case own == options:
		m.Allow = r.allow[set]
		return Options
	}
	m.Allow = r.allow[set]
	return MethodNotAllowed
}

// find looks among the routes of one method and fills m when one matches.
func (r *Router) find(method int, target []byte, m *Match) bool {
	m.spans = m.spans[:0]
	leaf := r.trees[method].find(target, 1, m)
	if leaf == nil {
		return false
	}
	m.Route = leaf.route
	m.buf = m.buf[:0]
	for i, s := range m.spans {
		m.Params = append(m.Params, abi.Pair{Name: leaf.names[i], Value: m.decode(target[s.from:s.to])})
	}
	return true
}

// decode gives raw without its percent-encoding: raw itself when it has none,
// else a part of m.buf.
func (m *Match) decode(raw []byte) []byte {
	if bytes.IndexByte(raw, '%') < 0 {
		return raw
	}
	from := len(m.buf)
	m.buf, _ = unescape(m.buf, raw)
	return m.buf[from:len(m.buf):len(m.buf)]
}

// node is the routes of one method that share the segments down to here. Which
// part of a path a node has left to match depends on its depth alone, so a
// search visits a node at most once however it backtracks.
type node struct {
	static map[string]*node
	param  *node
	// end is the route whose template ends here, rest the one that takes all
	// that is left.
	end, rest *leaf
}

// leaf is the end of one route's template.
type leaf struct {
	route int
	names [][]byte
}

// add hangs the route of index i below n.
func (n *node) add(path string, i int) {
	l := &leaf{route: i}
	for rest, more := path[1:], true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		switch {
		case strings.HasPrefix(segment, "*"):
			if more || len(segment) == 1 || n.rest != nil {
				panic(fmt.Sprintf("BUG: router given the path %q", path))
			}
			l.names = append(l.names, []byte(segment[1:]))
			n.rest = l
			return
		case strings.HasPrefix(segment, ":"):
			l.names = append(l.names, []byte(segment[1:]))
			if n.param == nil {
				n.param = &node{}
			}
			n = n.param
		default:
			n = n.child(segment)
		}
	}
	if n.end != nil {
		panic(fmt.Sprintf("BUG: router given the path %q twice", path))
	}
	n.end = l
}

// child gives the node below n for a static segment, making it if need be.
func (n *node) child(segment string) *node {
	if n.static == nil {
		n.static = map[string]*node{}
	}
	if n.static[segment] == nil {
		n.static[segment] = &node{}
	}
	return n.static[segment]
}

// find matches target from the segment that begins at from: literal first,
// then a parameter, then a rest. It leaves the places of the parameters in
// m.spans.
func (n *node) find(target []byte, from int, m *Match) *leaf {
	to := len(target)
	if i := bytes.IndexByte(target[from:], '/'); i >= 0 {
		to = from + i
	}
	if next := n.static[string(target[from:to])]; next != nil {
		if l := next.onward(target, to, m); l != nil {
			return l
		}
	}
	if from == len(target) || from == 1 && isReserved(target[from:to]) {
		return nil // nothing is left, and parameters are never empty; or it is not the app's
	}
	if n.param != nil && to > from {
		m.spans = append(m.spans, span{from, to})
		if l := n.param.onward(target, to, m); l != nil {
			return l
		}
		m.spans = m.spans[:len(m.spans)-1]
	}
	if n.rest != nil {
		m.spans = append(m.spans, span{from, len(target)})
	}
	return n.rest
}

// isReserved reports a first segment of the host's own paths, however it is escaped,
// which only a template that spells it takes.
func isReserved(segment []byte) bool {
	var buf [3 * len("_health")]byte
	if len(segment) <= len(buf) && bytes.IndexByte(segment, '%') >= 0 {
		segment, _ = unescape(buf[:0], segment)
	}
	return string(segment) == "_call" || string(segment) == "_health"
}

// onward goes on behind the segment that ended at to.
func (n *node) onward(target []byte, to int, m *Match) *leaf {
	if to == len(target) {
		return n.end
	}
	return n.find(target, to+1, m)
}
