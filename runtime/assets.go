package runtime

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
	"runner.example/internal/tree"
	"runner.example/runtime/assets"
	"runner.example/runtime/content"
	"runner.example/runtime/front"
	"runner.example/runtime/router"
	"runner.example/state/store"
)

// addAssets adds the directories of assets, which the router does not know: routes come before them.
func (a *activeBundle) addAssets(bundle *Bundle, st *store.Store) {
	opt := assets.Options{Memory: &assets.Memory{}, Open: func(f tree.File) (content.Source, error) {
		blob, err := st.OpenBlob(context.Background(), f.SHA256)
		switch {
		case err == store.ErrNotFound: // the app directory was not stored
			return nil, nil
		case err != nil:
			return nil, err
		}
		return blob, nil
	}}
	for i := range bundle.Schema.Assets {
		declared := &bundle.Schema.Assets[i]
		files := bundle.Assets[declared.Dir]
		if files == nil { // a bundle of a test, which serves no requests
			continue
		}
		a.sites = append(a.sites, len(a.routes))
		a.routes = append(a.routes, route{Route: declared.Route(), site: assets.New(declared, files, opt)})
	}
	slices.SortStableFunc(a.sites, func(i, j int) int { return cmp.Compare(len(a.routes[j].Path), len(a.routes[i].Path)) })
}

// findSite finds the directory of assets that serves a request without a route for its method. found reports that it has
// set the route; answered, that it has answered OPTIONS. Only what the directory has comes before other routes' refusal of
// the method. What a guarded one has is not said without a credential: it takes all paths.
func (a *activeBundle) findSite(s *requestState, x *front.Exchange, outcome router.Outcome) (answered, found bool, err error) {
	if len(a.sites) == 0 {
		return false, false, nil
	}
	rt, path := a.siteOf(s.match.Decoded(x.Request.Path))
	if rt == nil {
		return false, false, nil
	}
	answer := rt.site.Find(path, navigates(x))
	has := !rt.Auth.None || answer.Has()
	switch method := string(x.Request.Method); {
	case method == "GET" || method == "HEAD":
		if !has && outcome == router.MethodNotAllowed {
			return false, false, nil
		}
		s.route, s.asset = rt, answer
		x.Request.Route, x.Request.Params = rt.Path, s.match.Params
		return false, true, nil
	case !has:
		return false, false, nil
	}
	s.match.Allow = withAssets(s.match.Allow)
	if string(x.Request.Method) == "OPTIONS" {
		if rt.isPreflight(x) {
			rt.answerPreflight(x)
			return true, false, nil
		}
		x.AddHeader("Allow", []byte(s.match.Allow))
		x.Send(&noContent)
		return true, false, nil
	}
	return false, false, fault.New(fault.MethodNotAllowed, "method not supported on this path; allowed: %s", s.match.Allow)
}

// siteOf returns the route of the directory of assets with that path, and the rest of the path; nil: there is none.
func (a *activeBundle) siteOf(decoded []byte) (*route, []byte) {
	for _, i := range a.sites {
		if rest, ok := a.routes[i].site.Path(decoded); ok {
			return &a.routes[i], rest
		}
	}
	return nil, nil
}

// withAssets returns the Allow header of a path that has a file, with that of its routes; empty: it has none.
func withAssets(allow string) string {
	switch {
	case allow == "":
		return "GET, HEAD, OPTIONS"
	case strings.Contains(allow, "GET"):
		return allow
	case strings.Contains(allow, "HEAD"):
		return "GET, " + allow
	}
	return "GET, HEAD, " + allow
}

// navigates reports whether the client asks for a page.
func navigates(x *front.Exchange) bool {
	accept, _ := x.Header("accept")
	return assets.Navigates(accept)
}

// sendAsset answers a request for a file.
func (s *requestState) sendAsset(x *front.Exchange) error {
	site, answer := s.route.site, s.asset
	switch {
	case answer.Response == nil:
		if site.VariesByAccept() {
			x.AddHeader("Vary", []byte("Accept"))
		}
		return errRouteNotFound
	case answer.Location != "":
		redirect := *answer.Response
		to := []byte(answer.Location)
		if len(x.Request.RawQuery) > 0 {
			to = append(append(to, '?'), x.Request.RawQuery...)
		}
		redirect.Headers = append(slices.Clip(redirect.Headers), abi.Pair{Name: []byte("Location"), Value: to})
		x.Send(&redirect)
		return nil
	}
	encodings, _ := x.Header("accept-encoding")
	return x.SendContent(answer.Response, &answer.File.Form(encodings).Content)
}
