package router_test

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"runner.example/runtime/router"
)

// found is an answer of either implementation in a form that can be compared.
type found struct {
	Outcome router.Outcome
	Route   int
	Params  []string // name=value
	Allow   string
}

// ask gives the router's answer.
func ask(r *router.Router, method, target string) found {
	var m router.Match
	f := found{Outcome: r.Match([]byte(method), []byte(target), &m), Allow: m.Allow}
	if f.Outcome == router.Found {
		f.Route = m.Route
		for _, p := range m.Params {
			f.Params = append(f.Params, string(p.Name)+"="+string(p.Value))
		}
	}
	return f
}

// oracle answers slowly and plainly: split, try every route, decode once.
func oracle(routes []router.Route, method, target string) found {
	if !oracleWellFormed(target) {
		return found{Outcome: router.BadPath}
	}
	best := func(target string) (f found, ok bool) {
		if f, ok = oracleBest(routes, method, target); !ok && method == "HEAD" {
			return oracleBest(routes, "GET", target)
		}
		return f, ok
	}
	if f, ok := best(target); ok {
		if seen, ok := best(oraclePlain(target)); ok && seen.Route != f.Route {
			return found{Outcome: router.BadPath}
		}
		return f
	}
	has := map[string]bool{}
	for _, route := range routes {
		if _, ok := oracleParams(route.Path, target); ok {
			has[route.Method] = true
		}
	}
	if len(has) == 0 {
		return found{Outcome: router.NotFound}
	}
	has["OPTIONS"] = true
	has["HEAD"] = has["HEAD"] || has["GET"]
	var allow []string
	for _, m := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		if has[m] {
			allow = append(allow, m)
		}
	}
	f := found{Outcome: router.MethodNotAllowed, Allow: strings.Join(allow, ", ")}
	if method == "OPTIONS" {
		f.Outcome = router.Options
	}
	return f
}

func oracleWellFormed(target string) bool {
	if !strings.HasPrefix(target, "/") || strings.ContainsAny(target, `\#? `) {
		return false
	}
	segments := strings.Split(target, "/")[1:]
	for i, raw := range segments {
		text, err := url.PathUnescape(raw)
		if err != nil || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) ||
			strings.ContainsAny(text, `/\`) || text == "." || text == ".." {
			return false
		}
		if raw == "" && i < len(segments)-1 {
			return false
		}
	}
	return true
}

// oraclePlain decodes the segments that a template could spell.
func oraclePlain(target string) string {
	segments := strings.Split(target, "/")
	for i, raw := range segments {
		text, _ := url.PathUnescape(raw)
		if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~") == "" {
			segments[i] = text
		}
	}
	return strings.Join(segments, "/")
}

// oracleBest picks, among the routes of a method that fit, the one that is
// more literal where they first differ.
func oracleBest(routes []router.Route, method, target string) (found, bool) {
	best, bestRank := found{Outcome: router.Found}, ""
	for i, route := range routes {
		if route.Method != method {
			continue
		}
		params, ok := oracleParams(route.Path, target)
		if !ok {
			continue
		}
		if rank := oracleRank(route.Path); bestRank == "" || rank < bestRank {
			best.Route, best.Params, bestRank = i, params, rank
		}
	}
	return best, bestRank != ""
}

// oracleRank sorts templates that fit one target: a letter for each segment.
func oracleRank(path string) string {
	rank := ""
	for _, segment := range strings.Split(path, "/")[1:] {
		switch {
		case strings.HasPrefix(segment, ":"):
			rank += "b"
		case strings.HasPrefix(segment, "*"):
			rank += "c"
		default:
			rank += "a"
		}
	}
	return rank
}

func oracleParams(path, target string) (params []string, ok bool) {
	want, have := strings.Split(path, "/")[1:], strings.Split(target, "/")[1:]
	for i, segment := range want {
		if i >= len(have) {
			return nil, false
		}
		raw := have[i]
		if text, _ := url.PathUnescape(raw); i == 0 && segment != raw && (text == "_call" || text == "_files" || text == "_health") {
			return nil, false
		}
		switch {
		case strings.HasPrefix(segment, "*"):
			if raw = strings.Join(have[i:], "/"); raw == "" {
				return nil, false
			}
		case strings.HasPrefix(segment, ":"):
			if raw == "" {
				return nil, false
			}
		default:
			if raw != segment {
				return nil, false
			}
			continue
		}
		value, err := url.PathUnescape(raw)
		if err != nil {
			return nil, false
		}
		params = append(params, segment[1:]+"="+value)
		if segment[0] == '*' {
			return params, true
		}
	}
	return params, len(want) == len(have)
}

// shape is a template without its names: two routes of one method may not have
// the same.
func shape(r router.Route) string {
	segments := strings.Split(r.Path, "/")
	for i, s := range segments {
		if s != "" && strings.ContainsAny(s[:1], ":*") {
			segments[i] = s[:1]
		}
	}
	return r.Method + strings.Join(segments, "/")
}

// distinct keeps the first route of each shape.
func distinct(routes []router.Route) []router.Route {
	seen := map[string]bool{}
	return slices.DeleteFunc(routes, func(r router.Route) bool {
		known := seen[shape(r)]
		seen[shape(r)] = true
		return known
	})
}
