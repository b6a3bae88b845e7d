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

// addAssets adds the directories of assets. The router does not know them: they serve only what no route matches.
func (a *activeBundle) addAssets(bundle *Bundle, st *store.Store) {
	opt := assets.Options{Memory: &assets.Memory{}, Open: func(f tree.File) (content.Source, error) {
		blob, err := st.OpenBlob(context.Background(), f.SHA256)
		switch {
		case err == store.ErrNotFound: // served from the app directory, whose files are not in the store
			return nil, nil
		case err != nil:
			return nil, err
		}
		return blob, nil
	}}
	a.assetFiles = map[string]int{}
	for i := range bundle.Schema.Assets {
		declared := &bundle.Schema.Assets[i]
		files := bundle.Assets[declared.Dir]
		if files == nil { // only in tests, without requests for assets
			continue
		}
		a.assetFiles[declared.Dir] = len(files.List())
		a.sites = append(a.sites, len(a.routes))
		a.routes = append(a.routes, route{Route: declared.Route(), site: assets.New(declared, files, opt)})
	}
	slices.SortStableFunc(a.sites, func(i, j int) int { return cmp.Compare(len(a.routes[j].Path), len(a.routes[i].Path)) })
}

// findAssets finds the directory of assets for a request that no route matches, and sets the route to it. It leaves the
// route unset if there is none. answered reports that it has answered OPTIONS. outcome is that of the router.
func (a *activeBundle) findAssets(s *requestState, x *front.Exchange, outcome router.Outcome) (answered bool, err error) {
	if len(a.sites) == 0 {
		return false, nil
	}
	decoded := s.match.Decoded(x.Request.Path)
	if s.match.HidesRoute() || router.IsReserved(decoded) { // in no encoding are there files in place of a route
		return false, nil
	}
	rt, path := a.siteOf(decoded)
	if rt == nil {
		return false, nil
	}
	answer := rt.site.Find(path, navigates(x))
	// A directory with auth counts as having all paths, so that a client without a credential cannot test which files exist.
	has := !rt.Auth.None || answer.Has()
	switch method := string(x.Request.Method); {
	case method == "GET" || method == "HEAD":
		if !has && outcome == router.MethodNotAllowed {
			return false, nil
		}
		s.route, s.asset = rt, answer
		x.Request.Route, x.Request.Params = rt.Path, s.match.Params
		return false, nil
	case !has:
		return false, nil
	}
	s.match.Allow = withAssets(s.match.Allow)
	if string(x.Request.Method) == "OPTIONS" {
		if rt.isPreflight(x) {
			rt.answerPreflight(x)
			return true, nil
		}
		x.AddHeader("Allow", []byte(s.match.Allow))
		x.Send(&noContent)
		return true, nil
	}
	return false, fault.New(fault.MethodNotAllowed, "method not supported on this path; allowed: %s", s.match.Allow)
}

// siteOf returns the route of the directory of assets that serves a path, and the rest of the path; nil if there is none.
func (a *activeBundle) siteOf(decoded []byte) (*route, []byte) {
	for _, i := range a.sites {
		if rest, ok := a.routes[i].site.Path(decoded); ok {
			return &a.routes[i], rest
		}
	}
	return nil, nil
}

// withAssets returns the Allow header of a path that assets serve. allow is the header for the routes of that path; empty:
// it has no routes.
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

// sendAsset answers a request for a file of assets.
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
	form := answer.File.Form(encodings)
	for {
		err := x.SendContent(answer.Response, &form.Content)
		next := answer.File.Form(encodings)
		if err == nil || next == form {
			return err
		}
		form = next // the one before is lost
	}
}
