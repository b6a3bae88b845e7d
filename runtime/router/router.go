package router

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"runner.example/hostabi/abi"
)

// Route is one method with a path template, such as GET /v1/orders/:id or
// GET /files/*path.
type Route struct{ Method, Path string }

// Outcome is the result of Match.
type Outcome uint8

// The outcomes of Match.
const (
	// NotFound: no route of any method has this path.
	NotFound Outcome = iota
	// Found: Match.Route serves the request.
	Found
	// MethodNotAllowed: only routes of other methods have this path;
	// Match.Allow names the methods that do.
	MethodNotAllowed
	// Options: the host answers an OPTIONS request itself, with Match.Allow.
	Options
	// BadPath: the path breaks the rules of paths.
	BadPath
)

// Match is the result for one request. Reuse it for the next request: its buffers are kept.
// The zero value is ready to use.
type Match struct {
	// Route is an index into the routes given to New, set when Found.
	Route int
	// Params are the decoded parameters of the route in the order of its path. A rest
	// parameter is decoded as a whole and keeps its slashes. Values point into the target
	// or into the Match: they are valid until either is reused.
	Params []abi.Pair
	// Allow is the value of an Allow header, set when MethodNotAllowed or Options.
	Allow string

	spans []span
	buf   []byte
	// routes has the route of each method in the set having. Both are set for OPTIONS
	// requests and when no route has the method.
	routes [methods]int
	having int
	hidden bool // see HidesRoute
}

// RouteOf returns the route that would serve the target of an OPTIONS request with another
// method, after Match.
func (m *Match) RouteOf(method []byte) (route int, ok bool) {
	i := methodOf(method)
	if i == head && m.having&(1<<head) == 0 {
		i = get
	}
	if i < 0 || m.having&(1<<i) == 0 {
		return 0, false
	}
	return m.routes[i], true
}

// span is the position of one parameter in the target.
type span struct{ from, to int }

// Router holds the routes of one release.
type Router struct {
	trees [methods]node
	// allow is the Allow header for each set of methods.
	allow [1 << methods]string
}

// New returns a router of checked routes. It panics on a method or a template that a schema
// cannot have, and on two routes of one shape: the compiler refuses all of these.
func New(routes []Route) *Router {
	r := &Router{}
	for i, route := range routes {
		if route.Method == Any {
			continue
		}
		m := methodOf([]byte(route.Method))
		if m < 0 || !strings.HasPrefix(route.Path, "/") {
			panic(fmt.Sprintf("BUG: router given the route %q %q", route.Method, route.Path))
		}
		r.trees[m].add(route.Path, i, false)
	}
	for i, route := range routes {
		if route.Method == Any {
			for _, m := range anyOf {
				r.trees[m].add(route.Path, i, true)
			}
		}
	}
	for i, route := range routes {
		if prefix, ok := strings.CutSuffix(route.Path, "/*"); ok {
			r.addRoot(prefix, route.Method, i)
		}
	}
	for set := range r.allow {
		r.allow[set] = allowText(set)
	}
	return r
}

// Match finds the route for a method and a target without its query, and fills m. It does
// not allocate once the buffers of m are large enough.
//
// A path that breaks the rules of paths is BadPath even if no route has it, and so is one whose encoding hides the
// literal text of another route: the handler would see that route's path, without its settings. Of the matching
// routes of the method, the one with more literal text in the first differing segment wins.
// Parameters and rests do not match the segments /_call, /_files and /_health. The GET route serves
// HEAD if there is no HEAD route.
func (r *Router) Match(method, target []byte, m *Match) Outcome {
	m.Route, m.Params, m.Allow, m.having, m.hidden = 0, m.Params[:0], "", 0, false
	if !m.wellFormed(target) {
		return BadPath
	}
	own := methodOf(method)
	var seen *leaf // for the path that the handler sees
	if bytes.IndexByte(target, '%') >= 0 {
		seen = r.find(own, m.buf, m)
	}
	leaf := r.find(own, target, m)
	m.hidden = leaf == nil && seen != nil
	if leaf != nil && seen != nil && seen != leaf {
		return BadPath
	}
	found := leaf != nil
	if found {
		m.take(leaf, target)
	}
	if found && own != options {
		return Found
	}
	for i := range r.trees {
		m.spans = m.spans[:0]
		if l := r.trees[i].find(target, 1, m); l != nil {
			m.routes[i] = l.route
			m.having |= 1 << i
		}
	}
	switch {
	case found:
		return Found
	case m.having == 0:
		return NotFound
	}
	m.Allow = r.allow[m.having]
	if own == options {
		return Options
	}
	return MethodNotAllowed
}

// find searches the routes of a method, and records the positions of the parameters in m.spans.
func (r *Router) find(method int, path []byte, m *Match) *leaf {
	m.spans = m.spans[:0]
	if method < 0 {
		return nil
	}
	l := r.trees[method].find(path, 1, m)
	if l == nil && method == head {
		m.spans = m.spans[:0]
		l = r.trees[get].find(path, 1, m)
	}
	return l
}

// take fills m with what find has found.
func (m *Match) take(l *leaf, target []byte) {
	m.Route = l.route
	m.buf = m.buf[:0]
	for i, name := range l.names { // the rest of a path with * has a span and no name
		s := m.spans[i]
		m.Params = append(m.Params, abi.Pair{Name: name, Value: m.decode(target[s.from:s.to])})
	}
}

// decode returns raw percent-decoded: raw itself if nothing is encoded, else a part of
// m.buf.
func (m *Match) decode(raw []byte) []byte {
	if bytes.IndexByte(raw, '%') < 0 {
		return raw
	}
	from := len(m.buf)
	m.buf, _ = unescape(m.buf, raw)
	return m.buf[from:len(m.buf):len(m.buf)]
}

// Decoded returns a target that Match has not found to be a BadPath, percent-decoded: the target itself if nothing is
// encoded. It is valid until m or the target is reused.
func (m *Match) Decoded(target []byte) []byte { return m.decode(target) }

// HidesRoute reports whether Match has found no route of the method for its target, but would for the decoded one.
func (m *Match) HidesRoute() bool { return m.hidden }

// IsReserved reports whether a decoded path is under one of the host's own paths.
func IsReserved(decoded []byte) bool {
	segment, _, _ := bytes.Cut(bytes.TrimPrefix(decoded, []byte{'/'}), []byte{'/'})
	return isOwnName(segment)
}

// node has the routes of one method that share the segments down to here. The part of a
// path that is left at a node depends only on its depth, so a search visits each node at
// most once, in spite of backtracking.
type node struct {
	static map[string]*node
	param  *node
	// end is the route whose template ends here, rest the one with a rest parameter here.
	end, rest *leaf
}

// leaf is the end of a route's template.
type leaf struct {
	route int
	names [][]byte
}

// addRoot adds the paths above a route with the path prefix/*: the prefix, with a slash and without. Routes that
// have one of these paths come before it.
func (r *Router) addRoot(prefix, method string, i int) {
	for m := range r.trees {
		if methodNames[m] != method && !(method == Any && slices.Contains(anyOf, m)) {
			continue
		}
		if prefix != "" {
			r.trees[m].add(prefix, i, true)
		}
		r.trees[m].add(prefix+"/", i, true)
	}
}

// add adds the route of index i below n. A route that gives way is not added where there is one.
func (n *node) add(path string, i int, givesWay bool) {
	l := &leaf{route: i}
	for rest, more := path[1:], true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		switch {
		case strings.HasPrefix(segment, "*"):
			if more || n.rest != nil && !givesWay {
				panic(fmt.Sprintf("BUG: router given the path %q", path))
			}
			if len(segment) > 1 {
				l.names = append(l.names, []byte(segment[1:]))
			}
			if n.rest == nil {
				n.rest = l
			}
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
	switch {
	case n.end == nil:
		n.end = l
	case !givesWay:
		panic(fmt.Sprintf("BUG: router given the path %q twice", path))
	}
}

// child returns the node below n for a static segment, and creates it if necessary.
func (n *node) child(segment string) *node {
	if n.static == nil {
		n.static = map[string]*node{}
	}
	if n.static[segment] == nil {
		n.static[segment] = &node{}
	}
	return n.static[segment]
}

// find matches target from the segment that begins at from: literal first, then a
// parameter, then a rest. It records the positions of the parameters in m.spans.
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
		return nil // nothing is left, and parameters are never empty; or the path is reserved
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

// isReserved reports whether the first segment is one of the host's own paths, however it
// is encoded; only a template that spells it matches it.
func isReserved(segment []byte) bool {
	var buf [3 * len("_health")]byte
	if len(segment) <= len(buf) && bytes.IndexByte(segment, '%') >= 0 {
		segment, _ = unescape(buf[:0], segment)
	}
	return isOwnName(segment)
}

func isOwnName(segment []byte) bool {
	return string(segment) == "_call" || string(segment) == "_files" || string(segment) == "_health"
}

// onward continues after the segment that ended at to.
func (n *node) onward(target []byte, to int, m *Match) *leaf {
	if to == len(target) {
		return n.end
	}
	return n.find(target, to+1, m)
}
